"""A run in a file: JSON, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from ..._base.files import open_regular


def save(results: dict[str, Any], path: Path) -> None:
    """Write everything, one row per line and six figures per number; one that is not finite becomes null."""
    parts = []
    for name, value in _plain(results).items():
        text = json.dumps(value)
        if name == "rows":
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        parts.append(f"{json.dumps(name)}: {text}")
    write(path, ("{\n" + ",\n".join(parts) + "\n}\n").encode())


def write(path: Path, content: bytes) -> None:
    """Put a file in place at once, so that nobody finds half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load_race(path: Path) -> dict[str, Any]:
    """Read a race back; `ValueError` says what is wrong with the file."""
    results = read(path)
    missing = _missing(results)
    if missing:
        raise ValueError(f"{path} is not a saved race of `convgrad bench`: it has no {missing}")
    found: dict[str, Any] = results
    return found


def read(path: Path) -> Any:
    """Read a file that `save` wrote; whether it is the run one expects is for the caller to find out."""
    try:
        with open_regular(path) as file:
            return json.loads(file.read().decode("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"no such file: {path}") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from None


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


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
