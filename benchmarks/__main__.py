"""``python -m benchmarks``: `convgrad bench` from a checkout; ``--json FILE`` is another word for ``--save FILE``."""

from __future__ import annotations

import sys

from convgrad._apps.cli.main import main

if __name__ == "__main__":
    words = ("--save" + word[6:] if word.startswith("--json") else word for word in sys.argv[1:])
    sys.exit(main(["bench", *words]))
