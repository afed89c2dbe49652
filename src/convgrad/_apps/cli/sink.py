"""The file `run` writes: it appears whole under its name, or not at all.

Data go to a file beside the final name, ``.NAME.XXXX.convgrad-partial``, which is locked while its writer lives, made
durable, and then given the name. A writer that was killed leaves that file behind; the next one for the same name finds
it unlocked and removes it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import secrets
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import said
from .verb import Refusal

PARTIAL = ".convgrad-partial"
"""How the name of what is being written ends."""
MEMBER = "result"
"""Name of the array in an .npz file."""
_BLOCK = 1 << 24
"""Bytes handed to the system at a time."""


def check(path: Path, *, force: bool) -> Path:
    """Refuse a name that cannot be written, before anything is computed; returns where links lead."""
    if path.suffix.lower() not in (".npy", ".npz"):
        raise Refusal(f"the output {str(path)!r} must end in .npy, .npz or .zarr")
    return check_text(path, force=force)


def check_text(path: Path, *, force: bool) -> Path:
    """The same for a file of any name."""
    target = resolved(path)
    if target.is_dir():
        raise Refusal(f"the output {path} is a folder")
    if target.exists() and not force:
        raise Refusal(f"the output {path} exists; --force replaces it")
    check_parent(path, target)
    return target


def resolved(path: Path) -> Path:
    """Return where links lead."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a working folder that is gone, links that go round
        raise Refusal(f"the output {path} leads nowhere: {said(error)}") from None


def check_parent(path: Path, target: Path) -> None:
    """Refuse a folder that is not there, or in which nothing can be written."""
    if not target.parent.is_dir():
        raise Refusal(f"the output's folder {path.parent} does not exist")
    if not os.access(target.parent, os.W_OK):
        raise Refusal(f"the output's folder {path.parent} cannot be written to")


def check_space(target: Path, needed: int) -> None:
    """Refuse what the disk has no room for, what dead writers left behind counted as room."""
    remove_abandoned(target)
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        raise Refusal(f"the output {target.name} needs {needed:,} bytes and the disk has {free:,}")


class Writer:
    """Takes the parts of one array in order."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, part: AnyArray) -> None:
        """Write the next elements, in C order."""
        flat = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        for at in range(0, flat.size, _BLOCK):
            self._stream.write(flat[at : at + _BLOCK].data)


@contextlib.contextmanager
def written(
    target: Path, shape: tuple[int, ...], dtype: np.dtype[Any], *, force: bool
) -> Iterator[Writer]:
    """Open the file for an array of a shape; it gets its name when the block ends well."""
    with _complete(target, force=force) as (_, stream):
        if target.suffix.lower() == ".npz":
            with (
                zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive,
                archive.open(f"{MEMBER}.npy", "w", force_zip64=True) as member,
            ):
                member.write(npy_header(shape, dtype))
                yield Writer(member)
        else:
            stream.write(npy_header(shape, dtype))
            yield Writer(stream)


@contextlib.contextmanager
def placed(
    target: Path, shape: tuple[int, ...], dtype: np.dtype[Any], *, force: bool
) -> Iterator[tuple[Path, int]]:
    """Make an .npy file whose numbers others write, in any order; gives its path and where they begin.

    It gets its name when the block ends well.
    """
    with _complete(target, force=force) as (partial, stream):
        head = npy_header(shape, dtype)
        stream.write(head)
        stream.truncate(len(head) + math.prod(shape) * dtype.itemsize)
        stream.flush()
        yield partial, len(head)


def write_archive(target: Path, arrays: Mapping[str, AnyArray], *, force: bool) -> None:
    """Write an .npz file of several arrays, whole or not at all."""
    check_space(target, sum(array.nbytes + 512 for array in arrays.values()))
    with (
        _complete(target, force=force) as (_, stream),
        zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive,
    ):
        for name, array in zip(_members(arrays), arrays.values(), strict=True):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(npy_header(array.shape, array.dtype))
                Writer(member).write(array)


def write_text(target: Path, text: str, *, force: bool) -> None:
    """Write a text, whole or not at all."""
    with _complete(target, force=force) as (_, stream):
        stream.write(text.encode())


def _members(names: Iterable[str]) -> list[str]:
    """Return names for an archive, each once: those that need no change keep theirs, the others get a number."""
    given = list(names)
    taken = {name for name in given if _member(name) == name}
    found = []
    for name in given:
        member, number = _member(name), 1
        while member != name and member in taken:
            number += 1
            member = f"{_member(name)}_{number}"
        taken.add(member)
        found.append(member)
    return found


def _member(name: str) -> str:
    """Return a name that leads nowhere when somebody unpacks the archive."""
    parts = (part if part.strip(".") else "_" for part in name.replace("\\", "_").split("/"))
    return "/".join(parts).replace(":", "_").replace("\0", "_")


@contextlib.contextmanager
def _complete(target: Path, *, force: bool) -> Iterator[tuple[Path, IO[bytes]]]:
    """Open a file that gets its name when the block ends well; gives the name it has until then, too."""
    remove_abandoned(target)
    partial, stream = _open(target)
    try:
        with stream:
            yield partial, stream
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # an open file cannot be renamed there
                _name(partial, target, force=force)
        if sys.platform == "win32":
            _name(partial, target, force=force)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Refusal(f"the disk is full: {target.name} was not written") from None
        raise
    finally:
        partial.unlink(missing_ok=True)


def _open(target: Path) -> tuple[Path, IO[bytes]]:
    while True:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            stream = os.fdopen(os.open(partial, flags, 0o666), "w+b")
        except OSError as error:
            raise Refusal(f"cannot write to {target.parent}: {error.strerror or error}") from None
        if lock(stream, unknown=True) and os.fstat(stream.fileno()).st_nlink:
            return partial, stream
        stream.close()  # somebody took it for abandoned between the two calls


def npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Return what `numpy.save` would write in front of the numbers."""
    native = np.dtype(dtype)
    described = native.str if native.kind == "V" else np.lib.format.dtype_to_descr(native)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": described, "fortran_order": False, "shape": tuple(shape)}
    )
    return stream.getvalue()


def _name(partial: Path, target: Path, *, force: bool) -> None:
    """Give the finished file its name; without `force`, not over one that appeared in the meantime."""
    if force:
        partial.replace(target)
    else:
        try:
            os.link(partial, target)
        except FileExistsError:
            raise Refusal(
                f"the output {target.name} appeared while it was computed; it is kept"
            ) from None
        except OSError:  # a file system without links
            partial.replace(target)
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Make names durable."""
    if hasattr(os, "O_DIRECTORY"):
        with contextlib.suppress(OSError):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def remove_abandoned(target: Path) -> None:
    """Remove what writers left behind that were killed: files and folders that nobody has locked."""
    for path in target.parent.glob(f".{_escaped(target.name)}.*{PARTIAL}"):
        is_folder = path.is_dir()
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
            try:
                if lock(handle, unknown=False):
                    shutil.rmtree(path) if is_folder else path.unlink()
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def lock(handle: int | IO[bytes], *, unknown: bool) -> bool:
    """Lock a file or a folder until it is closed, by its process's death if need be; tells whether nobody else has.

    `unknown` is the answer where files cannot be locked.
    """
    if sys.platform == "win32":
        return unknown
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return unknown
    return True
