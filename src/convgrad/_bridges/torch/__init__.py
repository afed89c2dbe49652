"""The bridge to PyTorch. Only `convgrad.torch`, and tensors that were given to a function, import it."""
