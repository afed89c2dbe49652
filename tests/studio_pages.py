"""Page documents for the tests of the studio."""

from __future__ import annotations

from typing import Any


def page(*blocks: tuple[Any, ...], wires: str = "") -> dict[str, Any]:
    """Return a page: blocks are (id, type, pins), wires lines such as `a.output > b.x`."""
    listed = []
    for line in wires.split(";"):
        if line.strip():
            source, target = (end.strip().split(".") for end in line.split(">"))
            index = [int(each) for each in source[2:]]
            listed.append({"from": [*source[:2], *index], "to": target})
    return {
        "format": "convgrad-page",
        "version": 1,
        "name": "test",
        "blocks": [
            {"id": id, "type": kind, "at": [0, 0], "pins": rest[0] if rest else {}}
            for id, kind, *rest in blocks
        ],
        "wires": listed,
    }


def constant(values: Any, shape: list[int], dtype: str = "DT_FLOAT") -> dict[str, Any]:
    """Return pins of a Const."""
    return {"val": {"dtype": dtype, "shape": shape, "data": list(values)}}


SQUARE = page(("x", "Const", {"val": "{1.0f,2.0f,3.0f}"}), ("y", "Square"), wires="x.output > y.x")


def endless(steps: int = 1_000_000) -> dict[str, Any]:
    """Return a page that would take hours."""
    return page(
        ("x", "RandomNormal", {"shape": "1,64,64,8", "dtype": "DT_FLOAT"}),
        ("l", "L2Loss"),
        ("loop", "Loop", {"steps": str(steps)}),
        wires="x.output > l.t; l.output > loop.loss",
    )


def convolution(kind: str = "Conv2D", **pins: str) -> dict[str, Any]:
    """Return a convolution of random numbers."""
    return page(
        ("x", "RandomNormal", {"shape": "1,6,6,2", "dtype": "DT_FLOAT", "attrs": "seed_ = 1"}),
        ("f", "RandomNormal", {"shape": "3,3,2,2", "dtype": "DT_FLOAT", "attrs": "seed_ = 2"}),
        ("c", kind, pins),
        wires="x.output > c.input; f.output > c.filter",
    )
