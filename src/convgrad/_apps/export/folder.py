"""The folder of a pack: all of its files appear, or none.

A folder that is not there is written beside its name and then given it. In one that is there, every file is written
beside its name first, and the names are given when all of them are on disk. If that fails, what was there is put back.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..._base.errors import ArgumentError, ArgumentTypeError, shown
from ..._base.files import open_regular


def named(out: object) -> Path:
    """Return the folder that a caller named."""
    if not isinstance(out, str | os.PathLike):
        raise ArgumentTypeError(f"export: `out` must be a path, got {shown(out)}.")
    text = os.fspath(out)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError(f"export: `out` must name a folder, got {shown(text)}.")
    return Path(text)


def check(folder: Path, names: Mapping[str, bytes] | list[str], *, force: bool) -> Path:
    """Refuse a folder that cannot be written, before anything is compiled; returns where links lead.

    A file that is there already is replaced with `force` only, unless it holds the same bytes.
    """
    try:
        place = folder.resolve()
        exists = place.exists()
    except (OSError, RuntimeError) as error:
        raise ArgumentError(
            f"export: `out` leads nowhere: {shown(str(folder))}: {getattr(error, 'strerror', None) or error}."
        ) from None
    if exists and not place.is_dir():
        raise ArgumentError(f"export: `out` must be a folder, got the file {folder}.")
    for name in names:
        there = place / name
        if there.is_dir():
            raise ArgumentError(f"export: {folder / name} is a folder, and a file of the pack.")
        if force or not there.exists():
            continue
        if not isinstance(names, Mapping) or _content(there) != names[name]:
            raise ArgumentError(
                f"export: `out`: {folder / name} exists; `force` (--force) replaces it."
            )
    above = next(each for each in (place, *place.parents) if each.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ArgumentError(f"export: `out`: {above} cannot be written to.")
    return place


def _content(path: Path) -> bytes | None:
    """Return what is in a file; None where that cannot be known, such as of a pipe."""
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError:
        return None


def write(place: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a pack; an error or Ctrl-C leaves everything as it was."""
    ending = f"{secrets.token_hex(6)}.convgrad-partial"
    if place.exists():
        _replace(place, files, ending)
        return
    missing = [each for each in place.parents if not each.exists()]
    part = place.with_name(f".{ending}")  # not with its name: that may be as long as names may be
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        for name, data in files.items():
            _write(part / name, data)
        part.rename(place)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


def _replace(place: Path, files: Mapping[str, bytes], ending: str) -> None:
    """Write files into a folder that is there; those they replace are kept until the last one has its name."""
    parts = {name: place / f".{name}.{ending}" for name in files}
    kept = {name: place / f".{name}.old.{ending}" for name in files}
    renaming = False
    try:
        for name, data in files.items():
            _write(parts[name], data)
        renaming = True
        for name, part in parts.items():
            with suppress(FileNotFoundError):
                (place / name).rename(kept[name])
            part.rename(place / name)
    except BaseException:
        for name, part in parts.items():
            with suppress(OSError):
                if renaming and not part.exists():
                    (place / name).unlink()
            with suppress(FileNotFoundError):
                kept[name].replace(place / name)
            with suppress(OSError):
                part.unlink(missing_ok=True)
        raise
    for each in kept.values():
        with suppress(OSError):
            each.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
