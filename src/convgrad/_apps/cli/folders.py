"""Results that are folders: complete under their name, or not there.

As a file (`sink`), a folder is written under another name beside its own, which is locked while its writer lives. An
old result that is to be replaced stays until the new one is complete. A folder is replaced only if it is what it would
be replaced by: nobody means to lose a home folder by --force.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from . import sink
from .verb import Refusal

_OLD = ".convgrad-old"


def check(path: Path, *, force: bool, ours: Callable[[Path], bool], what: str) -> Path:
    """Refuse a name that cannot be written; `ours` tells whether an existing folder is such a result."""
    target = sink.resolved(path)
    if target.exists():
        if not force:
            raise Refusal(f"the output {path} exists; --force replaces it")
        if not target.is_dir() or not (ours(target) or not any(target.iterdir())):
            raise Refusal(f"the output {path} exists and is not {what}; it is kept, --force or not")
    sink.check_parent(path, target)
    return target


@contextlib.contextmanager
def complete(target: Path, *, force: bool) -> Iterator[Path]:
    """Make an empty folder that gets its name when the block ends well."""
    sink.remove_abandoned(target)
    _recover(target)
    partial, lock = _made(target)
    try:
        yield partial
        if hasattr(os, "sync"):
            os.sync()  # thousands of files, written by many processes: one by one takes longer
        _name(partial, target, force=force)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Refusal(f"the disk is full: {target.name} was not written") from None
        raise
    finally:
        remove(partial)
        if lock is not None:
            os.close(lock)


def remove(folder: Path) -> None:
    """Remove a folder into which somebody may still be writing for a moment."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _made(target: Path) -> tuple[Path, int | None]:
    while True:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{sink.PARTIAL}")
        try:
            partial.mkdir()
        except OSError as error:
            raise Refusal(f"cannot write to {target.parent}: {error.strerror or error}") from None
        if sys.platform == "win32":
            return partial, None  # folders cannot be opened there
        with contextlib.suppress(FileNotFoundError):  # somebody took it for abandoned
            lock = os.open(partial, os.O_RDONLY)
            if sink.lock(lock, unknown=True) and partial.exists():
                return partial, lock
            os.close(lock)


def _recover(target: Path) -> None:
    """Put an old result back that stepped aside for one that never came, and remove it where one did."""
    for aside in target.parent.glob(f".{glob.escape(target.name)}.????????{_OLD}"):
        if not target.exists():
            with contextlib.suppress(OSError):  # another run may have been quicker
                aside.rename(target)
                continue
        shutil.rmtree(aside, ignore_errors=True)


def _name(partial: Path, target: Path, *, force: bool) -> None:
    """Give the finished folder its name; without `force`, not over one that appeared in the meantime."""
    if not target.exists():
        partial.rename(target)
        sink.sync_folder(target.parent)
        return
    if not force:
        raise Refusal(f"the output {target.name} appeared while it was computed; it is kept")
    # A folder cannot be put in the place of one that is not empty: the old one steps aside, and back if that fails.
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_OLD}")
    target.rename(aside)
    try:
        partial.rename(target)
    except OSError as error:
        _recover(target)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise Refusal(
                f"the output {target.name} was replaced by another run; it is kept"
            ) from None
        raise
    sink.sync_folder(target.parent)
    shutil.rmtree(aside, ignore_errors=True)
