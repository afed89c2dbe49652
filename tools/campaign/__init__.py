"""The campaign: random problems over everything the package computes, checked in every way there is, for hours.

Usage: python -m tools.campaign --help
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository. Geometry, data, guard pages and layouts are those of the tests."""

if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
