"""Benchmarks that are part of a clone and not of a wheel: the folder `benchmarks` beside `src`.

Training steps of whole networks are there: 3,000 lines in four frameworks, for people who work on convgrad. They are
found by where this file lies and never by the import path, which may lead to the benchmarks of another project first.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

NAME = "benchmarks"
FOLDER = Path(__file__).resolve().parents[4] / NAME


def is_here() -> bool:
    """Say whether the package runs from a clone, or from the archive of its sources."""
    return FOLDER.parent / "src" in Path(__file__).resolve().parents and FOLDER.is_dir()


def load_module(name: str) -> ModuleType:
    """Return a module of the folder, such as `train.verb`."""
    known = sys.modules.get(NAME)
    if known is None or str(FOLDER) not in map(str, known.__path__):
        found = spec_from_file_location(NAME, FOLDER / "__init__.py")
        assert found is not None and found.loader is not None
        sys.modules[NAME] = module_from_spec(found)
        found.loader.exec_module(sys.modules[NAME])
    return import_module(f"{NAME}.{name}")
