"""Modules in the current folder: the one that was named, and what it and its neighbours import themselves.

The folder is not put on `sys.path`: then every optional import of every library would look there, and a file somebody
has left beside the kernel would run. Installed modules come first for the same reason.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


def offer(name: str, folder: Path) -> None:
    """Let a module be found in a folder, behind all others, and let files that lie there find its neighbours."""
    known = [each for each in sys.meta_path if isinstance(each, Beside)]
    found = next((each for each in known if each.folder == str(folder)), None)
    if found is None:
        found = Beside(str(folder))
        at = sys.meta_path.index(known[0]) if known else len(sys.meta_path)
        sys.meta_path.insert(at, found)  # the latest folder comes first
    found.names.add(name.partition(".")[0])


def there(name: str, folder: Path) -> Path | None:
    """Return the file or package of a module in a folder."""
    spec = PathFinder.find_spec(name.partition(".")[0], [str(folder)])
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


class Beside(MetaPathFinder):
    """Finds modules of one folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None:  # a part of a package, which knows where its parts are
            return None
        if fullname not in self.names and not self._asked_from_here():
            return None
        return PathFinder.find_spec(fullname, [self.folder], target)

    def _asked_from_here(self) -> bool:
        """Tell whether the file that imports lies in the folder."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
            frame = frame.f_back  # type: ignore[assignment]  # the outermost has none
        if frame is None:
            return False
        file = frame.f_globals.get("__file__")
        return isinstance(file, str) and Path(self.folder) in Path(file).absolute().parents
