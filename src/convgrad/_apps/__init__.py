"""What is built on top: the command, benchmarks, checks of other kernels, graphs, pages, the studio, packs."""
