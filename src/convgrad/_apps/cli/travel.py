"""Plain data as text, for tasks: a scheduler passes it on without this package, and unpacking it runs nothing.

>>> from .parts import FileArray
>>> unpacked(packed(FileArray("x.npy", 128, (2, 3), "float32", "<f4", False))).shape
(2, 3)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from .outputs import FilePlace, FilesPlace, OutputPlace, StorePlace
from .parts import FileArray, FilePart, FileParts, Region
from .sources import RandomPart
from .stores import StoredPart


@dataclass(frozen=True)
class Behind:
    """What the task behind a block needs to know."""

    place: OutputPlace | None
    region: Region


_KINDS = {
    kind.__name__: kind
    for kind in (
        *(FileArray, FilePart, FileParts, RandomPart, StoredPart),
        *(FilePlace, FilesPlace, StorePlace, Behind),
    )
}
"""All that may be unpacked."""
_KIND = "kind"


def packed(value: Any) -> str:
    """Write a record of one of the kinds above, whose fields are such records, numbers, texts, None and tuples."""
    return json.dumps(value, default=_as_dict)


def unpacked(text: str) -> Any:
    """Read it again."""
    return _read(json.loads(text))


def _as_dict(record: Any) -> dict[str, Any]:
    kind = type(record).__name__
    if not is_dataclass(record) or _KINDS.get(kind) is not type(record):
        raise TypeError(f"{kind} is not one of the kinds that travel")
    return {_KIND: kind, **{each.name: getattr(record, each.name) for each in fields(record)}}


def _read(found: Any) -> Any:
    if isinstance(found, list):
        return tuple(map(_read, found))
    if isinstance(found, dict):
        kind = _KINDS[found.pop(_KIND)]
        return kind(**{name: _read(value) for name, value in found.items()})
    return found
