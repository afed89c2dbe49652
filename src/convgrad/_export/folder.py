"""The folder of a pack: all of its files appear, or none.

A folder that is not there is written beside its name and then given it. In one that is there, every file is written
beside its name first, and the names are given when all of them are on disk.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .._errors import ArgumentError


def check(folder: Path, names: Mapping[str, bytes] | list[str], *, force: bool) -> Path:
    """Refuse a folder that cannot be written, before anything is compiled; returns where links lead.

    A file that is there already is replaced with `force` only, unless it holds the same bytes.
    """
    try:
        place = folder.resolve()
    except (OSError, RuntimeError) as error:
        raise ArgumentError(f"export: `out` leads nowhere: {folder}: {error}.") from None
    if place.exists() and not place.is_dir():
        raise ArgumentError(f"export: `out` must be a folder, got the file {folder}.")
    for name in names:
        there = place / name
        if there.is_dir():
            raise ArgumentError(f"export: {folder / name} is a folder, and a file of the pack.")
        if not force and there.exists():
            same = isinstance(names, Mapping) and there.read_bytes() == names[name]
            if not same:
                raise ArgumentError(
                    f"export: `out`: {folder / name} exists; `force` (--force) replaces it."
                )
    above = next(each for each in (place, *place.parents) if each.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ArgumentError(f"export: `out`: {above} cannot be written to.")
    return place


def write(place: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a pack; OSError leaves the folder as it was."""
    ending = f"{secrets.token_hex(6)}.convgrad-partial"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name[:100]}.{ending}")
        try:
            part.mkdir()
            for name, data in files.items():
                _write(part / name, data)
            part.rename(place)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        return
    parts = {name: place / f".{name}.{ending}" for name in files}
    try:
        for name, data in files.items():
            _write(parts[name], data)
        for name, part in parts.items():
            part.replace(place / name)
    except BaseException:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
