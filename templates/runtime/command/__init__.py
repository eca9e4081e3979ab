"""The command `specops`: list, explain, run and warmup."""
