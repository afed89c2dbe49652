"""The benchmarks live in the package, `convgrad._bench`; `python -m benchmarks` calls them."""
