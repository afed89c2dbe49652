"""The kernel compiler: how a kernel is written, what CPUs are, what work costs, how text becomes code."""
