"""How a fused block is computed, as data: the convolution's recipe and a task of batch norm's passes put together.

Nothing here touches a tensor. A block that has no recipe, because its tensors must be copied first or are not for our
passes, is left to `blocks`, which knows what then. The places of a block are its tensors, what is made, and the numbers
of batch norm (`_problem.norm.SCALARS`), of which the momentum comes with the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ... import _engine
from ..._problem.norm import SAVED, Task
from ..._runtime.bound import Bound
from ..records import NOWHERE, Made
from . import recipes
from .fused_handler import GIVEN, MOST_MADE
from .passes import How
from .recipes import INPUT, OUTPUTS, THIRD, WEIGHT, Recipe, Run, Settings
from .tensors import DTYPES, NUMBERS, Given, Tensor, layout, lies_as

NUMBERS_OF = {row.short: number for row, number in NUMBERS.items()}
"""The numbers of dtypes by their short names."""


class Row(NamedTuple):
    """What a block does, whatever its tensors."""

    convolution: Settings
    how: How


def forward(given: Sequence[Given | None], row: Row, keeps: bool) -> Recipe | None:
    """Return how result, the convolution's result and `saved` are computed; the last two are returned if `keeps`."""
    residual, *numbers = given[3:]
    how = row.how
    recipe = _convolution(given, row)
    if recipe is None:
        return None
    made = recipe.outputs[0]
    assert made is not None
    task = _task("forward_frozen" if how.frozen else "forward", made, how)
    if task is None or (task.values < 2 and not how.frozen):
        return None
    kind = NUMBERS_OF[task.parameter]
    *_, mean, variance = numbers
    if (
        (mean is None) is not (variance is None)
        or (mean is None and how.frozen)
        or (residual is None) is bool(how.residual)
        or not all(_vector(each, task.channels, kind) for each in numbers)
        or not _lies_as(residual, _tensor(made))
    ):
        return None
    saved = Made(kind, (len(SAVED) * task.channels,), (1,))
    # Nobody needs z where nothing is kept, and frozen statistics allow the result to take its place.
    alone = how.frozen and not keeps
    outputs = (made, made if keeps else None, saved if keeps else None)
    behind = [] if keeps else [saved] if alone else [saved, made]
    at = GIVEN + len(outputs)
    y = GIVEN
    z = y + 1 if keeps else y if alone else at + 1
    where = {"x": z, "y": y, "saved": y + 2 if keeps else at}
    names = ("residual", "weight", "bias", "running_mean", "running_var")
    where |= {
        name: NOWHERE if given[number] is None else number for number, name in enumerate(names, 3)
    }
    places = {INPUT: 0, WEIGHT: 1, THIRD: 2, OUTPUTS: z}
    runs = recipe.on(places, at + len(behind))
    return _put_together(outputs, (*behind, *recipe.temporaries), runs, task, where, how, last=True)


def _convolution(given: Sequence[Given | None], row: Row) -> Recipe | None:
    """Return how the convolution is computed."""
    image, filter, bias, *_ = given
    if image is None or filter is None or not _images(image, filter):
        return None
    if bias is not None and bias.dimensions != 1:
        return None
    there = None if bias is None else bias.tensor
    return recipes.forward(image.tensor, filter.tensor, there, row.convolution)


