"""Arrays in Zarr stores, of formats 2 and 3: read a region, make a new one, write a region.

Zarr answers with zeros for chunks it does not find, also where the whole store is missing. So everything that reads or
writes looks for the store first: a worker that does not see it must not compute with zeros.

Zarr has no name for bfloat16. Such an array is stored as unsigned 2-byte integers, with an attribute that says so.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray, DType
from ..._base.errors import BackendMissingError, said
from .parts import Chunks, Part, Region, row_called, shape_of, unseen
from .verb import Refusal

ATTRIBUTE = "convgrad_dtype"
_MARKS = ("zarr.json", ".zarray", ".zgroup")
"""What the folder of an array or a group holds one of."""
_LARGEST = (1 << 31) - 1
"""Bytes of a chunk that every codec takes."""


@dataclass(frozen=True)
class Stored:
    """An array of a store."""

    name: str
    """As it was written."""
    path: str
    """The folder of the array itself."""
    shape: tuple[int, ...]
    dtype: DType
    chunks: tuple[int, ...]
    """What is read and written together: shards where there are some."""

    def images(self, begin: int, end: int) -> AnyArray:
        whole = tuple((0, size) for size in self.shape[1:])
        return self.part(((begin, end), *whole)).read()

    def readable(self, wanted: Chunks) -> Chunks:
        """Keep to the store's chunks, or whole multiples of them: no chunk is decoded twice."""
        return tuple(
            sizes if _fits(sizes, chunk) else cut(sum(sizes), chunk)
            for sizes, chunk in zip(wanted, self.chunks, strict=True)
        )

    def part(self, region: Region) -> Part:
        return StoredPart(self.path, region, self.dtype.name)

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)


@dataclass(frozen=True)
class StoredPart:
    """A region of an array of a store."""

    path: str
    region: Region
    dtype: str

    def read(self) -> AnyArray:
        array = _opened(self.path, "r")
        row = row_called(self.dtype)
        try:
            found = np.asarray(array[tuple(slice(*each) for each in self.region)])
        except Exception as error:  # codecs raise whatever they like
            raise Refusal(
                f"{self.path} is damaged, or cannot be read: {said(error)}, at {_text(self.region)}"
            ) from None
        if row is dtypes.BFLOAT16:
            return np.ascontiguousarray(found, found.dtype.newbyteorder("=")).view(row.numpy)
        return found.astype(row.numpy, copy=False)


def is_store(text: str) -> bool:
    """Tell whether a word stands for a store, or for an array of one.

    >>> is_store("x.zarr"), is_store("x.zarr:raw/0"), is_store("x.npy")
    (True, True, False)
    """
    path, member = split(text)
    return path.suffix.lower() == ".zarr" or (member is None and has_mark(path))


def has_mark(path: Path) -> bool:
    """Tell whether a folder is an array or a group of Zarr."""
    return any((path / mark).is_file() for mark in _MARKS)


