"""What of an object file ends up in a program: code and constants, without names, relocations and unwind tables.

ELF of 32 and 64 bits, COFF, Mach-O of 64 bits, and wasm.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ALLOC, _NOBITS = 2, 8
_COFF_CODE, _COFF_DATA = 0x20, 0x40
_SEGMENT_64 = 0x19
_WASM_CODE, _WASM_DATA = 10, 11
_UNWINDING = ("eh_frame", "ARM.exidx", "ARM.attributes", "pdata", "xdata", "compact_unwind")


def loaded_bytes(code: bytes) -> int:
    """Return the bytes of code and constants; ValueError for what is not an object file known here."""
    try:
        return sum(size for name, size in _sections(code) if not _is_unwinding(name))
    except (struct.error, IndexError):
        raise ValueError("the object file is cut off") from None


def _is_unwinding(name: str) -> bool:
    return any(word in name for word in _UNWINDING)


def _sections(code: bytes) -> Iterator[tuple[str, int]]:
    if code[:4] == b"\x7fELF":
        return _elf(code)
    if code[:4] == b"\x00asm":
        return _wasm(code)
    if code[:4] == b"\xcf\xfa\xed\xfe":
        return _macho(code)
    if code[:2] in (b"\x64\x86", b"\x64\xaa"):  # x86-64, ARM64
        return _coff(code)
    raise ValueError(f"no object file that is known: it begins with {code[:4]!r}")


def _elf(code: bytes) -> Iterator[tuple[str, int]]:
    wide = code[4] == 2
    if wide:
        (start,) = struct.unpack_from("<Q", code, 40)
        entry, count, names = struct.unpack_from("<3H", code, 58)
    else:
        (start,) = struct.unpack_from("<I", code, 32)
        entry, count, names = struct.unpack_from("<3H", code, 46)
    rows = [
        struct.unpack_from("<2I4Q" if wide else "<6I", code, start + at * entry)
        for at in range(count)
    ]
    texts = rows[names][4]
    for name, kind, flags, _, _, size in rows:
        if flags & _ALLOC and kind != _NOBITS:
            begin = texts + name
            yield code[begin : code.index(b"\0", begin)].decode(), size


def _coff(code: bytes) -> Iterator[tuple[str, int]]:
    (count,) = struct.unpack_from("<H", code, 2)
    for at in range(count):
        name, _, _, size, *_, flags = struct.unpack_from("<8s6I2HI", code, 20 + 40 * at)
        if flags & (_COFF_CODE | _COFF_DATA):
            yield name.rstrip(b"\0").decode(), size


def _macho(code: bytes) -> Iterator[tuple[str, int]]:
    (count,) = struct.unpack_from("<I", code, 16)
    at = 32
    for _ in range(count):
        command, length = struct.unpack_from("<2I", code, at)
        if command == _SEGMENT_64:
            (sections,) = struct.unpack_from("<I", code, at + 64)
            for number in range(sections):
                name, _, _, size = struct.unpack_from("<16s16s2Q", code, at + 72 + 80 * number)
                yield name.rstrip(b"\0").decode(), size
        at += length


def _wasm(code: bytes) -> Iterator[tuple[str, int]]:
    at = 8
    while at < len(code):
        kind = code[at]
        size, at = _leb(code, at + 1)
        if kind in (_WASM_CODE, _WASM_DATA):
            yield "code" if kind == _WASM_CODE else "data", size
        at += size


def _leb(code: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = code[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
