"""Arrays NumPy has saved, read with care: what a header says is compared with what is there before memory is asked for.

A few kilobytes of a compressed member can unpack to gigabytes, so nothing is unpacked before its header was read, and
then only what the header says.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import said as quoted
from .verb import Refusal

_LONGEST_HEADER = 1 << 16
"""Bytes looked at; NumPy itself refuses headers of more than 10,000, but only when it has read them."""
_PIECE = 1 << 20
"""Bytes unpacked at a time."""
_STOPPABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Python unpacks bzip2 and LZMA as far as they go, whatever was asked for; NumPy writes neither."""


@dataclass(frozen=True)
class Header:
    """What stands before the numbers."""

    shape: tuple[int, ...]
    fortran: bool
    stored: np.dtype[Any]
    length: int
    """Its own, in bytes."""

    @property
    def nbytes(self) -> int:
        """Of the numbers."""
        return math.prod(self.shape) * self.stored.itemsize


def member_header(name: str, handle: IO[bytes]) -> Header:
    """Read the header that begins at the handle's position."""
    readers: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
        # Differs in field names only, which no array of numbers has.
        (3, 0): np.lib.format.read_array_header_2_0,
    }
    stream = io.BytesIO(handle.read(_LONGEST_HEADER))
    try:
        version = np.lib.format.read_magic(stream)
        shape, fortran, stored = readers[version](stream)
    except KeyError:
        raise Refusal(f"{name} is of an unknown version of NumPy's format") from None
    except Exception as error:  # whatever NumPy's parser meets in a file of anything
        reason = " ".join(str(error).split())[:120]
        raise Refusal(f"{name} is not an array NumPy saved, or damaged: {reason}") from None
    # True is an int to NumPy's parser, and equal to 1: problems remembered under either would be mixed up.
    if any(type(size) is not int or size < 0 for size in shape):
        raise Refusal(f"{name} is damaged: its shape is {list(shape)}")
    return Header(tuple(shape), bool(fortran), stored, stream.tell())


@dataclass(frozen=True)
class Member:
    """An array in an .npz file, of which the header is known."""

    name: str
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo
    header: Header

    def unpacked(self, dtype: np.dtype[Any] | None = None) -> AnyArray:
        """Return the numbers, as the header describes them or as `dtype`; zipfile compares the checksum."""
        head = self.header
        flat = np.empty(math.prod(head.shape), head.stored if dtype is None else dtype)
        try:
            with self.archive.open(self.info) as part:
                part.read(head.length)
                _fill(flat.view(np.uint8), part)
        except Exception as error:  # those of zipfile, zlib and their kin have no base in common
            raise Refusal(f"{self.name} is damaged: {quoted(error)}") from None
        return flat.reshape(head.shape, order="F" if head.fortran else "C")


def member(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    """Read the header of a member, and compare what it says with the size of the member."""
    if info.compress_type not in _STOPPABLE:
        raise Refusal(f"{name} is packed otherwise than NumPy does: it must be stored or deflated")
    if not info.file_size:
        raise Refusal(f"{name} is empty")
    try:
        with archive.open(info) as part:
            head = member_header(name, part)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(f"{name} is damaged: {quoted(error)}") from None
    if head.stored.hasobject:
        raise Refusal(f"{name} holds Python objects, which are never loaded: they could run code")
    there = info.file_size - head.length
    if there < head.nbytes:
        raise Refusal(f"{name} is truncated: it holds {there:,} of {head.nbytes:,} bytes of data")
    if there > head.nbytes:
        raise Refusal(
            f"{name} is damaged: its shape {list(head.shape)} has {head.nbytes:,} bytes of data, it holds {there:,}"
        )
    return Member(name, archive, info, head)


def _fill(bytes_: AnyArray, part: IO[bytes]) -> None:
    for at in range(0, bytes_.size, _PIECE):
        piece = bytes_[at : at + _PIECE]
        content = part.read(piece.size)
        if len(content) < piece.size:
            raise EOFError("it ends early")
        piece[:] = np.frombuffer(content, np.uint8)
    part.read(1)  # its end, where the checksum is compared
