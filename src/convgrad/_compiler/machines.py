"""A machine that is described instead of asked: `explain` plans for it, and nothing runs.

Apart from `jit.host`, which knows only what this machine can run. Here any row may be named, also a device's.
"""

from __future__ import annotations

from typing import Any

from .._base import config
from .._base.errors import ArgumentError, nearest, shown
from . import jit, targets
from .targets import Target


def described(target: Any, vector_bits: Any, caches: Any) -> Target | None:
    """Return the machine that `explain`'s arguments describe, or None where they say nothing: it is this one then.

    A row that is named has its usual caches; without a name it is this machine's, with this machine's caches.

    >>> described("neon", None, "32k,256k,2m").l2_bytes, described(None, None, None)
    (262144, None)
    """
    if target is None and vector_bits is None and caches is None:
        return None
    row = jit.host_target() if target is None else _row(target)
    if vector_bits is not None:
        if type(vector_bits) is not int or vector_bits not in targets.VECTOR_BITS:
            widths = ", ".join(map(str, targets.VECTOR_BITS))
            raise ArgumentError(
                f"explain: `vector_bits` must be one of {widths}, got {shown(vector_bits)}."
            )
        row = row.with_vector_bits(vector_bits)
    if caches is None:
        return row
    sizes = _sizes(caches)
    # The word "row" stands for the row's usual sizes, and this machine's row has its own here.
    usual = targets.find(row.name)
    return row.with_caches(
        sizes.l1 or usual.l1_bytes, sizes.l2 or usual.l2_bytes, sizes.l3 or usual.l3_bytes
    )


def _row(name: Any) -> Target:
    rows = [row.name for row in targets.ALL]
    if not isinstance(name, str) or name not in rows:
        hint = nearest(name, rows) if isinstance(name, str) else ""
        raise ArgumentError(
            f"explain: `target` must be one of {', '.join(rows)}, got {shown(name)}{hint or '.'}"
        )
    return targets.find(name)


def _sizes(caches: Any) -> config.Caches:
    """Read text such as "32K,1M,32M", or three numbers of bytes."""
    text = caches
    if isinstance(caches, (list, tuple)) and all(type(size) is int for size in caches):
        text = ",".join(map(str, caches))
    if not isinstance(text, str):
        raise ArgumentError(
            f"explain: `caches` must be text such as '32K,1M,32M', or three numbers, got {shown(caches)}."
        )
    try:
        return config.read_caches(text)
    except ValueError as error:
        rule = str(error).removeprefix("it must be ")
        raise ArgumentError(f"explain: `caches` must be {rule}, got {shown(caches)}.") from None
