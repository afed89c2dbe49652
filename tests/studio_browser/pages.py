"""Pages for the studio's tests: as documents, and as enuSpace writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from convgrad._apps.pages.page import Page
from pages_files.writing import block, wire


def document(blocks: list[dict[str, Any]], wires: str = "", name: str = "test") -> dict[str, Any]:
    """Return a page of ours; wires are lines such as `a.output > b.x`."""
    ends = [line.split(">") for line in wires.strip().splitlines()]
    links = [
        {"from": source.strip().split("."), "to": target.strip().split(".")}
        for source, target in ends
    ]
    return {
        "format": "convgrad-page",
        "version": 1,
        "name": name,
        "blocks": blocks,
        "wires": links,
    }


def convolution() -> dict[str, Any]:
    """Return a convolution small enough to count by hand: 3 by 3 ones over 0 to 15."""
    numbers = {"dtype": "DT_FLOAT", "shape": [1, 4, 4, 1], "data": list(range(16))}
    ones = {"dtype": "DT_FLOAT", "shape": [3, 3, 1, 1], "data": [1] * 9}
    return document(
        [
            {"id": "x", "type": "Const", "at": [0, 0], "pins": {"val": numbers}},
            {"id": "f", "type": "Const", "at": [0, 420], "pins": {"val": ones}},
            {
                "id": "y",
                "type": "Conv2D",
                "at": [380, 60],
                "pins": {"strides": "1,1,1,1", "padding": "VALID"},
            },
        ],
        "x.output > y.input\nf.output > y.filter",
        "by hand",
    )


def endless() -> dict[str, Any]:
    """Return a page that takes minutes: a convolution of 2e11 products, ten thousand times."""
    shape = {"dtype": "DT_FLOAT"}
    return document(
        [
            {
                "id": "x",
                "type": "RandomNormal",
                "at": [0, 0],
                "pins": {"shape": "{8,256,256,64}", **shape},
            },
            {
                "id": "f",
                "type": "RandomNormal",
                "at": [0, 300],
                "pins": {"shape": "{3,3,64,256}", **shape},
            },
            {
                "id": "y",
                "type": "Conv2D",
                "at": [380, 60],
                "pins": {"strides": "1,1,1,1", "padding": "SAME"},
            },
        ],
        "x.output > y.input\nf.output > y.filter",
        "endless",
    )


def chain(count: int) -> dict[str, Any]:
    """Return a page of so many blocks: random numbers and a row of Negate blocks, in columns of 20."""
    pins = {"shape": "{3}", "dtype": "DT_FLOAT"}
    start = {"id": "b0", "type": "RandomNormal", "at": [0, -60], "pins": pins}
    rest = [
        {"id": f"b{at}", "type": "Negate", "at": [260 * (at // 20), 110 * (at % 20)], "pins": {}}
        for at in range(1, count)
    ]
    wires = "\n".join(
        f"b{at - 1}.{'y' if at > 1 else 'output'} > b{at}.x" for at in range(1, count)
    )
    return document([start, *rest], wires, "chain")


def enuspace() -> Page:
    """Return a page for `pages_files.writing.save`: a matrix product, with a `.dat`."""
    a = np.arange(256, dtype=np.float32).reshape(2, 128) / 8
    b = np.eye(128, 3, dtype=np.float32)
    blocks = [
        block("ID_A", "Const", (40, 40), val=a),
        block("ID_B", "Const", (40, 240), val=b),
        block("ID_C", "MatMul", (340, 100), attrs="transpose_a_ = false; transpose_b_ = false"),
        block("ID_SESSION", "ClientSession", (640, 100), device="/cpu:0"),
    ]
    wires = (
        "ID_A.output > ID_C.a",
        "ID_B.output > ID_C.b",
        "ID_C.product > ID_SESSION.fetch_outputs",
    )
    return Page("matmul", blocks, [wire(each) for each in wires], 800, 600)
