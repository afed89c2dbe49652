"""Nothing here is read where TensorFlow is absent: `make test-frameworks` runs these tests where it is installed.

The folder is not called `tensorflow`: `tests` is on the path of imports, and `import tensorflow` would find it.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read when TensorFlow is loaded

collect_ignore_glob = [] if find_spec("tensorflow") else ["*.py"]
