"""Static libraries, the same bytes for the same members whatever their order, the clock and the user.

An archive is a line that says so, then members: a header of 60 characters and a file. The first member is an index by
which a linker finds, for a name it misses, the one member that defines it: a program that calls one kernel carries one.

`gnu` is what linkers of ELF, COFF and wasm objects read. Its index is big-endian, and names of more than 15 characters
lie in a member of their own. `bsd` is what those of Mach-O read. Its index is sorted and little-endian, names stand
before the files, and files lie on 8 bytes, because Apple's linker maps them where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Style = Literal["gnu", "bsd"]

_MAGIC = b"!<arch>\n"
_HEADER = 60
_LONGEST_SHORT = 15
"""Characters of a name that fit into a header, with the slash that ends it."""
_INDEX_NAME = b"__.SYMDEF SORTED"


def archive(members: Sequence[tuple[str, bytes]], style: Style) -> bytes:
    """Return the archive of some objects, each with the name that C calls its function by.

    ValueError where a name belongs to two different objects, where an object does not define its name, or where the
    archive would be larger than its index can say.
    """
    if style not in ("gnu", "bsd"):
        raise ValueError(f"archive: `style` must be gnu or bsd, got {style!r}")
    objects: dict[str, bytes] = {}
    for symbol, code in sorted(members):
        if objects.setdefault(symbol, code) != code:
            raise ValueError(f"archive: two members define {symbol}, and they differ")
        # Looked for as text: an archive whose index lies links with nothing and says nothing.
        if _linked(symbol, style) not in code:
            raise ValueError(f"archive: the member for {symbol} does not define it")
    made = _gnu(objects) if style == "gnu" else _bsd(objects)
    if len(made) >= 1 << 32:
        raise ValueError(f"archive: {len(made):,} bytes are more than an index of 32 bits reaches")
    return made


def _linked(symbol: str, style: Style) -> bytes:
    """Return a function's name as linkers see it."""
    return f"_{symbol}".encode() if style == "bsd" else symbol.encode()


def _header(name: bytes, size: int) -> bytes:
    """Return a member's header, with no time, no owner and the usual rights."""
    fields = ((name, 16), (b"0", 12), (b"0", 6), (b"0", 6), (b"644", 8), (str(size).encode(), 10))
    made = b"".join(value.ljust(width) for value, width in fields) + b"`\n"
    assert len(made) == _HEADER, (name, size)
    return made


def _padded(data: bytes, to: int, by: bytes) -> bytes:
    return data + by * (-len(data) % to)


def _gnu(objects: dict[str, bytes]) -> bytes:
    if not objects:
        return _MAGIC
    long_names, names = b"", []
    for symbol in objects:
        name = f"{symbol}.o/".encode()
        if len(name) <= _LONGEST_SHORT + 1:
            names.append(name)
        else:
            names.append(f"/{len(long_names)}".encode())
            long_names += name + b"\n"
    table = b""
    if long_names:
        long_names = _padded(long_names, 2, b"\n")
        table = _header(b"//", len(long_names)) + long_names
    texts = b"".join(symbol.encode() + b"\0" for symbol in objects)
    index_size = 4 + 4 * len(objects) + len(texts)
    index_size += index_size % 2
    offsets: list[int] = []
    start = len(_MAGIC) + _HEADER + index_size + len(table)
    pieces: list[bytes] = []
    for name, code in zip(names, objects.values(), strict=True):
        offsets.append(start)
        pieces += [_header(name, len(code)), _padded(code, 2, b"\n")]
        start += len(pieces[-2]) + len(pieces[-1])
    index = b"".join(number.to_bytes(4, "big") for number in (len(objects), *offsets)) + texts
    return _MAGIC + _header(b"/", index_size) + _padded(index, 2, b"\0") + table + b"".join(pieces)


def _bsd(objects: dict[str, bytes]) -> bytes:
    if not objects:
        return _MAGIC
    symbols = [_linked(symbol, "bsd") for symbol in objects]
    assert symbols == sorted(symbols)
    texts, places = b"", []
    for symbol in symbols:
        places.append(len(texts))
        texts += symbol + b"\0"
    texts = _padded(texts, 8, b"\0")
    index_size = 4 + 8 * len(objects) + 4 + len(texts)
    first = _named(_INDEX_NAME, index_size, len(_MAGIC))
    start = len(_MAGIC) + len(first) + index_size
    offsets, pieces = [], []
    for name, code in objects.items():
        offsets.append(start)
        file = _padded(code, 8, b"\n")
        pieces += [_named(f"{name}.o".encode(), len(file), start), file]
        start += len(pieces[-2]) + len(pieces[-1])
    numbers = [8 * len(objects)]
    for place, offset in zip(places, offsets, strict=True):
        numbers += [place, offset]
    numbers.append(len(texts))
    index = b"".join(number.to_bytes(4, "little") for number in numbers) + texts
    return _MAGIC + first + index + b"".join(pieces)


def _named(name: bytes, size: int, start: int) -> bytes:
    """Return a header at a place, with the name behind it, so that the file lies on 8 bytes."""
    length = len(name) + 1
    length += -(start + _HEADER + length) % 8
    return _header(f"#1/{length}".encode(), length + size) + name.ljust(length, b"\0")
