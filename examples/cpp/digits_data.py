"""Write scikit-learn's digits for digits.cc: 65 bytes per image, its digit and its pixels, in a shuffled order.

pip install '.[examples]'
python examples/cpp/digits_data.py digits.bin
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def main() -> int:
    if len(sys.argv) != 2:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    rows = np.column_stack([found.target, found.data])[order].astype(np.uint8)
    Path(sys.argv[1]).write_bytes(rows.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
