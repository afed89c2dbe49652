"""The bridge to TensorFlow. Only `convgrad.tensorflow`, and tensors that were given to a function, import it."""
