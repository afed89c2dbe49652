"""A path to a page, whatever the format: our JSON, enuSpace's JSON, enuSpace's SVG."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from ..._base.errors import ArgumentError, said, shown
from ..._base.files import open_regular
from . import document, enuspace_json, enuspace_svg
from .loading import MOST_BYTES, decoded, json_of
from .page import Page


def read_page(path: str | os.PathLike[str]) -> Page:
    """Read a page file: what it is, its content says.

    Of an enuSpace page, `<page>.dat` in the same folder is read too, and nothing else. Every mistake is one
    `ArgumentError` of one line that names the file and the place.
    """
    place = Path(path)
    where = str(path) if str(path).isprintable() else shown(str(path))
    data = _bytes(place, where)
    text, _ = decoded(data, where)
    begin = text[:4096].lstrip()
    if begin.startswith("<"):
        del text
        return enuspace_svg.read_svg(data, where, place)
    if not begin.startswith("{"):
        what = "is empty" if not begin else f"begins with {shown(begin[:20])}"
        raise ArgumentError(f"{where}: a page is JSON or SVG; the file {what}")
    value = json_of(text, where)
    if "format" in value:
        return document.from_json(value, where)
    if "object" in value:
        return enuspace_json.from_json(value, where, place)
    raise ArgumentError(
        f'{where}: a page has "format" (ours) or "object" (enuSpace\'s) at its top, got {shown(list(value)[:10])}'
    )


def _bytes(path: Path, where: str) -> bytes:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MOST_BYTES:
                raise ArgumentError(f"{where}: the file has {size} bytes, more than {MOST_BYTES}")
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ArgumentError(f"{where}: there is no such file") from None
    except OSError as error:
        raise ArgumentError(
            f"{where}: the file cannot be read: {error.strerror or error}"
        ) from None
    except ValueError as error:  # a NUL in the name
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{where}: no file can have this name: {error}") from None


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page in our format, whole or not at all; links and permissions stay as they are."""
    place = Path(path)
    try:
        content = document.write(page).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{place}: half a character cannot be written: {said(error)}") from None
    target = Path(os.path.realpath(place))
    # Two tabs may save at once: neither may write into the other's part.
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            with suppress(FileNotFoundError):
                shutil.copymode(target, part)
            file.write(content)
        part.replace(target)
    except OSError as error:
        raise ArgumentError(
            f"{place}: the file cannot be written: {error.strerror or error}"
        ) from None
    finally:
        part.unlink(missing_ok=True)
