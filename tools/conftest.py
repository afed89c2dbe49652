"""Scripts find their neighbours when they are run; pytest, which imports them for their examples, must be told."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
