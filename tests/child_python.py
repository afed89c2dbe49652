"""The environment of a child that tests start by themselves: it imports what the tests can."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment with our import path."""
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    return {**os.environ, "PYTHONPATH": path, **(extra or {})}
