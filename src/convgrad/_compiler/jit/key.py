"""What a compiled kernel depends on, as a list of named entries.

Two kernels are the same if all entries are: what is computed, the CPU row, LLVM, and our own
sources, hashed, so that changing a line of a generator makes its old kernels unreachable. Entries
are kept by name so that a surprising miss can be explained. Nothing here imports llvmlite: its
version is read from its files.

A kernel has a second name, by its text: where a change of the sources has left that as it was, what
was compiled of it is used again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from convgrad._base import config
from convgrad._compiler.kernel import spelled
from convgrad._compiler.targets import Target

_PACKAGE = Path(__file__).resolve().parents[2]
_FOLDERS = ("_compiler/codegen", "_compiler/targets", "_kernels", "_problem/sums")
"""Where a change can change a kernel's text, with all folders below."""
_COMPILER = "_compiler/jit/llvm.py"
"""What turns texts into objects."""
_FILES = (
    *("_base/dtypes.py", "_compiler/kernel.py", "_engine/probe.py"),
    *(
        "_problem/activations.py",
        "_problem/convolution.py",
        "_problem/geometry.py",
        "_problem/norm/__init__.py",
        "_problem/norm/task.py",
    ),
    *("_compiler/jit/__init__.py", "_compiler/jit/functions.py", _COMPILER),
)
"""The other files in which it can. Not hashed are those that choose among kernels (prices, switches), since a kernel's
identity says what was chosen; those that keep, find and load objects; and bridges, whose functions are named by their
whole text. A test follows all imports (tests/unit/test_key.py)."""


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


def text_entries(ir: str, target: Target) -> tuple[tuple[str, str], ...]:
    """Return the named entries of the key of a kernel's text: all that decides what LLVM makes of it.

    The triple is not among them: it follows from platform, architecture and LLVM, and to ask for it LLVM is imported.
    """
    return (
        ("text", hashlib.blake2b(ir.encode(), digest_size=32).hexdigest()),
        ("machine", f"{target.architecture} {target.cpu} {target.features}{_level()}"),
        ("compiler", _compiler()),
        ("llvm", llvm_version()),
        ("platform", f"{sys.platform} {platform.machine()}"),
    )


def _flags(target: Target) -> str:
    known = f"fma={target.has_fma} half={target.has_half}{_level()}"
    return known if target.has_double else f"{known} double=False"


def _level() -> str:
    """Return the code generator's level where it is not the usual one."""
    level = config.get("opt_level")
    return "" if level == config.SWITCHES["opt_level"].default else f" opt={level}"


def identity_text(identity: object, target: Target) -> str:
    """Return the entries as one text."""
    return "\n".join(f"{name}: {value}" for name, value in entries(identity, target))


def text_of(ir: str, target: Target) -> str:
    """Return the entries of a kernel's text as one text."""
    return "\n".join(f"{name}: {value}" for name, value in text_entries(ir, target))


def digest(key: str) -> str:
    """Return the name of a key's file."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


@cache
def sources() -> str:
    """Return a hash of the sources kernels come from, by content, once per process.

    Raises OSError where they cannot be read.
    3.7 ms for 159 files (Zen 4). Trusting modification times would save most of it, once per
    process, at the price of stale kernels where tools set times: not worth it.
    """
    total = hashlib.blake2b(digest_size=16)
    for name in _source_names():
        total.update(f"{name}\n".encode())
        total.update((_PACKAGE / name).read_bytes())
    return total.hexdigest()


@cache
def _compiler() -> str:
    """Return a hash of the source of what compiles: its options may change. Raises OSError if it cannot be read."""
    return hashlib.blake2b((_PACKAGE / _COMPILER).read_bytes(), digest_size=16).hexdigest()


def _source_names() -> Iterator[str]:
    """Return the files to hash, by their place in the package, in an order that no file system decides.

    Those of `_FILES` are read even if they are not there: of compiled files only, nothing tells two versions apart.
    """
    yield from _FILES
    for folder in _FOLDERS:
        yield from _sources_in(folder)


def _sources_in(folder: str) -> Iterator[str]:
    """Return the sources in a folder and in those below it.

    Not by `glob` or `walk`, which take a folder that cannot be read for an empty one.
    """
    with os.scandir(_PACKAGE / folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        name = f"{folder}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources_in(name)
        elif name.endswith(".py"):
            yield name


@cache
def llvm_version() -> str:
    """Return what identifies the installed llvmlite, without importing it.

    Its version file names the release. Builds of one release are told apart by what the installer wrote down about the
    library, its hash, so that a fresh environment finds the kernels of the last one; where nothing is written down, by
    its time. It takes 0.3 ms (Zen 4); `importlib.metadata` would take 10 to say less, and all 180 MB longer still.
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
                total.update(f"{path.name} {_build(path, folder)}".encode())
    except OSError as error:
        return f"unreadable: {error.errno}"
    return total.hexdigest()


_SAMPLE = 4096
"""Bytes of a library's start and end: they hold the linker's own name of the build, if another was put in its place."""


def _build(library: Path, package: Path) -> str:
    status = library.stat()
    recorded = _recorded(library.relative_to(package.parent).as_posix(), package)
    if not recorded or any(line.rsplit(",", 1)[-1] != str(status.st_size) for line in recorded):
        return f"{status.st_size} {status.st_mtime_ns}"
    with library.open("rb") as file:
        start = file.read(_SAMPLE)
        file.seek(max(0, status.st_size - _SAMPLE))
        ends = hashlib.blake2b(start + file.read(_SAMPLE), digest_size=16).hexdigest()
    return f"{' '.join(recorded)} {ends}"


def _recorded(name: str, package: Path) -> list[str]:
    """Return the lines an installer wrote about a file: its name, hash and size."""
    found = []
    for place in sorted(package.parent.glob(f"{package.name}-*.dist-info")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            lines = (place / "RECORD").read_text(encoding="utf-8").splitlines()
            found += [line for line in lines if line.startswith(f"{name},sha256=")]
    return found
