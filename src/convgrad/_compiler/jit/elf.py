"""Loads a relocatable ELF object into executable memory, without LLVM and without a linker.

Kernels are one function, its constants and perhaps a jump table, and call nothing, so a handful
of relocation kinds is all there is. Anything else is refused with `Unsupported`, and the caller
asks LLVM's own loader instead. Loading takes 0.1 ms where importing llvmlite takes 60-200.

Memory is never writable and executable at once: it is filled, then sealed. It is given back with
the last `LoadedCode` that holds it, but not while the interpreter shuts down: threads may still be inside
a kernel then. It is taken with `mmap` of the C library rather than Python's, whose object would
unmap it at exit.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from convgrad._base.errors import CompileError

PAGE = mmap.PAGESIZE
_LINE = 64

_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_ALLOC, _EXECUTABLE = 2, 4


_NONE: Mapping[str, int] = MappingProxyType({})


class Unsupported(Exception):
    """This object needs a real linker."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def supported() -> bool:
    """Tell whether this system has ELF objects and allocates memory in the way used here."""
    return (
        sys.platform.startswith("linux")
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == 8
    )


class LoadedCode:
    """A function in executable memory, mapped as long as this object lives."""

    __slots__ = ("_address", "_size", "entry")

    def __init__(self, address: int, size: int, entry: int) -> None:
        self._size = size
        self.entry = entry
        """Where the function starts."""
        self._address = address  # last: a signal handler may raise in between

    def __del__(
        self,
        # Bound here: at the end of the process the modules may be gone before this object.
        is_finalizing: Callable[[], bool] = sys.is_finalizing,
    ) -> None:
        address = getattr(self, "_address", None)
        if address is not None and not is_finalizing():
            _library().munmap(address, self._size)


def load(code: bytes, symbol: str) -> int:
    """Return the address of `symbol` in a fresh copy of the object, which is never given back."""
    placed = place(code, symbol)
    _kept.append(placed)
    return placed.entry


_kept: list[LoadedCode] = []


def place(code: bytes, symbol: str, imports: Mapping[str, int] = _NONE) -> LoadedCode:
    """Return `symbol` in a fresh copy of the object; what it asks for from outside is at the addresses `imports`."""
    try:
        image = _Image(code, imports)
        entry = image.entry(symbol)
        address = _reserve(image.size)
        try:
            image.relocate(address)
        except BaseException:
            _library().munmap(address, image.size)
            raise
    except (struct.error, IndexError, ValueError, StopIteration) as error:
        raise Unsupported(f"malformed object: {error}") from error
    _seal(address, bytes(image.memory))
    return LoadedCode(address, image.size, address + entry)


def check_allowed() -> None:
    """Raise CompileError if this system lets no memory become executable; asked before work is put into a kernel."""
    address = _reserve(PAGE)
    try:
        if _library().mprotect(address, PAGE, mmap.PROT_READ | mmap.PROT_EXEC):
            reason = os.strerror(ctypes.get_errno())
            raise CompileError(f"this system refuses executable memory: {reason}")
    finally:
        _library().munmap(address, PAGE)


