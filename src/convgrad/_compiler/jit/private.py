"""A folder that is ours alone: opened once, judged by what was opened, and used through that from then on.

A name can mean another folder a moment after it was looked at, if somebody else may write its parent. So the folder is
opened first, without following a link, and what is open is checked; its files are opened, renamed, listed and removed
relative to it. Windows has no such calls: there names are used, and the user's profile is private by its own rules.

Signal handlers may raise after any call, also after the one that has just opened a file. So descriptors are opened by
`hold`, straight into a list that its owner has made before, and each owner closes its one descriptor in a `finally`:

    held: list[int] = []
    try:
        private.hold(held, path, flags)
        ...
    finally:
        for descriptor in held:
            os.close(descriptor)

Python runs signal handlers after calls, at jumps back and at the start of functions, not in between. So once the
descriptor is in the list it is closed, which an `__exit__` in Python or a second descriptor in the list would not be.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

BY_DESCRIPTOR = (
    {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_DIRECTORY")
    and hasattr(os, "O_NOFOLLOW")
)
"""Whether the system can work relative to an open folder."""


def _flags(*names: str) -> int:
    """Return those flags of `os.open` that this system has, and not to be inherited by children."""
    names = (*names, "O_CLOEXEC", "O_NOINHERIT", "O_BINARY")
    return functools.reduce(int.__or__, (getattr(os, name, 0) for name in names))


_FOLDER = _flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW")
_READ = _flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
"""Not following links, and not waiting until somebody writes into a pipe."""
_CREATE = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW")


class Refusal(OSError):
    """Why a folder must not be used."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        """One of: link, no folder, not ours, shared."""


@dataclass(frozen=True)
class Folder:
    """A folder that is open and ours."""

    path: Path
    descriptor: int | None
    """None where the system works with names."""

    def open(self, name: str, held: list[int]) -> os.stat_result:
        """Open a file to read into `held` and return its status; raises OSError if it cannot be or is a link."""
        if self.descriptor is None and stat.S_ISLNK(os.lstat(self.path / name).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        hold(held, self._at(name), _READ, self.descriptor)
        return os.fstat(held[-1])

    def create(self, name: str, held: list[int]) -> None:
        """Make a new file to write into `held`, which nobody else can read."""
        hold(held, self._at(name), _CREATE, self.descriptor)
        if hasattr(os, "fchmod"):
            os.fchmod(held[-1], 0o600)  # whatever the umask has taken away

    def replace(self, name: str, wanted: str) -> None:
        """Give a file another name, in the place of what has that."""
        here = self.descriptor
        os.replace(self._at(name), self._at(wanted), src_dir_fd=here, dst_dir_fd=here)

    def link(self, name: str, second: str) -> None:
        """Give a file a second name, which nothing has yet; raises OSError where the system or the disk has none."""
        here = self.descriptor
        if not hasattr(os, "link") or (here is not None and os.link not in os.supports_dir_fd):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), second)
        os.link(self._at(name), self._at(second), src_dir_fd=here, dst_dir_fd=here)

    def drop(self, name: str) -> bool:
        """Remove a file or a link, never what it points to; tells whether it is gone by our doing."""
        try:
            os.unlink(self._at(name), dir_fd=self.descriptor)  # pathlib knows no descriptors
        except OSError:
            return False
        return True

    def touch(self, name: str, descriptor: int) -> None:
        """Let an open file be used now."""
        os.utime(descriptor if os.utime in os.supports_fd else self._at(name))

    def files(self) -> list[tuple[str, os.stat_result]]:
        """Return name and status of all that is in it, as far as the system tells."""
        found = []
        place = self.path if self.descriptor is None else self.descriptor
        with contextlib.suppress(OSError), os.scandir(place) as listing:
            for item in listing:
                with contextlib.suppress(OSError):
                    found.append((item.name, item.stat(follow_symlinks=False)))
        return found

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)


Result = TypeVar("Result")


def hold(held: list[int], path: str | Path, flags: int, folder: int | None = None) -> None:
    """Open a file, with the descriptor in `held` before anything else can happen: see above."""
    opened = map(functools.partial(os.open, dir_fd=folder), (path,), (flags,), (0o600,))
    held.extend(opened)


def within(path: Path, act: Callable[[Folder], Result]) -> Result:
    """Return what `act` makes of a folder; raises Refusal if it is not ours alone, OSError if it cannot be opened."""
    held: list[int] = []
    try:
        return act(_enter(path, held))
    finally:
        for descriptor in held:
            os.close(descriptor)


def _enter(path: Path, held: list[int]) -> Folder:
    if not BY_DESCRIPTOR:
        _check(os.lstat(path))
        return Folder(path, None)
    try:
        hold(held, path, _FOLDER)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            _check(os.lstat(path))  # says what is there; it was not opened, so this decides nothing
        raise
    _check(os.fstat(held[-1]))
    return Folder(path, held[-1])


def make_folder(path: Path) -> None:
    """Make a folder and the parents it lacks, each with mode 0700 whatever the umask."""
    try:
        _make_one(path)
    except FileNotFoundError:
        make_folder(path.parent)
        _make_one(path)


def _make_one(path: Path) -> None:
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102  # pathlib would make parents for everybody
    except FileExistsError:
        return
    # A umask can only take away. One that takes our own rights would leave a folder that not even we can enter.
    if hasattr(os, "geteuid") and stat.S_IMODE(os.lstat(path).st_mode) & 0o777 != 0o700:
        try:
            os.chmod(path, 0o700, follow_symlinks=False)  # noqa: PTH101  # Python 3.10's Path.chmod does not
        except NotImplementedError:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from None


def is_private(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Tell whether something is of its kind and nobody else can have written it."""
    return is_kind(status.st_mode) and _is_owned(status) and not _is_shared(status)


def _check(status: os.stat_result) -> None:
    """Raise Refusal unless this is a folder of ours alone."""
    if stat.S_ISLNK(status.st_mode):
        raise Refusal("link", "it is a link, and links are not followed")
    if not stat.S_ISDIR(status.st_mode):
        raise Refusal("no folder", "it is not a folder")
    if not _is_owned(status):
        raise Refusal("not ours", f"it belongs to user {status.st_uid}, we are {os.geteuid()}")
    if _is_shared(status):
        mode = stat.S_IMODE(status.st_mode)
        raise Refusal("shared", f"others may write there (mode {mode:04o}; chmod go-w ends that)")


def _is_owned(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _is_shared(status: os.stat_result) -> bool:
    # Windows: the profile folder is private by its own rules.
    return hasattr(os, "geteuid") and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
