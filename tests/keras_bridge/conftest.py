"""Nothing here is read where Keras is absent: `make test-frameworks` runs these tests in an environment that has it.

The folder is not called `keras`: `tests` is on the path of imports, and `import keras` would find it. Keras has one
backend per process, so modules called `inside_*` are run by `test_backends.py` in a child per backend.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("keras") else ["*.py"]

_OWN = (
    "ignore:.*__array__ implementation doesn't accept a copy keyword:DeprecationWarning",
    "ignore:.*np.object:FutureWarning",
    "ignore:.*:DeprecationWarning:tensorflow.*",
    "ignore:.*torch.jit:DeprecationWarning",
    "ignore:Dynamo detected a call to a `functools.lru_cache`:UserWarning",
)
"""Warnings that Keras and its backends give about their own code."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings(*_OWN))
