"""Compiled kernels on disk: one file each, trusted only when it is beyond doubt.

The folder is ours alone (mode 0700). An entry is read if it is a regular file, ours, writable by
nobody else, whole by its checksum, and holds the very key that is asked for; otherwise it does
not exist, and is removed where that is ours to do. Entries appear by renaming, so a reader sees
all or nothing however many processes write. Nothing that goes wrong here is an error: a broken,
full or read-only disk costs a recompile.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from convgrad import _config

_MAGIC = b"convgrad kernel 1\n"
_HEADER = struct.Struct("<32sIIQQ")
"""Checksum of all that follows it; lengths of key, symbol and code; scratch bytes."""
_SUFFIX = ".kernel"
_PARTIAL = ".partial"
_FOLDER = "kernels-1"
_TOUCH_AFTER = 3600.0
"""Seconds before a hit renews an entry's time: eviction needs hours, not a write per load."""
_ABANDONED_AFTER = 60.0
"""Seconds after which an unfinished file belongs to a process that died. Writing takes milliseconds, and a writer whose
file is gone only fails to keep its entry."""


@dataclass(frozen=True)
class Entry:
    """What one file holds."""

    symbol: str
    scratch_bytes: int
    code: bytes
    """The relocatable object."""


def folder() -> Path | None:
    """Return the folder entries live in, or None if the disk is not to be used."""
    if not _config.get("disk_cache"):
        return None
    chosen = _config.get("cache_dir")
    try:
        base = Path(chosen).expanduser() if chosen else platform_folder()
    except RuntimeError:  # no home directory
        return None
    return base / _FOLDER


def platform_folder() -> Path:
    """Return where this platform keeps what can be made again."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "convgrad"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "convgrad"
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # The standard says that a relative path there is to be ignored.
    return (Path(chosen) if chosen.startswith("/") else home / ".cache") / "convgrad"


def read(digest: str, key: str) -> Entry | None:
    """Return the entry for `key`, or None."""
    place = folder()
    if place is None:
        return None
    path = place / (digest + _SUFFIX)
    try:
        if not _is_private(os.lstat(place), stat.S_ISDIR):
            return None
        # Looked at before it is opened: a pipe would wait for a writer for ever. Nobody else can put another file
        # there in between, since the folder is ours.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            _drop(path)
            return None
        # A file object, which closes itself however the call ends: signal handlers may raise anywhere.
        with io.FileIO(path, "rb") as file:
            status = os.fstat(file.fileno())
            entry = _decode(file.readall(), key) if _is_private(status, stat.S_ISREG) else None
    except OSError:
        # Not there, or not to be had now. Too many open files, a worn disk or a server that has forgotten the file
        # say nothing about what it holds.
        return None
    if entry is None:
        _drop(path)
    elif time.time() - status.st_mtime > _TOUCH_AFTER:
        with contextlib.suppress(OSError):
            os.utime(path)
    return entry


def write(digest: str, key: str, entry: Entry) -> bool:
    """Keep an entry; tells whether it could be kept."""
    place = folder()
    if place is None:
        return False
    partial = place / f"{digest}.{os.getpid()}.{time.monotonic_ns()}{_PARTIAL}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(os.lstat(place), stat.S_ISDIR):
            return False
        content = _encode(key, entry)
        with io.FileIO(partial, "xb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
            _write_all(file, content)
        partial.replace(place / (digest + _SUFFIX))
    except OSError:
        _drop(partial)
        return False
    except BaseException:  # Ctrl-C, wherever it struck
        _drop(partial)
        raise
    if _looks_full(place, len(content)):
        _evict(place, _config.get("cache_bytes"))
    return True


def _looks_full(place: Path, written: int) -> bool:
    """Tell, after a write of so many bytes, whether the folder is too large, and measure it only where it may be.

    Looking at 15,000 files after every write took 200 ms each time. The first look of a process decides how many more
    bytes it may write before the next one: an eighth of what is free, since others may write at the same time.
    """
    limit: int = _config.get("cache_bytes")
    left = _looks.get((place, limit), 0) - written
    if left > 0:
        _looks[place, limit] = left
        return False
    used = sum(size for _, size, _ in _files(place))
    _looks[place, limit] = max(limit - used, 0) // 8
    return used > limit


_looks: dict[tuple[Path, int], int] = {}
"""By folder and bound: the bytes this process may write before it looks again."""


def clear() -> int:
    """Remove all entries; returns how many."""
    place = folder()
    removed = 0
    for path, _, _ in _files(place) if place is not None else ():
        removed += _drop(path)
    return removed


def usage() -> tuple[int, int]:
    """Return how many entries there are and their bytes."""
    place = folder()
    files = _files(place) if place is not None else []
    return len(files), sum(size for _, size, _ in files)


def _is_private(status: os.stat_result, is_kind: object) -> bool:
    """Tell whether something is of its kind and nobody else can have written it."""
    assert callable(is_kind)
    if not is_kind(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the profile folder is private by its own rules
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _encode(key: str, entry: Entry) -> bytes:
    name, symbol = key.encode(), entry.symbol.encode()
    lengths = _HEADER.pack(b"", len(name), len(symbol), len(entry.code), entry.scratch_bytes)[32:]
    rest = lengths + name + symbol + entry.code
    return _MAGIC + hashlib.blake2b(rest, digest_size=32).digest() + rest


def _decode(content: bytes, key: str) -> Entry | None:
    start = len(_MAGIC)
    if content[:start] != _MAGIC or len(content) < start + _HEADER.size:
        return None
    checksum, name, symbol, code, scratch = _HEADER.unpack_from(content, start)
    if hashlib.blake2b(content[start + 32 :], digest_size=32).digest() != checksum:
        return None
    at = start + _HEADER.size
    if len(content) != at + name + symbol + code or content[at : at + name] != key.encode():
        return None
    at += name
    return Entry(content[at : at + symbol].decode(), scratch, content[at + symbol :])


def _write_all(file: io.FileIO, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[file.write(view) :]


def _drop(path: Path) -> bool:
    """Remove a file or a link, never what it points to; tells whether it is gone by our doing."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _files(place: Path) -> list[tuple[Path, int, float]]:
    """Return path, size and time of all entries; unfinished files of dead processes are removed."""
    found = []
    try:
        with os.scandir(place) as listing:
            for item in listing:
                with contextlib.suppress(OSError):
                    status = item.stat(follow_symlinks=False)
                    path = Path(item.path)
                    if item.name.endswith(_SUFFIX):
                        found.append((path, status.st_size, status.st_mtime))
                    elif item.name.endswith(_PARTIAL) and _is_abandoned(status):
                        _drop(path)
    except OSError:
        return found
    return found


def _is_abandoned(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime > _ABANDONED_AFTER


def _evict(place: Path, limit: int) -> None:
    """Drop the entries used longest ago until the rest fits."""
    files = _files(place)
    total = sum(size for _, size, _ in files)
    for path, size, _ in sorted(files, key=lambda file: file[2]):
        if total <= limit:
            break
        _drop(path)
        total -= size