class _Image:
    """The loaded sections side by side, still in ordinary memory."""

    def __init__(self, code: bytes, imports: Mapping[str, int] = _NONE) -> None:
        self._imports = imports
        if code[:7] != b"\x7fELF\x02\x01\x01":
            raise Unsupported("not a 64-bit little-endian ELF file")
        kind, self._machine = struct.unpack_from("<HH", code, 16)
        if kind != 1 or self._machine not in _RELOCATIONS:
            raise Unsupported(f"ELF type {kind} for machine {self._machine}")
        (table,) = struct.unpack_from("<Q", code, 40)
        count, name_section = struct.unpack_from("<HH", code, 60)
        self._code = code
        self._sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i)) for i in range(count)
        ]
        symbols = next(section for section in self._sections if section.kind == _SYMTAB)
        self._names = self._sections[symbols.link].offset
        self._symbols = [
            _Symbol(*struct.unpack_from("<IBBHQQ", code, symbols.offset + 24 * i))
            for i in range(symbols.size // 24)
        ]
        section_names = self._sections[name_section].offset
        # Unwind tables are left out: kernels raise nothing and nothing unwinds through them.
        self._places: dict[int, int] = {}
        end = 0
        for number, section in enumerate(self._sections):
            if section.flags & _ALLOC and section.kind in (_PROGBITS, _NOBITS):
                if self._name(section.name, section_names) == ".eh_frame":
                    continue
                alignment = max(section.alignment, _LINE)
                end = -(-end // alignment) * alignment
                self._places[number] = end
                end += section.size
        if not end:
            raise Unsupported("nothing to load")
        self.size = -(-end // PAGE) * PAGE
        self.memory = bytearray(self.size)
        for number, place in self._places.items():
            section = self._sections[number]
            if section.kind == _PROGBITS:
                content = code[section.offset : section.offset + section.size]
                if len(content) != section.size:
                    raise Unsupported("truncated")
                self.memory[place : place + section.size] = content

    def _name(self, at: int, table: int) -> str:
        end = self._code.index(b"\0", table + at)
        return self._code[table + at : end].decode()

    def entry(self, name: str) -> int:
        """Return where the function `name` starts in the image."""
        for symbol in self._symbols:
            if symbol.section in self._places and self._name(symbol.name, self._names) == name:
                if not self._sections[symbol.section].flags & _EXECUTABLE:
                    break
                return self._places[symbol.section] + symbol.value
        raise Unsupported(f"no function {name}")

    def relocate(self, base: int) -> None:
        """Make the image right for the address `base`."""
        apply = _RELOCATIONS[self._machine]
        for section in self._sections:
            if section.kind == _REL:
                raise Unsupported("relocations without addends")
            if section.kind != _RELA or section.info not in self._places:
                continue
            place = self._places[section.info]
            for i in range(section.size // 24):
                offset, info, addend = struct.unpack_from(
                    "<QQq", self._code, section.offset + 24 * i
                )
                value = self._value(self._symbols[info >> 32], base) + addend
                apply(self.memory, place + offset, info & 0xFFFFFFFF, value, base + place + offset)

    def _value(self, symbol: _Symbol, base: int) -> int:
        if symbol.section in self._places:
            return base + self._places[symbol.section] + symbol.value
        name = self._name(symbol.name, self._names)
        if name not in self._imports:
            raise Unsupported(f"external symbol {name!r}")
        return self._imports[name]


def _relocate_x86(memory: bytearray, at: int, kind: int, value: int, here: int) -> None:
    if kind in (2, 4):  # R_X86_64_PC32, R_X86_64_PLT32
        struct.pack_into("<i", memory, at, value - here)
    elif kind == 1:  # R_X86_64_64
        struct.pack_into("<Q", memory, at, value)
    elif kind == 24:  # R_X86_64_PC64
        struct.pack_into("<q", memory, at, value - here)
    else:
        raise Unsupported(f"x86-64 relocation {kind}")


# How far the low twelve bits of an address are shifted in a load or store of 1 to 16 bytes:
# R_AARCH64_ADD_ABS_LO12_NC and R_AARCH64_LDST{8,16,32,64,128}_ABS_LO12_NC.
_LOW_TWELVE = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}


def _relocate_arm(memory: bytearray, at: int, kind: int, value: int, here: int) -> None:
    if kind == 257:  # R_AARCH64_ABS64
        struct.pack_into("<Q", memory, at, value)
        return
    if kind == 260:  # R_AARCH64_PREL64
        struct.pack_into("<q", memory, at, value - here)
        return
    if kind == 261:  # R_AARCH64_PREL32
        struct.pack_into("<i", memory, at, value - here)
        return
    (word,) = struct.unpack_from("<I", memory, at)
    if kind == 275:  # R_AARCH64_ADR_PREL_PG_HI21
        pages = (value >> 12) - (here >> 12)
        if not -(1 << 20) <= pages < 1 << 20:
            raise Unsupported("page out of reach")
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind in _LOW_TWELVE:
        shift = _LOW_TWELVE[kind]
        if value & ((1 << shift) - 1):
            raise Unsupported("misaligned constant")
        word |= (value & 0xFFF) >> shift << 10
    elif kind in (282, 283):  # R_AARCH64_JUMP26, R_AARCH64_CALL26
        distance = value - here >> 2
        if not -(1 << 25) <= distance < 1 << 25:
            raise Unsupported("branch out of reach")
        word |= distance & 0x3FFFFFF
    else:
        raise Unsupported(f"AArch64 relocation {kind}")
    struct.pack_into("<I", memory, at, word)


_RELOCATIONS: dict[int, Callable[[bytearray, int, int, int, int], None]] = {
    62: _relocate_x86,
    183: _relocate_arm,
}

_c: ctypes.CDLL | None = None


def _library() -> ctypes.CDLL:
    global _c
    if _c is None:
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int64,
        ]
        library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        _c = library
    return _c


def _reserve(size: int) -> int:
    """Return fresh writable memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = _library().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise CompileError(f"no memory for a kernel: {os.strerror(ctypes.get_errno())}")
    return int(address)


def _seal(address: int, content: bytes) -> None:
    """Fill the memory and make it executable and read-only.

    No instruction cache is flushed: x86 keeps its own coherent, and on AArch64 the kernel does it
    when a page first becomes executable, which is here.
    """
    ctypes.memmove(address, content, len(content))
    if _library().mprotect(address, len(content), mmap.PROT_READ | mmap.PROT_EXEC):
        reason = os.strerror(ctypes.get_errno())
        _library().munmap(address, len(content))
        raise CompileError(f"this system refuses executable memory: {reason}")
