"""Compiled kernels on disk: one file each, trusted only when it is beyond doubt.

A file has two names. `<hash>.kernel` is that of the kernel's key, which is known before the kernel is written.
`<hash>.text` is that of its text, for kernels whose key has changed and whose text has not: such a kernel gets a file
of its own, with both names. Each file holds both keys and all of the code, so that none depends on another, and takes
its place once, however many names it has.

The folder is ours alone (`private`). An entry is read if it is a regular file, ours, writable by
nobody else, whole by its checksum, and holds the very key that is asked for; otherwise it does
not exist, and is removed where that is ours to do. Entries appear by renaming, so a reader sees
all or nothing however many processes write. Nothing that goes wrong here is an error: a broken,
full or read-only disk costs a recompile. `find_trouble` says what is wrong.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from convgrad._base import config

from . import private, trouble
from .private import Folder
from .trouble import Trouble

_MAGIC = b"convgrad kernel 2\n"
_HEADER = struct.Struct("<32sIIIQQ")
"""Checksum of all that follows it; lengths of key, text's key, symbol and code; scratch bytes."""
_SUFFIX = ".kernel"
_TEXT = ".text"
_PARTIAL = ".partial"
_FOLDER = "kernels-1"
_TOUCH_AFTER = 3600.0
"""Seconds before a hit renews an entry's time: eviction needs hours, not a write per load."""
_ABANDONED_AFTER = 60.0
"""Seconds after which an unfinished file belongs to a process that died. Writing takes milliseconds, and a writer whose
file is gone only fails to keep its entry."""
_NO_FILE = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EOPNOTSUPP)
"""What the systems say to opening a link or a socket."""


@dataclass(frozen=True)
class Entry:
    """What one file holds."""

    symbol: str
    scratch_bytes: int
    code: bytes
    """The relocatable object."""


class Usage(NamedTuple):
    """What is on disk."""

    kernels: int
    bytes: int
    by_text: int
    """How many of the kernels can be found by their text."""


def folder() -> Path | None:
    """Return the folder entries live in, or None if the disk is not to be used."""
    if not config.get("disk_cache"):
        return None
    chosen = config.get("cache_dir")
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
    return _read_from(digest + _SUFFIX, key, by_text=False)


def read_by_text(digest: str, key: str) -> Entry | None:
    """Return an entry whose text has this key, or None."""
    return _read_from(digest + _TEXT, key, by_text=True)


def _read_from(name: str, key: str, by_text: bool) -> Entry | None:
    place = folder()
    if place is None:
        return None
    try:
        return private.within(place, lambda inside: _read(inside, name, key, by_text))
    except OSError:
        # Not there, or not readable now. Too many open files, a worn disk or a server that has forgotten the file
        # say nothing about what it holds.
        return None


def _read(inside: Folder, name: str, key: str, by_text: bool) -> Entry | None:
    """Return an entry, or None; a file that is there and not a valid entry is removed."""
    try:
        entry = _take(inside, name, key, by_text)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        entry = None
    if entry is None:
        inside.drop(name)
    return entry


def _take(inside: Folder, name: str, key: str, by_text: bool) -> Entry | None:
    held: list[int] = []
    try:
        status = inside.open(name, held)
        if not private.is_private(status, stat.S_ISREG):
            return None
        entry = _decode(_read_all(held[0], status.st_size), key, by_text)
        if entry is not None and time.time() - status.st_mtime > _TOUCH_AFTER:
            with contextlib.suppress(OSError):
                inside.touch(name, held[0])
        return entry
    finally:
        for descriptor in held:
            os.close(descriptor)


def write(
    digest: str, key: str, entry: Entry, text: tuple[str, str] = ("", ""), compiled: bool = True
) -> bool:
    """Keep an entry; tells whether it could be kept.

    `text` is the digest and the key of its text. One that was not `compiled` is on disk already, under its text: it is
    not lost if its new name cannot be kept.
    """
    place = folder()
    if place is None:
        return False

    def act(inside: Folder) -> None:
        content = _encode(key, text[1], entry)
        _write(inside, digest, text[0], content)
        if _looks_full(inside, len(content)):
            _evict(inside, config.get("cache_bytes"))

    try:
        try:
            private.within(place, act)
        except FileNotFoundError:
            private.make_folder(place)
            private.within(place, act)
    except OSError as error:
        if compiled:
            lose(trouble.trouble_of(error))
        return False
    return True


_lost: tuple[int, Trouble | None] = (0, None)


def lose(why: Trouble) -> None:
    """Count an entry that is not kept."""
    global _lost
    _lost = (_lost[0] + 1, why)


def lost() -> tuple[int, Trouble | None]:
    """Return how many entries this process could not keep, and why not the last of them."""
    return _lost


def _write(inside: Folder, digest: str, text_digest: str, content: bytes) -> None:
    """Write a file under a name of its own, then give it those that readers know."""
    own = f"{os.getpid()}.{time.monotonic_ns()}{_PARTIAL}"
    partial, second = f"{digest}.{own}", f"{text_digest}.text.{own}"
    try:
        _fill(inside, partial, content)
        if text_digest:
            # Not all disks know second names. Without one it is compiled again after a change of the sources.
            with contextlib.suppress(OSError):
                inside.link(partial, second)
                inside.replace(second, text_digest + _TEXT)
        inside.replace(partial, digest + _SUFFIX)
    except BaseException:  # Ctrl-C too, wherever it struck
        inside.drop(partial)
        raise
    finally:
        if text_digest:
            inside.drop(second)  # if it did not get its name


