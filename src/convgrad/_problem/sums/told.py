"""The contract of a problem in words for people, and in plain values for machines."""

from __future__ import annotations

from math import prod
from typing import Any

from ..convolution import Kind, Problem
from . import VERSION, winograd
from .gather import GROUP, gather_contract, is_coarse, sum_bytes
from .pixels import PixelBox, PixelContract, bias_contract, pixel_contract

OUTSIDE = "outside the contract: no fused multiply-add"
"""What is said of CPUs that have none."""


def document(problem: Problem, numbers: str) -> dict[str, Any]:
    """Return the contract of a problem as plain values; `numbers` is its class."""
    found: dict[str, Any] = {"version": VERSION, "class": numbers, "type": _type(problem)}
    if problem.is_empty or problem.dtype.is_integer:
        return found
    if numbers == winograd.SUMS:
        if problem.kind is Kind.FILTER_GRADIENT:
            found |= _pixel_values(pixel_contract(problem))
        else:
            order = gather_contract(problem)
            found |= {
                "chains": order.chains,
                "block": order.block,
                "blocks": order.blocks,
                "run_taps": order.taps,
                "run_products": order.block * order.taps,
                "levels": order.levels,
            }
    elif numbers != winograd.F2_FILTER:
        found |= {"run": winograd.RUN, "chain": _winograd_chain(problem)}
    if problem.bias and not problem.adds_bias:
        found["bias"] = _pixel_values(bias_contract(problem))
    return found


def lines(problem: Problem, numbers: str) -> list[str]:
    """Return the same as sentences, the first of them without a beginning."""
    if problem.is_empty:
        return []
    if problem.dtype.is_integer:
        return ["whole numbers that wrap: any order"]
    told = _sentences(problem, numbers)
    if problem.bias and not problem.adds_bias:
        told += [f"bias: {each}" for each in _pixel_lines(bias_contract(problem))]
    elif problem.bias:
        told.append("the bias is added to the finished sum")
    if is_coarse(problem):
        told.append(f"rounded to {problem.dtype.name} once, at the end")
    return told


def _sentences(problem: Problem, numbers: str) -> list[str]:
    if numbers == winograd.F2_FILTER:
        return [f"Winograd's: chains of {winograd.CHUNK} tiles, added in order in slices of tiles"]
    if numbers != winograd.SUMS:
        chain = _winograd_chain(problem)
        return [
            f"Winograd's: channels of each frequency in runs of {winograd.RUN}"
            + (f", of chains of {chain}" if chain else "")
        ]
    if problem.kind is Kind.FILTER_GRADIENT:
        return _pixel_lines(pixel_contract(problem))
    order = gather_contract(problem)
    taps = f"{problem.rows.window}x{problem.cols.window} taps"
    several = f", in {order.chains} chains by channel" if order.chains > 1 else ""
    if order.blocks > 1:
        told = [
            f"{order.blocks} blocks of at most {order.block} channels: in each {taps}, then channels"
        ]
    else:
        told = [f"{taps} by ascending source cell, then {order.depth} channels{several}"]
    if order.blocks > 1 and several:
        told[0] += several
    if order.levels:
        told.append(
            f"a run is {_counted(order.taps, 'tap')} of a block, {GROUP} numbers of runs make a total, added in order"
        )
    else:
        told.append("one chain" if order.chains == 1 else "each is one chain")
    return told


def _pixel_lines(order: PixelContract) -> list[str]:
    units = f"{_counted(order.units, 'unit')} of {_sized(order.unit)}"
    told = [f"{units}, added as a binary tree" if order.units > 1 else units]
    several = f", in {order.chains} chains" if order.chains > 1 else ""
    if order.band:
        several += " by column"
    if order.run == order.unit:
        return [f"{told[0]}; a unit is one run{several}"]
    return [
        *told,
        f"a run is one chain over {_sized(order.run)}{several}; a unit adds its runs in order",
    ]


def _sized(box: PixelBox) -> str:
    """Write a box of pixels.

    >>> _sized(PixelBox(1, 7, 56))
    '392 pixels (1 image x 7 rows x 56 columns)'
    """
    parts = (
        _counted(size, name) for size, name in zip(box, ("image", "row", "column"), strict=True)
    )
    return f"{_counted(prod(box), 'pixel')} ({' x '.join(parts)})"


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _pixel_values(order: PixelContract) -> dict[str, Any]:
    return {
        "units": order.units,
        "unit": list(order.unit),
        "run": list(order.run),
        "chains": order.chains,
        "band": order.band,
    }


def _winograd_chain(problem: Problem) -> int:
    return 0 if is_coarse(problem) else winograd.CHAIN


def _type(problem: Problem) -> str:
    if problem.dtype.is_integer:
        return problem.dtype.name
    return "float64" if sum_bytes(problem) == 8 else "float32"
