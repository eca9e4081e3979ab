"""The functions that speak NumPy, one module each."""
