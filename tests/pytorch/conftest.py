"""Nothing here is read where PyTorch is absent: `make test-frameworks` runs these tests in an environment that has it.

The folder is not called `torch`: `tests` is on the path of imports, and `import torch` would find it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["*.py"]

_OWN = ("ignore:.*torch.jit:DeprecationWarning",)
"""Warnings PyTorch gives about its own code: forward-mode differentiation uses what it deprecates elsewhere."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings(*_OWN))
