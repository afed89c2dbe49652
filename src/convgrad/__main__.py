"""``python -m convgrad`` is the command ``convgrad``."""

import sys

from ._apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
