"""The interface through which XLA calls foreign functions: which version is installed, and whether we know its structs.

A handler reads structs of C by offset. jaxlib ships the header they are declared in, so what we rely on is compared
with the header that is installed, before anything is registered: XLA does not refuse a handler of another version when
it is registered, it fails to start the CPU backend later.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HEADER = Path("xla", "ffi", "api", "c_api.h")
MAJOR = 0
"""The only one there was from jaxlib 0.5 to 0.10; its minor versions 1 to 3 only add to the ends of structs."""

FIELDS = {
    "Extension_Base": ("struct_size", "type", "next"),
    "Api_Version": ("struct_size", "extension_start", "major_version", "minor_version"),
    "Error_Create_Args": ("struct_size", "extension_start", "message", "errc"),
    "Buffer": ("struct_size", "extension_start", "dtype", "data", "rank", "dims"),
    "Args": ("struct_size", "extension_start", "size", "types", "args"),
    "Rets": ("struct_size", "extension_start", "size", "types", "rets"),
    "CallFrame": ("struct_size", "extension_start", "api", "ctx", "stage", "args", "rets"),
    "Metadata": ("struct_size", "api_version", "traits"),
    "Metadata_Extension": ("extension_base", "metadata"),
    "Api": (
        *("struct_size", "extension_start", "api_version", "internal_api"),
        "XLA_FFI_Error_Create",
    ),
}
"""How the structs must begin. Those that lie inside others must have no further field."""
INSIDE = ("Extension_Base", "Api_Version", "Args", "Rets")


class Version(NamedTuple):
    """What a handler says it was written for."""

    major: int
    minor: int


def installed(folder: str | Path) -> Version | str:
    """Return the version in the headers under a folder, or why it cannot be used, in words."""
    try:
        text = (Path(folder) / HEADER).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"its header cannot be read ({error})"
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    numbers = [
        re.search(rf"#define\s+XLA_FFI_API_{name}\s+(\d+)\s", text) for name in ("MAJOR", "MINOR")
    ]
    if numbers[0] is None or numbers[1] is None:
        return "its header states no version"
    version = Version(int(numbers[0][1]), int(numbers[1][1]))
    if version.major != MAJOR:
        return f"its version is {version.major}.{version.minor}, and we know {MAJOR}.x"
    for name, wanted in FIELDS.items():
        found = _fields(text, name)
        if found[: len(wanted)] != wanted or (name in INSIDE and found != wanted):
            return f"its struct XLA_FFI_{name} has other fields than we know"
    return version


def _fields(text: str, name: str) -> tuple[str, ...]:
    """Return the names of a struct's fields, in order."""
    body = re.search(rf"struct\s+XLA_FFI_{name}\s*\{{(.*?)\}}", text, flags=re.DOTALL)
    if body is None:
        return ()
    found = []
    for line in body[1].split(";"):
        macro = re.fullmatch(r"\s*_XLA_FFI_API_STRUCT_FIELD\((\w+)\)\s*", line)
        plain = re.fullmatch(r"\s*[\w\s]+[\s*]+(\w+)\s*", line)
        if macro or plain:
            found.append((macro or plain)[1])  # type: ignore[index]
    return tuple(found)
