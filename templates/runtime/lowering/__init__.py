"""From an operator's meaning to a kernel: what is fixed by types and shape, and a plan for each set of strides."""
