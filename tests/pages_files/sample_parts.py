"""What sample pages of enuSpace are made of, and what they carry besides: old results, labels, plots, scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from convgrad._apps.pages.page import Block, Page, Value
from pages_files.writing import block, save, wire

DRAWING = """<rect id="ID_R" x="0" y="0" width="10" height="10" style="fill:#ffffff"/>
<path id="ID_P" d="M 0 0 L 9 9"/>
<text id="ID_T2" x="1">auto C = MatMul(root, A, B, MatMul::TransposeB(true));</text>
<pg-trend id="ID_TREND"><pg-trendseries variable="ID_COST.result_output"/></pg-trend>
<pg-trend-contour id="ID_IMAGE" data=""/>
<pg-editbox id="ID_EDIT"/>
<script type="text/lua">function _ontask() ID_GONE.data = ID_ANALSYS.result_y[0][0]; end</script>
"""
"""Elements that only draw, some naming blocks that are not there."""
FORMS = (3, 4, "json")
"""Of page files."""
_STALE = Value("7.500000;-3.250000", "double", (2,))
"""A result of some older run, in a shape that is not the block's."""


def in_full(page: Page) -> Page:
    """Add to every block what enuSpace writes and nobody may read."""
    used: dict[str, list[str]] = {}
    for each in page.wires:
        used.setdefault(each.source, []).append(each.source_pin)
    blocks = []
    for at, each in enumerate(page.blocks):
        pins = dict(each.pins)
        if each.in_graph and each.symbol != "InputList":
            pins["scope"] = Value("scope")
        for pin in dict.fromkeys(used.get(each.id, [])):
            if pin != "grad_outputs" and not pin.startswith("result_"):
                pins.setdefault(pin, Value(""))
                pins.setdefault(f"result_{pin}", _STALE)
        blocks.append(replace(each, pins=pins, x=40.0 + 130 * (at % 9), y=40.0 + 150 * (at // 9)))
    return Page(page.name, blocks, page.wires, 1920, 1080)


def store(page: Page, folder: Path, form: int | str) -> Path:
    """Write a page in one of its `FORMS`. As JSON it has no drawing, and only the blocks of the plug-in's own task."""
    if form == "json":
        blocks = [each for each in page.blocks if each.in_graph]
        ids = {each.id for each in blocks}
        wires = [each for each in page.wires if {each.source, each.target} <= ids]
        page = replace(page, blocks=blocks, wires=wires)
    return save(page, folder, form, DRAWING)


def page(name: str, blocks: list[Block], wires: str) -> Page:
    """Return a page; wires are lines such as `a.output > b.x`, those in brackets are hidden."""
    links = [line.strip() for line in wires.strip().splitlines()]
    made = [wire(line.strip("()"), hidden=line.startswith("(")) for line in links]
    return in_full(Page(name, blocks, made))


def rand(count: int, skip: int = 0) -> list[float]:
    """Return `rand()/32767` as six decimals of a float32, from the seed 1."""
    state, found = 1, []
    for _ in range(skip + count):
        state = (state * 214013 + 2531011) % (1 << 32)
        found.append(float(f"{np.float32((state >> 16 & 0x7FFF) / 32767):.6f}"))
    return found[skip:]


def floats(values: object, *shape: int) -> np.ndarray:
    """Return an array of float32."""
    return np.array(values, np.float32).reshape(shape)


def doubles(values: object, *shape: int) -> np.ndarray:
    """Return an array of float64."""
    return np.array(values, np.float64).reshape(shape)


def variable(id: str, first: np.ndarray) -> Block:
    """Return a Variable as the pages have them: typed values, no dtype, and a shape that is a leftover."""
    return block(
        id,
        "Variable",
        shape="{2,2}",
        dtype="",
        initvalues=first,
        attrs="container_ =;shared_name_ =;",
    )


def descent(id: str) -> Block:
    """Return an ApplyGradientDescent."""
    return block(id, "ApplyGradientDescent", attrs="use_locking_ = false;")


def mean(id: str, axis: str, keep: str = "false") -> Block:
    """Return a Mean over axes typed as a literal."""
    return block(id, "Mean", axis=axis, attrs=f"keep_dims_ = {keep};")


def matmul(id: str, a: str = "false", b: str = "false") -> Block:
    """Return a MatMul."""
    return block(id, "MatMul", attrs=f"transpose_a_ = {a};transpose_b_ = {b};")


def lines(text: str) -> str:
    """Return a text without its empty lines."""
    return "\n".join(line for line in text.splitlines() if line.strip())
