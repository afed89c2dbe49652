"""Runs of `convgrad bench train` that nobody ran: what ratios, reports and pictures are tested on."""

from __future__ import annotations

from typing import Any

from benchmarks.train import configurations as rows_of
from benchmarks.train import ratios, rounds
from benchmarks.train.configurations import TORCH as CONFIGURATIONS
from benchmarks.train.configurations import Configuration


def a_row(
    label: str,
    *turns: float,
    model: str = "mobilenet_v2",
    rows: tuple[Configuration, ...] = CONFIGURATIONS,
    **more: Any,
) -> dict[str, Any]:
    """Return a configuration whose turns took these milliseconds, in rounds 0, 1, ..."""
    by_name = {row.name: row for row in rows}
    known: Configuration = by_name[label.removesuffix(rows_of.AGAIN)]
    return {
        "model": model,
        "label": label,
        "configuration": {**vars(known)},
        "status": "ok",
        "reason": "",
        "parameters": 3504872,
        "losses": [6.9, 6.8],
        "peak_bytes": 800_000_000,
        "turns": [
            {
                "round": number,
                "steps": [[time / 2, time / 4, time / 4]],
                "faults": 10.0 * number,
                "others": 0.01,
            }
            for number, time in enumerate(turns)
        ],
        **more,
    }


def a_run(*rows: dict[str, Any], framework: str = "torch", **settings: Any) -> dict[str, Any]:
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    how = rounds.TrainSettings(framework, models, threads=2, **settings)
    results = {
        "kind": "train",
        "began": "2026-01-31 10:00:00",
        "complete": True,
        "settings": {**vars(how), "models": list(models)},
        "machine": {
            "cpu": "A CPU",
            "cpus": 2,
            "system": "Linux",
            "versions": {"convgrad": "0.1", "torch": "2.13"},
            "load": [0.5],
            "load_before": [0.25],
        },
        "rows": list(rows),
        "layers": [],
    }
    return {**results, "comparisons": ratios.comparisons(results)}


def usual(model: str = "mobilenet_v2") -> list[dict[str, Any]]:
    times = {
        "native": 300.0,
        "native_cl": 280.0,
        "native_memory": 190.0,
        "native_cl_memory": 200.0,
        "compile_cl_memory": 160.0,
        "ours": 240.0,
        "ours_memory": 100.0,
        "native_cl_memory#2": 210.0,
    }
    return [a_row(name, ms, 2 * ms, ms, model=model) for name, ms in times.items()]
