"""Arrays from files that somebody drops on a block: .npy, .npz, .png. Nothing is unpickled.

What a header promises is compared with what is there before memory is asked for.
"""

from __future__ import annotations

import base64
import io
import struct
import zipfile
import zlib
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy

from .._dtypes import AnyArray
from .._errors import ArgumentError, said, shown
from .._graph import dtypes

MOST_BYTES = 40 << 20
"""Of an array, unpacked: with it in base64 a page must still fit into a request, or it could not even be checked."""
_HEADER = 1 << 16
"""Of a .npy file, at most."""
_PNG = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 6: 4}
"""By PNG's colour type: gray, RGB, RGBA."""


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
    ) as error:  # NumPy and zipfile raise a dozen kinds for what is no file of theirs
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
    """Return the pixels of a PNG: 8 bits, gray, RGB or RGBA, not interlaced."""
    if not data.startswith(_PNG):
        raise ArgumentError("it is no PNG")
    header, packed, at = b"", [], len(_PNG)
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        content = data[at + 8 : at + 8 + length]
        if len(content) < length:
            raise ArgumentError("the file ends early")
        if kind == b"IHDR":
            header = content
        elif kind == b"IDAT":
            packed.append(content)
        elif kind == b"IEND":
            break
        at += 12 + length
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if depth != 8 or colour not in _CHANNELS or interlaced:
        raise ArgumentError("only pictures of 8 bits, gray, RGB or RGBA, not interlaced, are read")
    channels = _CHANNELS[colour]
    row = width * channels
    if not row or not height or (row + 1) * height > MOST_BYTES // 4:
        raise ArgumentError(f"{width} by {height} pixels are not read")
    raw = zlib.decompressobj().decompress(b"".join(packed), (row + 1) * height)
    if len(raw) < (row + 1) * height:
        raise ArgumentError("the file ends early")
    lines = np.frombuffer(raw, np.uint8).reshape(height, row + 1)
    pixels = _unfiltered(lines, channels).reshape(1, height, width, channels)
    found: AnyArray = np.divide(pixels, np.float32(255), dtype=np.float32)
    return found


def _unfiltered(lines: AnyArray, channels: int) -> AnyArray:
    """Undo the filters of PNG: each row is stored as differences from its left and upper neighbours."""
    found = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above = np.zeros(found.shape[1], np.uint8)
    for at, line in enumerate(lines):
        kind, stored = int(line[0]), line[1:]
        if kind == 0:
            found[at] = stored
        elif kind == 1:
            steps = stored.reshape(-1, channels)
            found[at] = np.cumsum(steps, axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            found[at] = stored + above
        elif kind in (3, 4):
            found[at] = _neighbours(stored, above, channels, kind == 4)
        else:
            raise ArgumentError(f"row {at} has the unknown filter {kind}")
        above = found[at]
    return found


def _neighbours(stored: AnyArray, above: AnyArray, channels: int, paeth: bool) -> AnyArray:
    """Undo PNG's filters 3 (the mean of left and upper) and 4 (the nearest of three), byte by byte."""
    upper, row = above.tolist(), stored.tolist()
    for at, value in enumerate(row):
        left = row[at - channels] if at >= channels else 0
        up = upper[at]
        if paeth:
            corner = upper[at - channels] if at >= channels else 0
            near = left + up - corner
            guess = min((left, up, corner), key=lambda each: abs(near - each))
        else:
            guess = (left + up) // 2
        row[at] = (value + guess) & 255
    return np.array(row, np.uint8)
