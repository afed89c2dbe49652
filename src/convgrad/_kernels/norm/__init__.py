"""Passes over images that stand between convolutions, as kernels: batch norm with activation, pooling and scaling.

`plan` says which launches a task takes; the other modules write the kernels. Nothing here knows convolution or threads.
"""
