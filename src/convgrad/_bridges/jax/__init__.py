"""The bridge to JAX: the three sums as primitives of JAX, computed by compiled handlers that XLA calls."""
