"""Systems that kernels can be compiled for ahead of time: triple, kind of object and archive, by architecture.

The first of an architecture is its default. `none` is a device without an operating system, and a wasm module.

Where code lies is a question of the system too. Objects for hosts are position independent, because they end up in
shared libraries. Those for wasm and Thumb are not: nothing moves there, and the code for it would be longer. RISC-V's
small code model wants all symbols within 2 GiB of address 0; its medium one reaches constants from where the code is.

Windows' triple is that of MinGW. Its objects link with both linkers, while those of `-msvc` ask for `_fltused`, which
only Microsoft's C library has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

ObjectFormat = Literal["elf", "coff", "macho", "wasm"]
ArchiveStyle = Literal["gnu", "bsd"]


@dataclass(frozen=True)
class System:
    """One system on one architecture."""

    name: str
    """What a user calls it."""
    triple: str
    """LLVM's name of it."""
    object_format: ObjectFormat = "elf"
    reloc: str = "pic"
    """LLVM's relocation model: pic or static."""
    codemodel: str = "small"
    abi: str = ""
    """How floats are passed, where the triple does not say it; linkers refuse to mix."""

    @property
    def archive_style(self) -> ArchiveStyle:
        """How the system's linker wants the index of an archive."""
        return "bsd" if self.object_format == "macho" else "gnu"

    @property
    def symbol_prefix(self) -> str:
        """What a C compiler puts before a function's name, and LLVM as well."""
        return "_" if self.object_format == "macho" else ""


def _riscv(name: str, triple: str) -> System:
    return System(name, triple, codemodel="medium", abi="lp64d")


SYSTEMS: Mapping[str, tuple[System, ...]] = MappingProxyType(
    {
        "x86_64": (
            System("linux", "x86_64-unknown-linux-gnu"),
            System("windows", "x86_64-w64-windows-gnu", "coff"),
            System("macos", "x86_64-apple-macosx10.15.0", "macho"),
            System("android", "x86_64-unknown-linux-android"),
        ),
        "aarch64": (
            System("linux", "aarch64-unknown-linux-gnu"),
            System("windows", "aarch64-w64-windows-gnu", "coff"),
            System("macos", "arm64-apple-macosx11.0.0", "macho"),
            System("android", "aarch64-unknown-linux-android"),
            System("ios", "arm64-apple-ios13.0.0", "macho"),
            System("none", "aarch64-unknown-none-elf"),
        ),
        "wasm32": (System("none", "wasm32-unknown-unknown", "wasm", reloc="static"),),
        "thumbv7em": (System("none", "thumbv7em-unknown-none-eabihf", reloc="static"),),
        "riscv64": (
            _riscv("linux", "riscv64-unknown-linux-gnu"),
            _riscv("none", "riscv64-unknown-none-elf"),
        ),
    }
)
"""By architecture, the default first."""
