"""``python -m benchmarks``: the benchmarks of the package, from a checkout."""

from __future__ import annotations

import sys

from convgrad._bench.main import main

if __name__ == "__main__":
    sys.exit(main())