def is_array(path: Path) -> bool:
    """Tell whether a folder is one array of Zarr; a group may hold others."""
    if (path / ".zarray").is_file():
        return True
    try:
        found = json.loads((path / "zarr.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("node_type") == "array"


def split(text: str) -> tuple[Path, str | None]:
    """Tell a store from an array in it.

    >>> split("x.zarr:raw/0")
    (PosixPath('x.zarr'), 'raw/0')
    """
    before, colon, member = text.rpartition(":")
    if colon and before.lower().endswith(".zarr") and not Path(text).exists():
        return Path(before), member
    return Path(text), None


def read(text: str, dtype: DType | None) -> Stored:
    """Find the array, and look at what it says of itself."""
    need_zarr()
    import zarr

    path, member = split(text)
    if not path.is_dir():
        raise Refusal(
            f"cannot read {path}: {'it is not a folder' if path.exists() else 'no such store'}"
        )
    if not has_mark(path):
        raise Refusal(f"{path} is not a Zarr store: it has none of {', '.join(_MARKS)}")
    try:
        found: Any = zarr.open(path, mode="r")
        if not isinstance(found, zarr.Array):
            found, member = _of_group(path, found, member)
        elif member:
            raise Refusal(f"{path} is one array and has none called {member!r}")
    except (Refusal, BackendMissingError):
        raise
    except Exception as error:  # of JSON, codecs, dtypes Zarr does not know
        raise Refusal(f"{text} cannot be read as a Zarr store: {said(error)}") from None
    row = _row(text, found, dtype)
    where = path.absolute() / member if member else path.absolute()
    chunks = tuple(found.shards or found.chunks)
    return Stored(text, str(where), tuple(found.shape), row, chunks)


def _of_group(path: Path, group: Any, member: str | None) -> tuple[Any, str]:
    import zarr

    if member is None:
        names = [
            name for name, each in group.members(max_depth=None) if isinstance(each, zarr.Array)
        ]
        if len(names) != 1:
            listed = ", ".join(sorted(names)) or "nothing"
            raise Refusal(f"{path} holds {len(names)} arrays; name one as {path}:NAME ({listed})")
        member = names[0]
    found = group.get(member)
    if not isinstance(found, zarr.Array):
        names = sorted(
            n for n, each in group.members(max_depth=None) if isinstance(each, zarr.Array)
        )
        raise Refusal(f"{path} has no array {member!r}; it has {', '.join(names) or 'none'}")
    return found, member


def _row(name: str, array: Any, dtype: DType | None) -> DType:
    marked = array.attrs.get(ATTRIBUTE)
    stored = np.dtype(array.dtype)
    if stored.itemsize == 2 and stored.kind in "uiV" and stored.names is None:
        if marked == dtypes.BFLOAT16.name or dtype is dtypes.BFLOAT16:
            found: DType | None = dtypes.BFLOAT16
        else:
            raise Refusal(
                f"{name} holds {stored}; add --dtype bfloat16 if its items are the bits of bfloat16"
            )
    else:
        found = dtypes.find(stored) if stored.kind in "fi" else None
    if found is None:
        names = ", ".join(row.name for row in dtypes.DTYPES)
        raise Refusal(f"{name} holds {stored}; it must be one of {names}")
    if dtype is not None and found is not dtype:
        raise Refusal(
            f"{name} holds {found.name}, but --dtype says {dtype.name}; nothing is converted"
        )
    return found


def create(path: Path, shape: tuple[int, ...], row: DType, chunks: tuple[int, ...]) -> None:
    """Make an empty array, which has a chunk for each that is written."""
    import zarr

    zarr.create_array(
        path,
        shape=shape,
        chunks=chunks,
        dtype="uint16" if row is dtypes.BFLOAT16 else row.numpy,
        attributes={ATTRIBUTE: row.name} if row is dtypes.BFLOAT16 else None,
    )


def write(path: str, region: Region, block: AnyArray) -> None:
    """Write whole chunks of an array."""
    array = _opened(path, "r+")
    if block.dtype == dtypes.BFLOAT16.numpy:
        block = block.view(np.uint16)
    array[tuple(slice(*each) for each in region)] = block


def small_enough(chunks: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Divide chunks until every codec takes them; the sizes stay divisors of those given.

    >>> small_enough((8, 8192, 8192, 3), 4)
    (2, 8192, 8192, 3)
    """
    sizes = list(chunks)
    for axis, size in enumerate(sizes):
        rest = math.prod(sizes) // size * itemsize
        fitting = [n for n in range(1, size + 1) if size % n == 0 and n * rest <= _LARGEST]
        sizes[axis] = max(fitting, default=1)
    return tuple(sizes)


def cut(size: int, chunk: int) -> tuple[int, ...]:
    """Cut an axis into pieces of one size, the last as large as is left.

    >>> cut(7, 3), cut(0, 3)
    ((3, 3, 1), (0,))
    """
    whole, rest = divmod(size, max(chunk, 1))
    return (chunk,) * whole + ((rest,) if rest or not whole else ())


def need_zarr() -> None:
    """Refuse politely where Zarr is not installed."""
    if find_spec("zarr") is None:
        raise BackendMissingError("stores need zarr 3, for Python 3.11 and newer: pip install zarr")


def _opened(path: str, mode: Any) -> Any:
    """Open an array that must be there."""
    import zarr

    if not has_mark(Path(path)):
        raise Refusal(unseen(path, "there is no store"))
    try:
        return zarr.open_array(path, mode=mode)
    except Exception as error:
        raise Refusal(unseen(path, said(error))) from None


def _fits(sizes: tuple[int, ...], chunk: int) -> bool:
    return all(size % chunk == 0 for size in sizes[:-1])


def _text(region: Region) -> str:
    return f"{list(shape_of(region))} from {[begin for begin, _ in region]}"
