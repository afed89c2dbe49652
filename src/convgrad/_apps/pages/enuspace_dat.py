"""The file beside an enuSpace page that holds its large values: `<page>.dat`, raw numbers, little-endian.

No path is ever taken from a page: the file has the page's base name and lies in the page's folder. It is normal that
it is not there. Whatever is wrong with it, the page is read, and the value is marked as missing.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, shown
from ..._base.files import open_regular
from .page import Block, Page, Value
from .setting_texts import VAR_TYPES, shape
from .tensor_texts import elements

MOST_BYTES = 1 << 31
"""Read from one file."""


class Store:
    """The values of one page, read as they are asked for.

    >>> with Store(None) as store:
    ...     value, trouble = store.fetch("float", (2,), "0")
    >>> value.missing, trouble
    (True, 'its numbers are missing: no file is beside it')
    """

    def __init__(self, page: Path | None) -> None:
        """Name the page; None is one without a folder."""
        self._page = page
        self._file: BinaryIO | None = None
        self._trouble = ""
        self._size = 0
        self._left = 0

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def fetch(self, type: str, shape: tuple[int, ...] | None, position: str) -> tuple[Value, str]:
        """Return a value and what is wrong with it, if something is."""
        array, trouble = self._array(type, shape, position)
        value = Value(type=type, shape=shape, array=array, missing=array is None)
        return value, f"its numbers are missing: {trouble}" if trouble else ""

    def _array(
        self, type: str, shape: tuple[int, ...] | None, position: str
    ) -> tuple[AnyArray | None, str]:
        dtype = VAR_TYPES.get(type)
        if dtype is None or dtype.kind == "O":
            return None, f"no numbers of type {shown(type)} are stored"
        if shape is None:
            return None, "its shape is not known"
        digits = position.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            return None, f"`binary-pos` must be a whole number, 0 or more, got {shown(position)}"
        try:
            begin, length = int(digits), elements(shape) * dtype.itemsize
        except ArgumentError as error:
            return None, str(error)
        self._open()
        if self._file is None:
            return None, self._trouble
        if begin + length > self._size:
            needs = f"{type} {shown(list(shape))} at byte {begin} needs {shown(length)} bytes"
            return None, f"{needs}, and the file beside it has {self._size}"
        if length > self._left:
            # Values do not overlap; together they are never more than the file.
            return None, "the page asks for more bytes than the file has"
        self._left -= length
        try:
            self._file.seek(begin)
            data = self._file.read(length)
        except OSError as error:
            return None, f"the file beside it cannot be read: {error.strerror or error}"
        if len(data) != length:
            return None, "the file beside it became shorter"
        if dtype.kind == "b":
            return (np.frombuffer(data, np.uint8) != 0).reshape(shape), ""
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape), ""

    def _open(self) -> None:
        if self._file is not None or self._trouble:
            return
        if self._page is None:
            self._trouble = "no file is beside it"
            return
        name = shown(f"{self._page.stem}.dat")
        try:
            beside = self._page.with_suffix(".dat")
            real = beside.resolve(strict=True)
            if real.parent != self._page.parent.resolve(strict=True):
                self._trouble = f"{name} leads out of the page's folder"
                return
            self._file = open_regular(real)
            self._size = os.fstat(self._file.fileno()).st_size
            self._left = min(self._size, MOST_BYTES)
        except FileNotFoundError:
            self._trouble = f"there is no {name} beside the page"
        except (
            OSError,
            RuntimeError,
            ValueError,
        ) as error:  # RuntimeError: links in a circle, before Python 3.13
            reason = getattr(error, "strerror", None) or error
            self._trouble = f"{name} cannot be read: {reason}"


def stored_shape(
    page: Page, block: Block, pin: str, type: str, text: str
) -> tuple[int, ...] | None:
    """Return the shape a page states for a pin; one that cannot be read becomes a note."""
    if not text.strip():
        return None if type == "string" else ()
    try:
        return shape(text)
    except ArgumentError as error:
        page.note(block.id, f"pin `{pin}`: {error}")
        return None
