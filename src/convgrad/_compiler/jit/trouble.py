"""Why the kernel cache cannot be used, in words a person can act on. Calls never report it; the command line asks."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from .private import Refusal


@dataclass(frozen=True)
class Trouble:
    """What is wrong with the cache."""

    kind: str
    """One of `NOT_USED`, or: read-only, no permission, full, error."""
    reason: str
    """Half a sentence about the folder."""

    @property
    def is_refusal(self) -> bool:
        """Whether the folder is not used at all. Otherwise what is in it is, and only nothing new is kept."""
        return self.kind in NOT_USED


NOT_USED = ("off", "no home", "no sources", "link", "no folder", "not ours", "shared")
OFF = Trouble("off", "it is switched off (CONVGRAD_DISK_CACHE)")
NO_HOME = Trouble("no home", "there is no home directory (CONVGRAD_CACHE_DIR names a folder)")
NO_SOURCES = Trouble(
    "no sources", "the package's own sources, by which kernels are named, cannot be read"
)

_KINDS = {
    errno.EROFS: ("read-only", "its file system is read-only"),
    errno.EACCES: ("no permission", "we may not write there"),
    errno.EPERM: ("no permission", "we may not write there"),
    errno.ENOSPC: ("full", "the disk is full"),
    errno.EDQUOT: ("full", "the disk quota is used up"),
    errno.EFBIG: ("full", "files may not grow so large (ulimit -f)"),
    errno.ENOTDIR: ("no folder", "a parent of it is not a folder"),
}


def trouble_of(error: OSError) -> Trouble:
    """Say what an error of the cache means.

    >>> trouble_of(OSError(errno.ENOSPC, "No space left on device"))
    Trouble(kind='full', reason='the disk is full')
    """
    if isinstance(error, Refusal):
        return Trouble(error.kind, str(error))
    kind, reason = _KINDS.get(
        error.errno or 0, ("error", error.strerror or str(error) or type(error).__name__)
    )
    return Trouble(kind, reason)


def foresee(path: Path) -> None:
    """Raise the OSError that making a missing folder is going to, as far as can be told without making it."""
    parent = path.parent
    while not os.path.lexists(parent) and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise _error(errno.ENOTDIR, parent)
    if not hasattr(os, "statvfs"):
        return
    disk = os.statvfs(parent)
    if disk.f_flag & os.ST_RDONLY:
        raise _error(errno.EROFS, parent)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _error(errno.EACCES, parent)
    if disk.f_bavail == 0 or (disk.f_files and disk.f_favail == 0):
        raise _error(errno.ENOSPC, parent)


def _error(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))
