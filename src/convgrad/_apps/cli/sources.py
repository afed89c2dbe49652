"""Where the operands of `run` come from: an .npy file, a member of an .npz file, or a random generator.

A source knows its shape and dtype at once and hands out images of the batch when asked. A file is never mapped as a
whole: each request maps its own window, which is gone with the array, so that neither address space nor resident memory
grows with the file.
"""

from __future__ import annotations

import os
import struct
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray, DType
from ..._base.errors import said as quoted
from ..._base.files import open_regular
from . import archives
from .parts import Chunks, FileArray, Mapped, Part, Region, row_called
from .verb import Refusal

_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Of a zip member: its mark, and the lengths of the two fields between it and the data."""


class Source(Protocol):
    """An operand that may be larger than memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    def images(self, begin: int, end: int) -> AnyArray:
        """Return `[begin, end)` of the first dimension."""
        ...


@dataclass
class Packed:
    """A compressed member of an .npz file. It cannot be mapped: all of it is unpacked when images are asked for."""

    member: archives.Member
    dtype: DType
    _array: AnyArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.member.header.shape

    def images(self, begin: int, end: int) -> AnyArray:
        if self._array is None:
            kind = self.dtype.numpy if self.dtype is dtypes.BFLOAT16 else None
            self._array = self.member.unpacked(kind)
        part: AnyArray = self._array[begin:end]
        return part


@dataclass(frozen=True)
class Random:
    """Normal numbers, or small integers; every image has a seed of its own, so slices do not change the data."""

    shape: tuple[int, ...]
    dtype: DType
    seed: int
    operand: int
    """Which of the operands: those of one run differ."""

    def images(self, begin: int, end: int) -> AnyArray:
        result = np.empty((end - begin, *self.shape[1:]), self.dtype.numpy)
        for n in range(begin, end):
            generator = np.random.default_rng([self.seed, self.operand, n])
            if self.dtype.is_integer:
                result[n - begin] = generator.integers(-8, 9, self.shape[1:])
            else:
                wide = np.float64 if self.dtype.itemsize == 8 else np.float32
                result[n - begin] = generator.standard_normal(self.shape[1:], wide)
        return result

    @property
    def paths(self) -> tuple[str, ...]:
        return ()

    def readable(self, wanted: Chunks) -> Chunks:
        """An image is made up as a whole."""
        return (wanted[0], *((size,) for size in self.shape[1:]))

    def part(self, region: Region) -> Part:
        return RandomPart(self.shape, self.dtype.name, self.seed, self.operand, *region[0])


@dataclass(frozen=True)
class RandomPart:
    """Some of its images, as plain data."""

    shape: tuple[int, ...]
    dtype: str
    seed: int
    operand: int
    begin: int
    end: int

    def read(self) -> AnyArray:
        made = Random(self.shape, row_called(self.dtype), self.seed, self.operand)
        return made.images(self.begin, self.end)


def read(text: str, dtype: DType | None, files: ExitStack) -> Source:
    """Open ``file.npy``, ``file.npz`` or ``file.npz:name``; `dtype` is what the caller says it holds.

    `files` closes the file in the end: windows are mapped from it until then.
    """
    path, member = split(text)
    handle = files.enter_context(_opened(path))
    if path.suffix.lower() == ".npz":
        return _from_npz(path, handle, member, dtype)
    return _npy(path, handle, dtype)


def described(path: Path, dtype: DType | None) -> tuple[FileArray, DType]:
    """Read what the header of an .npy file says."""
    with _opened(path) as handle:
        found = _npy(path, handle, dtype)
        return found.lasting(), found.dtype


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror or error}") from None


def _npy(path: Path, handle: BinaryIO, dtype: DType | None) -> Mapped:
    size = os.fstat(handle.fileno()).st_size
    return _array(str(path), path, handle, size, 0, dtype)


def split(text: str) -> tuple[Path, str | None]:
    """Tell a file from a member of one; a file that exists under the whole text wins.

    >>> split("a.npz:x"), split("b.npy")
    ((PosixPath('a.npz'), 'x'), (PosixPath('b.npy'), None))
    """
    before, colon, member = text.rpartition(":")
    if colon and before.lower().endswith(".npz") and not Path(text).exists():
        return Path(before), member
    if Path(text).suffix.lower() not in (".npy", ".npz"):
        raise Refusal(
            f"{text!r} must be a .npy file, a .npz file or file.npz:name, a .zarr store or store.zarr:name, "
            "or a stack of .npy files: a folder, or a pattern in quotes"
        )
    return Path(text), None


def _array(
    name: str, path: Path, handle: IO[bytes], size: int, offset: int, said: DType | None
) -> Mapped:
    """Describe the array that begins at the handle's position, which is `offset`; `size` is where the file ends."""
    if size == offset:
        raise Refusal(f"{name} is empty")
    head = archives.member_header(name, handle)
    start, wanted = offset + head.length, head.nbytes
    if size - start < wanted:
        raise Refusal(f"{name} is truncated: it holds {size - start:,} of {wanted:,} bytes of data")
    row = _row(name, head.stored, said)
    stored = row.numpy if row is dtypes.BFLOAT16 else head.stored
    fortran = head.fortran and len(head.shape) > 1
    return Mapped(name, str(path), handle, start, head.shape, row, stored, fortran)


def _row(name: str, stored: np.dtype[Any], said: DType | None) -> DType:
    if stored.hasobject:
        raise Refusal(f"{name} holds Python objects, which are never loaded: they could run code")
    if (
        stored.kind == "V"
        and stored.names is None
        and stored.subdtype is None
        and stored.itemsize == 2
    ):
        # NumPy has no name for ml_dtypes' bfloat16 and saves it as 2 raw bytes.
        if said is dtypes.BFLOAT16:
            return said
        raise Refusal(
            f"{name} holds 2-byte items without a name; add --dtype bfloat16 if that is what they are"
        )
    found = dtypes.find(stored) if stored.kind in "fi" else None
    if found is None:
        names = ", ".join(row.name for row in dtypes.DTYPES)
        raise Refusal(f"{name} holds {stored}; it must be one of {names}")
    if said is not None and found is not said:
        raise Refusal(
            f"{name} holds {found.name}, but --dtype says {said.name}; nothing is converted"
        )
    return found


def _from_npz(path: Path, handle: IO[bytes], member: str | None, said: DType | None) -> Source:
    try:
        archive = zipfile.ZipFile(handle)
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise Refusal(f"{path} is not an .npz file, or damaged: {error}") from None
    if member is None:
        if len(names) != 1:
            listed = ", ".join(names) or "nothing"
            raise Refusal(f"{path} holds {len(names)} arrays; name one as {path}:NAME ({listed})")
        member = names[0]
    if member not in names:
        raise Refusal(f"{path} has no array {member!r}; it has {', '.join(names)}")
    info = archive.infolist()[names.index(member)]
    name = f"{path}:{member}"
    if info.compress_type != zipfile.ZIP_STORED:
        found = archives.member(name, archive, info)
        return Packed(found, _row(name, found.header.stored, said))
    try:
        with archive.open(info) as part:
            while part.read(1 << 20):  # to its end, where zipfile compares the checksum
                pass
    except Exception as error:  # those of zipfile, zlib and their kin have no base in common
        raise Refusal(f"{name} is damaged: {quoted(error)}") from None
    handle.seek(info.header_offset)
    _, name_length, extra_length = _LOCAL_HEADER.unpack(handle.read(_LOCAL_HEADER.size))
    start = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    handle.seek(start)
    return _array(name, path, handle, start + info.file_size, start, said)
