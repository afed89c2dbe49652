"""What a compiled kernel depends on, as a list of named entries.

Two kernels are the same if all entries are: what is computed, the CPU row, LLVM, and our own
sources, hashed, so that changing a line of a generator makes its old kernels unreachable. Entries
are kept by name so that a surprising miss can be explained. Nothing here imports llvmlite: its
version is read from its files.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from convgrad._kernel import spelled
from convgrad._targets import Target

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS = ("_algorithms", "_codegen", "_jit", "_norm", "_targets")
"""Where a change can change a kernel, with all folders below; the package's own files too: problem, plan, dtypes."""


def entries(identity: object, target: Target) -> tuple[tuple[str, str], ...]:
    """Return the named entries of a kernel's key.

    `identity` must have a repr that is the same in every process and says all that shapes the code.
    """
    return (
        # The module too: identities of two algorithms may have one name and one set of fields.
        ("kernel", f"{type(identity).__module__}.{spelled(identity)}"),
        ("target", f"{target.name} {target.cpu} {target.features} {target.vector_bits}"),
        ("flags", _flags(target)),
        ("sources", sources()),
        ("llvm", llvm_version()),
        ("platform", f"{sys.platform} {platform.machine()}"),
    )


def _flags(target: Target) -> str:
    known = f"fma={target.has_fma} half={target.has_half}"
    return known if target.has_double else f"{known} double=False"


def text(identity: object, target: Target) -> str:
    """Return the entries as one text."""
    return "\n".join(f"{name}: {value}" for name, value in entries(identity, target))


def digest(key: str) -> str:
    """Return the name of a key's file."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


@cache
def sources() -> str:
    """Return a hash of the sources kernels come from, by content, once per process.

    Raises OSError where they cannot be read.
    3.7 ms for 114 files (Zen 3). Trusting modification times would save most of it, once per
    process, at the price of stale kernels where tools set times: not worth it.
    """
    total, found = hashlib.blake2b(digest_size=16), 0
    for name in _source_names():
        total.update(f"{name}\n".encode())
        total.update((_PACKAGE / name).read_bytes())
        found += 1
    if not found:  # compiled files only: nothing here would tell two versions apart
        raise FileNotFoundError(errno.ENOENT, "no sources", str(_PACKAGE))
    return total.hexdigest()


def _source_names() -> Iterator[str]:
    """Return the files to hash, by their place in the package, in an order that no file system decides."""
    for folder in (".", *_FOLDERS):
        if (_PACKAGE / folder).is_dir():
            yield from _sources_in(folder, deep=folder != ".")


def _sources_in(folder: str, deep: bool) -> Iterator[str]:
    """Return the sources in a folder, and if `deep` those in the folders below it.

    Not by `glob` or `walk`, which take a folder that cannot be read for an empty one.
    """
    with os.scandir(_PACKAGE / folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        name = f"{folder}/{entry.name}"
        if entry.is_dir():
            if deep and entry.name != "__pycache__":
                yield from _sources_in(name, deep)
        elif name.endswith(".py"):
            yield name


@cache
def llvm_version() -> str:
    """Return what identifies the installed llvmlite, without importing it.

    Its version file names the release; size and time of its library tell builds of one release
    apart. `importlib.metadata` would take 10 ms to say less.
    """
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return "absent"
    folder = Path(next(iter(spec.submodule_search_locations)))
    total = hashlib.blake2b(digest_size=16)
    try:
        total.update((folder / "_version.py").read_bytes())
        for path in sorted((folder / "binding").iterdir()):
            if path.suffix in (".so", ".dylib", ".dll"):
                status = path.stat()
                total.update(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode())
    except OSError as error:
        return f"unreadable: {error.errno}"
    return total.hexdigest()
