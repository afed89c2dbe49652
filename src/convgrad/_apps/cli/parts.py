"""What a task reads: parts of files, stores and random arrays, described by plain data that travels to workers.

A part knows the absolute path of its file and opens it where it is read, which may be another machine. It never holds
an open file, and nothing is remembered between two parts: a file that changes or goes away is noticed.
"""

from __future__ import annotations

import math
import mmap
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray, DType
from ..._base.files import open_regular
from .verb import Refusal

Region = tuple[tuple[int, int], ...]
"""Of each axis: first cell, and the one behind the last."""
Chunks = tuple[tuple[int, ...], ...]
"""Of each axis: the sizes of its pieces."""
_ROWS = {row.name: row for row in dtypes.DTYPES}


class Part(Protocol):
    """A piece of an operand that a task can read."""

    def read(self) -> AnyArray: ...


class Chunked(Protocol):
    """An operand that tasks can read in parts."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def paths(self) -> tuple[str, ...]:
        """Files and folders that a reader must see."""
        ...

    def readable(self, wanted: Chunks) -> Chunks:
        """Return the chunks to read in, where others are wanted: those that cost nothing to read apart."""
        ...

    def part(self, region: Region) -> Part: ...


def row_called(name: str) -> DType:
    """Return a dtype by its name: rows are compared by identity, and what travels would be a copy."""
    return _ROWS[name]


def place(starts: Sequence[int], at: int) -> int:
    """Return which of the pieces that begin at `starts` holds a cell; of empty ones the last.

    >>> place((0, 2, 5), 0), place((0, 2, 5), 2), place((0, 2, 5), 4)
    (0, 1, 1)
    """
    return min(bisect_right(starts, at) - 1, max(len(starts) - 2, 0))


def shape_of(region: Region) -> tuple[int, ...]:
    """Return how large a region is."""
    return tuple(end - begin for begin, end in region)


@dataclass(frozen=True)
class FileArray:
    """An array inside a file, from a byte on."""

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    """Our name for it."""
    stored: str
    """NumPy's name for how the file spells it, with the byte order."""
    fortran: bool

    def with_shape(self, shape: tuple[int, ...]) -> FileArray:
        return replace(self, shape=shape)

    def images(self, begin: int, end: int) -> AnyArray:
        """Map `[begin, end)` of the first dimension."""
        row = row_called(self.dtype)
        stored: np.dtype[Any] = row.numpy if row is dtypes.BFLOAT16 else np.dtype(self.stored)
        try:
            handle = open_regular(Path(self.path))
        except OSError as error:
            raise Refusal(unseen(self.path, error.strerror or str(error))) from None
        with handle:  # a map stays when its file is closed
            mapped = Mapped(
                self.path, self.path, handle, self.offset, self.shape, row, stored, self.fortran
            )
            return mapped.images(begin, end)


@dataclass(frozen=True)
class Mapped:
    """An array inside a file, from a byte on."""

    name: str
    path: str
    handle: IO[bytes]
    """The open file: it stays the same one whatever happens to the name."""
    offset: int
    shape: tuple[int, ...]
    dtype: DType
    stored: np.dtype[Any]
    """How the file spells the dtype: the byte order may be foreign."""
    fortran: bool

    def images(self, begin: int, end: int) -> AnyArray:
        count = end - begin
        if math.prod(self.shape[1:]) * count == 0:
            return np.empty((count, *self.shape[1:]), self.dtype.numpy)
        if not self.fortran:
            return self._window(begin, (count, *self.shape[1:]))
        # The batch is the last dimension of what the file holds: all of it is read for every slice, piece by piece.
        stored = self.shape[::-1]
        result = np.empty((*stored[:-1], count), self.dtype.numpy)
        step = max(1, count * stored[0] // self.shape[0])
        for at in range(0, stored[0], step):
            rows = min(step, stored[0] - at)
            result[at : at + rows] = self._window(at, (rows, *stored[1:]))[..., begin:end]
        turned: AnyArray = result.T
        return turned

    def _window(self, first: int, shape: tuple[int, ...]) -> AnyArray:
        row = math.prod(shape[1:]) * self.stored.itemsize
        start, length = self.offset + first * row, shape[0] * row
        if (
            os.fstat(self.handle.fileno()).st_size < start + length
        ):  # touching the map would kill the process
            raise Refusal(f"{self.name} became shorter while it was read")
        skip = start % mmap.ALLOCATIONGRANULARITY
        view = mmap.mmap(
            self.handle.fileno(), length + skip, offset=start - skip, access=mmap.ACCESS_READ
        )
        if hasattr(mmap, "MADV_WILLNEED"):  # or each thread waits for the disk page by page
            view.madvise(mmap.MADV_WILLNEED)
        window: AnyArray = np.ndarray(shape, self.stored, view, skip)
        return window

    def lasting(self) -> FileArray:
        """Describe it so that it can be read after the file was closed, and elsewhere."""
        path = str(Path(self.path).absolute())
        return FileArray(
            path, self.offset, self.shape, self.dtype.name, self.stored.str, self.fortran
        )

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.lasting().path,)

    def readable(self, wanted: Chunks) -> Chunks:
        """Any part can be read by itself."""
        return wanted

    def part(self, region: Region) -> Part:
        return FilePart(self.lasting(), region)


@dataclass(frozen=True)
class FilePart:
    """A region of an array of four dimensions in a file."""

    file: FileArray
    region: Region

    def read(self) -> AnyArray:
        """Return the numbers in native byte order, copied: reading a view of a truncated file kills the process."""
        file, (images, rows, *rest) = self.file, self.region
        dtype = row_called(file.dtype).numpy
        whole = tuple((0, size) for size in file.shape[1:])
        if file.fortran or (rows, *rest) == whole or math.prod(shape_of(self.region)) == 0:
            wanted = (slice(None), *(slice(*each) for each in (rows, *rest)))
            copied: AnyArray = np.array(file.images(*images)[wanted], dtype=dtype, order="C")
            return copied
        # Only the rows that are wanted are mapped: an image may be larger than memory.
        lines = file.with_shape((file.shape[0] * file.shape[1], *file.shape[2:]))
        wanted = (slice(None), *(slice(*each) for each in rest))
        found = np.empty(shape_of(self.region), dtype)
        for at, image in enumerate(range(*images)):
            first = image * file.shape[1]
            found[at] = lines.images(first + rows[0], first + rows[1])[wanted]
        return found


@dataclass(frozen=True)
class FileParts:
    """Parts of several files, one behind the other."""

    pieces: tuple[FilePart, ...]

    def read(self) -> AnyArray:
        if len(self.pieces) == 1:
            return self.pieces[0].read()
        shapes = [shape_of(piece.region) for piece in self.pieces]
        row = row_called(self.pieces[0].file.dtype)
        result = np.empty((sum(shape[0] for shape in shapes), *shapes[0][1:]), row.numpy)
        at = 0
        for piece, shape in zip(self.pieces, shapes, strict=True):
            result[at : at + shape[0]] = piece.read()
            at += shape[0]
        return result


def unseen(path: str, reason: str) -> str:
    """Say what is wrong with a path that the command could read and a task could not."""
    return f"a task cannot read {path}: {reason}; workers must see the same file system, under the same names"
