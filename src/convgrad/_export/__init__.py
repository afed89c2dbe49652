"""Packs: kernels compiled ahead of time, as a static library and the C files that call it."""
