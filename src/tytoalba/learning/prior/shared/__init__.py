"""One network for every array: its frames, its inputs, its exact form, its training."""
