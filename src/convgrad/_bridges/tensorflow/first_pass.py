"""A call of batch norm that has no record yet: all checks, the passes, then the record of the next such call.

Empty images, and calls without kernels, come here every time.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ... import _engine
from ..._base.errors import ArgumentError
from ..._problem.convolution import Shape
from ..._problem.norm import graph_call as asked
from ..._problem.norm.call import ARGUMENTS, FORWARD
from ..._problem.norm.normalisation import IMAGES, Normalisation
from ..._runtime.bound import Bound
from ..records import NOWHERE
from . import handles
from .capi import Library
from .nodes import PassNode
from .recipe import Recipe, scalars

__all__ = ["compute"]


def compute(library: Library, node: PassNode, context: int, tensors: Any) -> Recipe | None:
    """Compute a call; returns how the next one like it is computed, if that needs no Python."""
    given = {place: tensors[at] for at, place in enumerate(node.call.operands)}
    shapes = {place: handles.shape(library, tensor) for place, tensor in given.items()}
    call, image = _sized(node.call, shapes)
    made: dict[str, int] = {}
    try:
        for at, place in enumerate(node.call.results):
            sizes = image if place in IMAGES else _row_shape(call, node.call, place, shapes)
            made[place] = handles.allocate(library, context, at, node.call.dtype(place), sizes)
        if call is None:
            _fill_empty(library, node.call, made, shapes)
            return None
        where = {place: handles.data(library, each) for place, each in (given | made).items()}
        where["scalars"] = scalars(call.scalars)
        _engine.run(call.task, *(where.get(place, 0) for place in call.places))
    finally:
        for tensor in made.values():
            library.DeleteTensor(tensor)
    program = _engine.program(call.task)
    if not isinstance(program, Bound):
        return None
    return _recipe(call, program, image, where["scalars"])


def _sized(call: Normalisation, shapes: dict[str, Shape]) -> tuple[Normalisation | None, Shape]:
    """Return a call with the sizes of its tensors, all checked, and the shape of images; no call for empty ones."""
    image = shapes["x"]
    asked.check_image(image)
    at = 3 if call.task.data_format == "NHWC" else 1
    channels = image[at]
    rows_cols = [image[axis] for axis in (1, 2, 3) if axis != at]
    for place, shape in shapes.items():
        if place in IMAGES:
            if shape != image:
                raise ArgumentError(
                    f"{FORWARD}: `{place}` must have the shape of `x`, {image}, got {shape}."
                )
        elif shape != (wanted := call.sized(1, 1, channels).shape(place)):
            argument = ARGUMENTS.get(place, place)
            raise ArgumentError(
                f"{FORWARD}: `{argument}` must have shape {wanted}, the channels of `x`, got {shape}."
            )
    if 0 in image:
        return None, image
    return call.sized(image[0], rows_cols[0] * rows_cols[1], channels), image


def _row_shape(
    call: Normalisation | None, asked_for: Normalisation, place: str, shapes: dict[str, Shape]
) -> Shape:
    if call is not None:
        return call.shape(place)
    at = 3 if asked_for.task.data_format == "NHWC" else 1
    return asked_for.sized(1, 1, shapes["x"][at]).shape(place)


def _fill_empty(
    library: Library, call: Normalisation, made: dict[str, int], shapes: dict[str, Shape]
) -> None:
    """Write what follows from no values: statistics are NaN, sums are 0."""
    for place, tensor in made.items():
        sizes = handles.shape(library, tensor)
        count = int(np.prod(sizes, dtype=object))
        if count:  # an image has none
            row = call.dtype(place)
            memory: Any = (ctypes.c_char * (count * row.itemsize)).from_address(
                handles.data(library, tensor)
            )
            np.ndarray((count,), row.numpy, memory)[...] = np.nan if place == "saved" else 0


def _recipe(call: Normalisation, program: Bound, image: Shape, numbers: int) -> Recipe:
    recipe = Recipe()
    places = {place: at for at, place in enumerate(call.operands)}
    for place in call.results:
        sizes = image if place in IMAGES else call.shape(place)
        places[place] = recipe.result(call.dtype(place), sizes)
    places["scalars"] = recipe.constant(numbers)
    recipe.run(program, (places.get(place, NOWHERE) for place in call.places))
    return recipe