def backward(given: Sequence[Given | None], row: Row, wanted: Sequence[bool]) -> Recipe | None:
    """Return how the wanted gradients are computed: of image, filter, its bias, weight, bias and residual."""
    image, filter, z, saved, grad, beside, *_ = given
    how = row.how
    if image is None or filter is None or z is None or saved is None or grad is None:
        return None
    if not _images(image, filter, z, grad):
        return None
    like = Made(*z.tensor)
    task = _task("backward_frozen" if how.frozen else "backward", like, how)
    if task is None:
        return None
    front, parameters = any(wanted[:3]), wanted[3] or wanted[4]
    task = replace(task, wants_x=front, wants_parameters=parameters, wants_residual=wanted[5])
    kind = NUMBERS_OF[task.parameter]
    if (
        not _vector(saved, len(SAVED) * task.channels, kind)
        or (beside is None) is bool(task.beside)
        or not (_lies_as(grad, z.tensor) and _lies_as(beside, z.tensor))
    ):
        return None
    outputs: list[Made | None] = [None] * 6
    behind: list[Made] = []
    where = {"x": 2, "saved": 3, "grad": 4, "beside": NOWHERE if beside is None else 5}

    def write(name: str, made: Made, output: int | None) -> None:
        if output is not None:
            outputs[output], where[name] = made, GIVEN + output
        else:
            behind.append(made)
            where[name] = GIVEN + len(outputs) + len(behind) - 1

    if front:
        write("dx", like, None)
    if parameters:
        channel = Made(kind, (task.channels,), (1,))
        write("dweight", channel, 3 if wanted[3] else None)
        write("dbias", channel, 4 if wanted[4] else None)
    if wanted[5]:
        write("dresidual", like, 5)
    recipe = Recipe((), (), ())
    if front:
        mask = (wanted[0], wanted[1], wanted[2])
        found = recipes.backward(z.tensor, image.tensor, filter.tensor, row.convolution, mask)
        if found is None:
            return None
        recipe = found
        outputs[:3] = recipe.outputs
    places = {INPUT: 0, WEIGHT: 1, THIRD: where.get("dx", NOWHERE)}
    places |= {OUTPUTS + number: GIVEN + number for number in range(3)}
    runs = recipe.on(places, GIVEN + len(outputs) + len(behind))
    made = (*behind, *recipe.temporaries)
    return _put_together(tuple(outputs), made, runs, task, where, how, last=False)


def _images(*given: Given | None) -> bool:
    return all(
        each is not None and each.dimensions == 4 and each.tensor.dtype in DTYPES for each in given
    )


def _tensor(made: Made) -> Tensor:
    sizes: Any = made.sizes
    strides: Any = made.strides
    return Tensor(made.dtype, sizes, strides)


def _lies_as(given: Given | None, like: Tensor) -> bool:
    """Tell whether an image, if there is one, can be read together with another one."""
    return given is None or (
        given.dimensions == 4
        and given.tensor.dtype == like.dtype
        and given.tensor.sizes == like.sizes
        and lies_as(given.tensor, like.strides)
    )


def _vector(given: Given | None, size: int, dtype: int) -> bool:
    if given is None:
        return True
    dimensions, tensor = given
    return (
        dimensions == 1
        and tensor.dtype == dtype
        and tensor.sizes[0] == size
        and (size == 1 or tensor.strides[0] == 1)
    )


def _task(name: Any, image: Made, how: How) -> Task | None:
    """Return the task of an image, or None where it is not one of ours."""
    row = DTYPES[image.dtype]
    data_format: Any = layout(_tensor(image))
    if data_format is None or row.is_integer or 0 in image.sizes:
        return None
    n, c, h, w = image.sizes
    task = Task(name, row, data_format, n, h * w, c)
    return replace(task, activation=how.activation, residual=how.residual)


def _put_together(
    outputs: tuple[Made | None, ...],
    temporaries: tuple[Made, ...],
    runs: list[Run],
    task: Task,
    where: dict[str, int],
    how: How,
    last: bool,
) -> Recipe | None:
    where = {**where, "scalars": GIVEN + len(outputs) + len(temporaries)}
    passes = Run(_engine.program(task), tuple(where.get(name, NOWHERE) for name in task.places))
    every = (*runs, passes) if last else (passes, *runs)
    if not all(isinstance(run.program, Bound) for run in every):
        return None
    if len(outputs) + len(temporaries) > MOST_MADE:
        return None
    values = task.values
    scalars = (how.epsilon, 0.0, how.slope, values / max(values - 1, 1))
    return Recipe(outputs, temporaries, every, scalars)
