"""What a run through Dask writes: an .npy file, a Zarr store or a stack of .npy files, block by block in any order.

An output says which blocks suit it, and makes a place: plain data that travels with each block's task, which writes the
block where it belongs. No two tasks write the same chunk or file at once, or else bytes that do not touch. A task that
is done again, because its worker was lost, writes the same bytes to the same place.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..._base.dtypes import AnyArray, DType
from ..._base.errors import said
from . import folders, sink, stores
from .parts import Chunks, Region, shape_of
from .verb import Refusal

_RUN = 512
"""Bytes written at a time, at the least: a call of the system takes as long as copying some 4 kB."""
_FIELD = re.compile(r"\{0?(:0?\d{0,2}d?)?\}")
_LIKE_FIELD = re.compile(r"\{\d*(:[^{}]*)?\}")
"""What looks like one: other names with braces are names."""
_FOLDER_NAMES = "{:05d}.npy"


class OutputPlace(Protocol):
    """Where tasks write."""

    def write(self, region: Region, block: AnyArray) -> None: ...


class RunOutput(Protocol):
    """A result that is complete under its name, or not there."""

    @property
    def target(self) -> Path: ...

    def blocks(self, chunks: Chunks, row: DType) -> Chunks:
        """Return the blocks it can be written in, like those given."""
        ...

    def place(self, shape: tuple[int, ...], row: DType, blocks: Chunks, *, force: bool) -> Any:
        """Open a block with an `OutputPlace` and the path workers must see; the result gets its name in the end."""
        ...


@dataclass(frozen=True)
class Archive:
    """An .npz file, which `sink` writes from front to back."""

    target: Path


def is_many(text: str) -> bool:
    """Tell whether a word stands for a store or a stack.

    >>> is_many("y.zarr"), is_many("out/{:05d}.npy"), is_many("out/"), is_many("{y}.npy")
    (True, True, True, False)
    """
    return text.lower().endswith((".zarr", "/")) or _LIKE_FIELD.search(text) is not None


def check(text: str, *, force: bool) -> RunOutput | Archive:
    """Return what kind of output is meant, after checking that it can be written."""
    name = text.rsplit("/", 1)[-1]
    # Shells complete the name of a store with a / behind it.
    if text.endswith("/") and not text.lower().endswith(".zarr/"):
        return _files(Path(text), _FOLDER_NAMES, force)
    if _LIKE_FIELD.search(text):
        return _pattern(text, name, force)
    path = Path(text)
    if path.suffix.lower() == ".zarr":
        stores.need_zarr()
        what = "one array of Zarr"
        return Store(folders.check(path, force=force, ours=stores.is_array, what=what))
    if path.suffix.lower() not in (".npy", ".npz"):
        raise Refusal(
            f"the output {text!r} must end in .npy, .npz or .zarr, be a folder with a / at its end, "
            "or a pattern such as out/{:05d}.npy"
        )
    target = sink.check(path, force=force)
    return File(target) if path.suffix.lower() == ".npy" else Archive(target)


def _pattern(text: str, name: str, force: bool) -> RunOutput:
    folder = Path(text).parent
    fields = _FIELD.findall(name)
    rest = _FIELD.sub("", name)
    if len(fields) != 1 or "{" in rest or "}" in rest or not rest.lower().endswith(".npy"):
        raise Refusal(
            f"the output {text!r} must have one number and end in .npy, as out/{{:05d}}.npy has"
        )
    if _LIKE_FIELD.search(str(folder)) or folder == Path() or folder.name in ("", "..", "."):
        raise Refusal(
            f"the output {text!r} must name a folder of its own, as out/{{:05d}}.npy does"
        )
    return _files(folder, name, force)


def _files(folder: Path, pattern: str, force: bool) -> RunOutput:
    what = "a folder of .npy files and nothing else"
    return Files(folders.check(folder, force=force, ours=_only_npy, what=what), pattern)


def _only_npy(folder: Path) -> bool:
    return all(each.suffix.lower() == ".npy" and each.is_file() for each in folder.iterdir())


@dataclass(frozen=True)
class File:
    """One .npy file."""

    target: Path

    def blocks(self, chunks: Chunks, row: DType) -> Chunks:
        return _long_runs(chunks, row)

    @contextmanager
    def place(
        self, shape: tuple[int, ...], row: DType, blocks: Chunks, *, force: bool
    ) -> Iterator[tuple[OutputPlace, Path]]:
        sink.check_space(self.target, math.prod(shape) * row.itemsize)
        with sink.placed(self.target, shape, row.numpy, force=force) as (path, start):
            yield FilePlace(str(path), start, shape), path


@dataclass(frozen=True)
class FilePlace:
    """Bytes of a file that is there."""

    path: str
    start: int
    shape: tuple[int, ...]

    def write(self, region: Region, block: AnyArray) -> None:
        # Not for reading too: clients of network file systems would then write whole pages, over others' bytes.
        handle = os.open(self.path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            _write_runs(handle, self.start, self.shape, region, block)
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Files:
    """A folder with an .npy file for each image."""

    target: Path
    pattern: str

    def blocks(self, chunks: Chunks, row: DType) -> Chunks:
        return _long_runs(chunks, row)

    @contextmanager
    def place(
        self, shape: tuple[int, ...], row: DType, blocks: Chunks, *, force: bool
    ) -> Iterator[tuple[OutputPlace, Path]]:
        head = sink.npy_header(shape[1:], row.numpy)
        sink.check_space(self.target, shape[0] * (math.prod(shape[1:]) * row.itemsize + len(head)))
        with folders.complete(self.target, force=force) as folder:
            yield FilesPlace(str(folder), self.pattern, shape[1:]), folder


@dataclass(frozen=True)
class FilesPlace:
    """Files of a folder that is there; the first task that needs a file makes it."""

    folder: str
    pattern: str
    shape: tuple[int, ...]
    """Of an image."""

    def write(self, region: Region, block: AnyArray) -> None:
        head = sink.npy_header(self.shape, block.dtype)
        size = len(head) + math.prod(self.shape) * block.dtype.itemsize
        for image, part in zip(range(*region[0]), block, strict=True):
            path = Path(self.folder) / self.pattern.format(image)
            flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
            handle = os.open(path, flags, 0o666)
            try:
                if os.fstat(handle).st_size < size:  # two that do this at once write the same bytes
                    os.write(handle, head)
                    os.ftruncate(handle, size)
                _write_runs(handle, len(head), self.shape, region[1:], part)
            finally:
                os.close(handle)


@dataclass(frozen=True)
class Store:
    """A Zarr store with one array."""

    target: Path

    def blocks(self, chunks: Chunks, row: DType) -> Chunks:
        return tuple(regular(sizes)[1] for sizes in chunks)

    @contextmanager
    def place(
        self, shape: tuple[int, ...], row: DType, blocks: Chunks, *, force: bool
    ) -> Iterator[tuple[OutputPlace, Path]]:
        chunks = tuple(regular(sizes)[0] for sizes in blocks)
        with folders.complete(self.target, force=force) as folder:
            stores.create(folder, shape, row, stores.small_enough(chunks, row.itemsize))
            yield StorePlace(str(folder)), folder


@dataclass(frozen=True)
class StorePlace:
    """A store that is there."""

    path: str

    def write(self, region: Region, block: AnyArray) -> None:
        stores.write(self.path, region, block)


def write_block(place: OutputPlace, region: Region, block: AnyArray) -> None:
    """Write a block, or say in a sentence why not."""
    if block.shape != shape_of(region):
        raise AssertionError(f"a block of {block.shape} for {region}")
    try:
        if block.size:
            place.write(region, block)
    except Refusal:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Refusal("the disk is full: nothing was written") from None
        name = error.filename or "the output"
        raise Refusal(
            f"a task cannot write to {name}: {error.strerror or error}; "
            "workers must see the same file system, under the same names"
        ) from None
    except Exception as error:  # of codecs
        raise Refusal(f"a task cannot write its block: {said(error)}") from None


def regular(sizes: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return the size of a store's chunks along an axis, and the blocks: each writes whole chunks.

    >>> regular((4, 4, 2)), regular((64, 128, 64)), regular((5, 4, 5, 4))
    ((4, (4, 4, 2)), (64, (64, 128, 64)), (5, (5, 5, 5, 3)))
    """
    sizes = tuple(size for size in sizes if size)
    if not sizes:
        return 1, (0,)
    most = max(sizes)
    if len(sizes) == 1:
        return most, sizes
    common = math.gcd(*accumulate(sizes[:-1]))
    if common * 2 >= most:
        return common, sizes
    return most, stores.cut(sum(sizes), most)


