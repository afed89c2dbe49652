"""Runs that trained, in files: the same kind as races, with other rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convgrad._apps.bench.saved import read

ALIKE = ("framework", "image", "batch", "threads")
"""Settings that runs must share to stand in one report."""


def load(path: Path) -> dict[str, Any]:
    """Read a run back; `ValueError` says what is wrong with the file."""
    results = read(path)
    if not isinstance(results, dict) or results.get("kind") != "train":
        raise ValueError(f"{path} is not a saved run of `convgrad bench train`")
    wanted = ("settings", "machine", "rows", "layers", "complete")
    missing = next((name for name in wanted if name not in results), None)
    if missing:
        raise ValueError(
            f"{path} is not a saved run of `convgrad bench train`: it has no {missing}"
        )
    found: dict[str, Any] = results
    return found


def joined(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put runs of different models into one: long runs can be taken apart where a machine is shared."""
    first, *others = runs
    models = list(first["settings"]["models"])
    for run in others:
        for name in ALIKE:
            one, other = first["settings"][name], run["settings"][name]
            if one != other:
                raise ValueError(f"the runs differ in --{name}: {one} and {other}")
        again = [model for model in run["settings"]["models"] if model in models]
        if again:
            raise ValueError(f"two runs have {again[0]}; ratios hold inside one run only")
        models += run["settings"]["models"]
    return {
        **first,
        "complete": all(run["complete"] for run in runs),
        "settings": {**first["settings"], "models": models},
        "rows": [row for run in runs for row in run["rows"]],
        "layers": [found for run in runs for found in run["layers"]],
    }
