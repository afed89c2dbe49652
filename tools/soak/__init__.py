"""The soak: mixed calls from several threads for a long time; nothing may grow, nothing may change.

Usage: python -m tools.soak --help
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository. Geometry and data are those of the tests."""

if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