def _long_runs(chunks: Chunks, row: DType) -> Chunks:
    """Put chunks together, from the last axis on, until what lies together in the file is worth a call."""
    found = list(chunks)
    for axis in (3, 2):
        run = row.itemsize * min(found[axis], default=0)
        run *= math.prod(sum(sizes) for sizes in found[axis + 1 :])
        if len(found[axis]) > 1 and run < _RUN:
            found[axis] = (sum(found[axis]),)
        if len(found[axis]) > 1:
            break
    return tuple(found)


def _write_runs(
    handle: int, start: int, shape: tuple[int, ...], region: Region, block: AnyArray
) -> None:
    """Write a block of an array that begins at a byte of a file: each run of bytes that lie together there."""
    axis = len(shape)
    while axis > 1 and region[axis - 1] == (0, shape[axis - 1]):
        axis -= 1
    axis -= 1  # along this axis and those behind it, the block's cells lie together
    strides = [math.prod(shape[n + 1 :]) * block.dtype.itemsize for n in range(len(shape))]
    flat = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    run = math.prod(block.shape[axis:]) * block.dtype.itemsize
    first = start + region[axis][0] * strides[axis]
    for n, at in enumerate(product(*(range(*each) for each in region[:axis]))):
        offset = first + sum(cell * stride for cell, stride in zip(at, strides, strict=False))
        os.lseek(handle, offset, os.SEEK_SET)
        left = flat[n * run : (n + 1) * run].data
        while left:
            left = left[os.write(handle, left) :]
