"""A run in a file: JSON, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any


def save(results: dict[str, Any], path: Path) -> None:
    """Write everything; a number that is not finite becomes null."""
    write(path, (json.dumps(_finite(results), indent=1) + "\n").encode())


def write(path: Path, content: bytes) -> None:
    """Put a file in place at once, so that nobody finds half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path) -> dict[str, Any]:
    """Read a run back; `ValueError` says what is wrong with the file."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"no such file: {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from None
    missing = _missing(results)
    if missing:
        raise ValueError(f"{path} is no saved race of `convgrad bench`: it has no {missing}")
    found: dict[str, Any] = results
    return found


def _missing(results: Any) -> str:
    """Return the first thing that every race has and this one has not."""
    if not isinstance(results, dict):
        return "settings"
    for name in ("settings", "machine", "speed", "rows"):
        if name not in results:
            return name
    wanted = ("problem", "text", "op", "dtype", "layout", "ours", "peers", "ratio", "flops")
    rows = results["rows"]
    return next((name for row in rows for name in wanted if name not in row), "")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
