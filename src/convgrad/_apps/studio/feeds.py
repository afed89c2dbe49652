"""Arrays from files that somebody drops on a block: .npy, .npz, .png. Nothing is unpickled.

What a header promises is compared with what is there before memory is asked for.
"""

from __future__ import annotations

import base64
import io
import zipfile
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, said, shown
from ..graph import dtypes
from . import png

MOST_BYTES = 40 << 20
"""Of an array, unpacked: with it in base64 a page must still fit into a request, or it could not even be checked."""
_HEADER = 1 << 16
"""Of a .npy file, at most."""


def read(name: str, data: bytes, member: str | None = None) -> tuple[AnyArray, list[str]]:
    """Return the array in a file, and the names in an archive: `member`, or its first, is read.

    A picture becomes float32 ``[1, rows, columns, channels]`` between 0 and 1.
    """
    where = shown(name[-100:])
    kind = name.lower().rpartition(".")[2]
    members: list[str] = []
    try:
        if kind == "npy":
            array = _npy(data)
        elif kind == "npz":
            array, members = _npz(data, member)
        elif kind == "png":
            array = picture(data)
        else:
            raise ArgumentError("only .npy, .npz and .png are read")
        return _ours(array), members
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from None
    except MemoryError:
        raise
    except (
        Exception
    ) as error:  # NumPy and zipfile raise a dozen kinds for what is not a file of theirs
        raise ArgumentError(f"{where}: it cannot be read as an array: {said(error)}") from None


def tensor(array: AnyArray) -> dict[str, Any]:
    """Return an array as a page's pin holds it."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": dtypes.name(array.dtype),
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode(),
    }


def _ours(array: AnyArray) -> AnyArray:
    native = array.dtype.newbyteorder("=")
    if native not in dtypes.ANY:
        raise ArgumentError(f"arrays of {dtypes.listed(dtypes.ANY)} are read, got {array.dtype}")
    return np.asarray(array, native, order="C")


def _npy(data: bytes) -> AnyArray:
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ArgumentError(f"format {version[0]}.{version[1]} of .npy is not read")
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    if dtype.hasobject:
        raise ArgumentError("it holds Python objects, which are not read")
    if prod(shape) * dtype.itemsize > MOST_BYTES:
        raise ArgumentError(f"an array must have at most {MOST_BYTES} bytes, got {list(shape)}")
    wanted, there = prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if wanted > there or any(size < 0 for size in shape):
        raise ArgumentError(
            f"{there} bytes of numbers where {list(shape)} of {dtype} need {wanted}"
        )
    found = np.frombuffer(data, dtype, prod(shape), stream.tell())
    return found.reshape(shape, order="F" if fortran else "C")


def _npz(data: bytes, member: str | None) -> tuple[AnyArray, list[str]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = {each.filename.removesuffix(".npy"): each for each in archive.infolist()[:1000]}
        names = list(infos)
        if not names:
            raise ArgumentError("the archive is empty")
        chosen = names[0] if member is None else member
        if chosen not in infos:
            raise ArgumentError(f"there is no array {shown(chosen)}, only {', '.join(names)[:200]}")
        info = infos[chosen]
        # Python unpacks bzip2 and LZMA whole, whatever size was asked for and promised; NumPy writes neither.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArgumentError("only archives as NumPy writes them, stored or deflated, are read")
        if info.file_size > MOST_BYTES + _HEADER:
            raise ArgumentError(f"an array must have at most {MOST_BYTES} bytes")
        with archive.open(info) as file:
            content = file.read(info.file_size)
    return _npy(content), names


def picture(data: bytes) -> AnyArray:
    """Return the pixels of a PNG as a batch of one image, between 0 and 1."""
    found: AnyArray = np.divide(
        png.pixels(data, MOST_BYTES // 4)[None], np.float32(255), dtype=np.float32
    )
    return found
