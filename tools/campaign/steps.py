"""What a trial is made of: its data, its operands in memory, its calls."""

from __future__ import annotations

from typing import Any

import numpy as np

import convgrad
from cases import NUMPY, Data, door_settings, run, whole_numbers
from guard import Room
from kernels import compute, placed
from layouts import LAYOUTS

from .trial import Trial, target_of


def data_of(trial: Trial) -> tuple[Data, Any]:
    """Draw a trial's operands; the second value is the 1x1 filter of `separable_conv2d`.

    An operand that the door gets broadcast is constant along its first axis, for every call.
    """
    rng = np.random.default_rng(trial.seed)
    case, dtype = trial.case, NUMPY[trial.case.dtype]
    shapes = (case.input_shape, case.filter_shape, case.output_shape)
    if trial.data == "wrapping":
        data = Data(*(rng.integers(-(2**31), 2**31, s, dtype=np.int32) for s in shapes))
    elif trial.data == "normal":
        scales = 2.0 ** rng.integers(-3, 4, 3)
        drawn = (rng.standard_normal(s) * scale for s, scale in zip(shapes, scales, strict=True))
        data = Data(*(each.astype(dtype) for each in drawn))
    else:
        data = whole_numbers(case, rng, 2 if trial.mixing else 4)
    if trial.data == "special":
        for array in (data.x, data.f, data.g):
            count = min(int(rng.integers(0, 4)), array.size)
            places = rng.choice(array.size, count, replace=False)
            array.reshape(-1)[places] = rng.choice([np.inf, -np.inf, np.nan], count).astype(dtype)
    mixing = None
    if trial.mixing:
        channels = case.groups * case.group_out
        mixing = rng.integers(-2, 3, (1, 1, channels, trial.mixing)).astype(dtype)
    for name, layout in zip(operand_names(trial), trial.layouts, strict=True):
        if layout == "broadcast":
            array = getattr(data, name)
            array[...] = array[:1]
    return data, mixing


def operand_names(trial: Trial) -> tuple[str, str]:
    return {"forward": ("x", "f"), "input": ("f", "g"), "filter": ("x", "g")}[trial.kind]


_ROOMS: list[Room] = []


def put(values: Any, place: str, slot: int) -> Any:
    """Place an array in one of the rooms of this process, which are used again by the next trial."""
    if place == "shifted":
        return placed(values, "shifted")
    while len(_ROOMS) <= slot:
        _ROOMS.append(Room())
    return _ROOMS[slot].put(values, "start" if place == "start" else "end")


def laid_out(values: Any, layout: str, slot: int) -> Any:
    """Return the same numbers in another layout."""
    if layout in ("start", "end"):
        return put(values, layout, 3 + slot)
    if layout == "broadcast":
        return np.broadcast_to(values[:1].copy(), values.shape)
    if values.size == 0:
        return values
    return LAYOUTS[layout](values)


def call_door(trial: Trial, operands: tuple[Any, Any], mixing: Any) -> Any:
    """Call the public function; the operand that is not used stays None."""
    case = trial.case
    data = Data(None, None, None)
    data = Data(**{**data.__dict__, **dict(zip(operand_names(trial), operands, strict=True))})
    if trial.op == "separable_conv2d":
        _, settings = door_settings(case, "friendly")
        return convgrad.separable_conv2d(data.x, data.f, mixing, **settings)
    if trial.op == "conv2d_transpose":
        _, settings = door_settings(case, "friendly")
        return convgrad.conv2d_transpose(data.g, data.f, case.input_shape, **settings)
    if trial.door == "nn":
        return _call_nn(trial, data)
    return run(case, trial.kind, data, trial.door)


def _call_nn(trial: Trial, data: Data) -> Any:
    """Call TensorFlow 2's function; it has no gradient of the dense convolution."""
    case, module = trial.case, convgrad.nn
    if not case.depthwise and trial.kind != "forward":
        return run(case, trial.kind, data, "v1")
    _, settings = door_settings(case, "v1")
    if not case.depthwise:
        return module.conv2d(data.x, data.f, **settings)
    if trial.kind == "input":
        return module.depthwise_conv2d_backprop_input(case.input_shape, data.f, data.g, **settings)
    if trial.kind == "filter":
        sizes = case.filter_shape
        return module.depthwise_conv2d_backprop_filter(data.x, sizes, data.g, **settings)
    settings["dilations"] = list(case.dilations)
    return module.depthwise_conv2d(data.x, data.f, **settings)


def call_named(trial: Trial, name: str, data: Data) -> Any:
    """Run one algorithm on guarded memory; the result is a copy."""
    target = target_of(trial)
    count = convgrad.get_num_threads()
    return compute(name, target, trial.case, trial.kind, data, trial.place, put, count).copy()
