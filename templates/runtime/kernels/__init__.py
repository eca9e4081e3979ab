"""The compiled kernels: one module for each meaning, complete in itself."""
