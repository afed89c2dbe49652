"""The benchmarks live in the package, `convgrad._apps.bench`; `python -m benchmarks` calls them."""