def _fill(inside: Folder, name: str, content: bytes) -> None:
    held: list[int] = []
    try:
        inside.create(name, held)
        view = memoryview(content)
        while view:
            view = view[os.write(held[0], view) :]
    finally:
        for descriptor in held:
            os.close(descriptor)


def _looks_full(inside: Folder, written: int) -> bool:
    """Tell, after a write of so many bytes, whether the folder is too large, and measure it only where it may be.

    Looking at 15,000 files after every write took 200 ms each time. The first look of a process decides how many more
    bytes it may write before the next one: an eighth of what is free, since others may write at the same time.
    """
    limit: int = config.get("cache_bytes")
    left = _looks.get((inside.path, limit), 0) - written
    if left > 0:
        _looks[inside.path, limit] = left
        return False
    used = sum(file.size for file in _files(inside))
    _looks[inside.path, limit] = max(limit - used, 0) // 8
    return used > limit - limit // _SPARE


_SPARE = 16
"""A folder is full while less than this part of its bound is free: of one filled to the brim every write would look."""


_looks: dict[tuple[Path, int], int] = {}
"""By folder and bound: the bytes this process may write before it looks again."""


def clear() -> int:
    """Remove all entries; returns how many. A folder that is not ours alone is left as it is."""
    place = folder()
    if place is None:
        return 0
    try:
        return private.within(
            place, lambda inside: sum(_drop(inside, file) for file in _files(inside))
        )
    except OSError:
        return 0


def usage() -> Usage:
    """Return how many entries there are and their bytes; none in a folder that is not ours alone."""
    place = folder()
    if place is None:
        return Usage(0, 0, 0)
    try:
        files = private.within(place, _files)
    except OSError:
        return Usage(0, 0, 0)
    by_text = [name for file in files for name in file.names if name.endswith(_TEXT)]
    return Usage(len(files), sum([file.size for file in files]), len(by_text))


def find_trouble() -> Trouble | None:
    """Return why entries cannot be kept, or None; found out by writing a file, which is removed again."""
    place = folder()
    if place is None:
        return trouble.NO_HOME if config.get("disk_cache") else trouble.OFF
    try:
        private.within(place, _try_out)
    except FileNotFoundError:
        try:
            trouble.foresee(place)
        except OSError as error:
            return trouble.trouble_of(error)
    except OSError as error:
        return trouble.trouble_of(error)
    return None


def _try_out(inside: Folder) -> None:
    """Write as much as a usual entry has."""
    name = f"trial.{os.getpid()}.{time.monotonic_ns()}{_PARTIAL}"
    try:
        _fill(inside, name, bytes(8192))
    finally:
        inside.drop(name)


def _encode(key: str, text_key: str, entry: Entry) -> bytes:
    parts = [each.encode() for each in (key, text_key, entry.symbol)] + [entry.code]
    lengths = _HEADER.pack(b"", *map(len, parts), entry.scratch_bytes)[32:]
    rest = lengths + b"".join(parts)
    return _MAGIC + hashlib.blake2b(rest, digest_size=32).digest() + rest


def _decode(content: bytes, key: str, by_text: bool = False) -> Entry | None:
    start = len(_MAGIC)
    if content[:start] != _MAGIC or len(content) < start + _HEADER.size:
        return None
    checksum, *lengths, scratch = _HEADER.unpack_from(content, start)
    if hashlib.blake2b(content[start + 32 :], digest_size=32).digest() != checksum:
        return None
    at = start + _HEADER.size
    if len(content) != at + sum(lengths):
        return None
    parts = []
    for length in lengths:
        parts.append(content[at : at + length])
        at += length
    if parts[by_text] != key.encode():
        return None
    return Entry(parts[2].decode(), scratch, parts[3])


def _read_all(descriptor: int, size: int) -> bytes:
    content = os.read(descriptor, size)
    while 0 < len(content) < size:  # as a rule one call is enough
        more = os.read(descriptor, size - len(content))
        if not more:
            break
        content += more
    return content


class _File(NamedTuple):
    """One file, by all its names."""

    names: list[str]
    size: int
    used: float
    """When it was last used."""


def _files(inside: Folder) -> list[_File]:
    """Return all entries; unfinished files of dead processes are removed."""
    found: dict[object, _File] = {}
    for name, status in inside.files():
        if name.endswith((_SUFFIX, _TEXT)):
            # Windows does not tell which names are of one file: each counts as one of its own there.
            which = (status.st_dev, status.st_ino) if status.st_ino else name
            file = found.setdefault(which, _File([], status.st_size, status.st_mtime))
            file.names.append(name)
        elif name.endswith(_PARTIAL) and _is_abandoned(status):
            inside.drop(name)
    return list(found.values())


def _drop(inside: Folder, file: _File) -> bool:
    """Remove a file; tells whether it is gone by our doing."""
    gone = [inside.drop(name) for name in file.names]  # all of them, whatever comes of the first
    return all(gone)


def _is_abandoned(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime > _ABANDONED_AFTER


def _evict(inside: Folder, limit: int) -> None:
    """Drop the entries used longest ago until the rest fits with an eighth to spare."""
    files = _files(inside)
    total = sum(file.size for file in files)
    if total > limit - limit // _SPARE:
        limit -= limit // 8
    for file in sorted(files, key=lambda file: file.used):
        if total <= limit:
            break
        _drop(inside, file)
        total -= file.size
