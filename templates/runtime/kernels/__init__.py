"""The kernel modules, each complete in itself, and `chunks`, which calls what they compile."""
