"""The public functions: TensorFlow's v1, v2 and raw names, and a friendlier set for the top level.

A door only states which forms it accepts and what its arguments are called; `calls` does the rest for all of them.
"""
