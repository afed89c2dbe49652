"""What a pack can hold, as a recipe: a convolution with or without bias, batch norm, or a block of both.

A recipe is parts in order, each a program of the engine, over named places. The caller brings the places that are given
or made. Temporaries lie in the scratch, and constants in the pack.

As lines of text::

    conv2d 8x28x28x64 3x3x64x64 bias=output                       a convolution with a bias
    batch_norm_act.forward 8x196x32 NHWC float32 relu ...         batch norm, as `_problem.norm.normalisation` writes it
    conv2d 8x28x28x64 3x3x64x64 | batch_norm_act.forward relu ... a block

`bias` is `output` for a forward pass and `input` for an input gradient, to whose result it is added; a filter gradient
with either writes the bias's gradient too. The batch norm of a block leaves out sizes, layout and dtype: it has those
of the convolution's result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import DType
from ..._base.errors import ArgumentError, ConvgradError, shown
from ..._problem import text as _problem_text
from ..._problem.convolution import Kind, Problem, Side
from ..._problem.norm import normalisation
from ..._problem.norm.normalisation import Normalisation
from . import names

Role = Literal["given", "made", "temporary", "constant"]
ROLES: tuple[Role, ...] = ("given", "made", "temporary", "constant")
"""By their numbers in convgrad_pack.h."""
_SIDES: dict[str, Side] = {"input": "input", "output": "output"}
_ALLOWED = {
    Kind.FORWARD: ("output",),
    Kind.INPUT_GRADIENT: ("input",),
    Kind.FILTER_GRADIENT: ("output", "input"),
}
_IN_BLOCKS = {"weight": "norm_weight", "bias": "norm_bias"}
"""A block's convolution may have a bias of its own."""


@dataclass(frozen=True)
class Block:
    """A convolution and the batch norm with activation of its result."""

    problem: Problem
    norm: Normalisation


Asked = Problem | Normalisation | Block


@dataclass(frozen=True)
class Place:
    """An array."""

    name: str
    dtype: DType
    elements: int
    role: Role
    data: bytes = b""
    """Of a constant."""

    @property
    def nbytes(self) -> int:
        return self.elements * self.dtype.itemsize


@dataclass(frozen=True)
class Run:
    """A program, and which places of the recipe are its own, in its order of them; None for a null pointer."""

    asked: Problem | Normalisation
    seen: tuple[str | None, ...]


@dataclass(frozen=True)
class Recipe:
    """Parts and places; those of the caller come first."""

    asked: Asked
    parts: tuple[Run, ...]
    places: tuple[Place, ...]

    @property
    def problem(self) -> Problem | None:
        """The convolution that this is, with no more than a bias."""
        return self.asked if isinstance(self.asked, Problem) else None

    @cached_property
    def callers(self) -> tuple[Place, ...]:
        """The places that the caller brings."""
        return tuple(each for each in self.places if each.role in ("given", "made"))

    @property
    def dtype(self) -> DType:
        return dtype_of(self.asked)

    @cached_property
    def line(self) -> str:
        return write(self.asked)


def dtype_of(asked: Asked) -> DType:
    """Return what images consist of."""
    if isinstance(asked, Block):
        return asked.problem.dtype
    return asked.dtype if isinstance(asked, Problem) else asked.task.dtype


def recipe_of(asked: Asked) -> Recipe:
    """Return the recipe of what was asked for."""
    if isinstance(asked, Problem):
        return Recipe(asked, (_part(asked),), _of_problem(asked))
    if isinstance(asked, Normalisation):
        seen = {name: name for name in (*asked.operands, *asked.results)}
        return Recipe(asked, (_passes(asked, seen),), (*_of_call(asked, seen), _scalars(asked)))
    return _of_block(asked)


def _part(problem: Problem, result: str = "") -> Run:
    first, second, own = names.argument_names(problem)
    beside = ("bias",) if problem.bias else ()
    return Run(problem, (first, second, result or own, *beside))


def _of_problem(problem: Problem) -> tuple[Place, ...]:
    first, second, result = names.argument_names(problem)
    # Operands that nobody reads may have any size.
    sizes = [0 if problem.is_empty else prod(shape) for shape in problem.operand_shapes]
    found = [
        Place(first, problem.dtype, sizes[0], "given"),
        Place(second, problem.dtype, sizes[1], "given"),
        Place(result, problem.dtype, prod(problem.result_shape), "made"),
    ]
    if problem.bias:
        role: Role = "given" if problem.adds_bias else "made"
        found.append(Place("bias", problem.dtype, problem.bias_c, role))
    return tuple(found)


def _passes(call: Normalisation, seen: dict[str, str]) -> Run:
    known = {**seen, "scalars": "scalars"}
    return Run(call, tuple(known.get(place) for place in call.places))


def _of_call(call: Normalisation, seen: dict[str, str]) -> tuple[Place, ...]:
    roles: dict[str, Role] = {
        **dict.fromkeys(call.operands, "given"),
        **dict.fromkeys(call.results, "made"),
    }
    return tuple(
        Place(seen[place], call.dtype(place), call.elements(place), role)
        for place, role in roles.items()
    )


def _scalars(call: Normalisation) -> Place:
    data = np.array(call.scalars, "<f8")
    return Place("scalars", dtypes.DOUBLE, data.size, "constant", data.tobytes())


def _of_block(block: Block) -> Recipe:
    """A forward pass keeps the convolution's result and `saved`, which the backward pass reads.

    With frozen statistics neither is kept: the convolution writes to y, and batch norm goes over it in place.
    """
    problem, call = block.problem, block.norm
    frozen = call.task.name == "forward_frozen"
    result = "y" if frozen else "output"
    seen = {name: _IN_BLOCKS.get(name, name) for name in (*call.operands, *call.results)}
    seen["x"] = result
    passes = {place.name: place for place in _of_call(call, seen)}
    convolution = {place.name: place for place in _of_problem(problem)}
    if frozen:
        del convolution["output"]
        passes["saved"] = replace(passes["saved"], role="temporary")
    else:
        del passes["output"]
    all_of_them = [*convolution.values(), *passes.values(), _scalars(call)]
    ordered = tuple(sorted(all_of_them, key=lambda place: ROLES.index(place.role)))
    return Recipe(block, (_part(problem, result), _passes(call, seen)), ordered)


def write(asked: Asked) -> str:
    """Spell what was asked for; `read` gives it back."""
    if isinstance(asked, Normalisation):
        return normalisation.write(asked)
    if isinstance(asked, Block):
        name, _, _, _, *rest = normalisation.write(asked.norm).split(" ")
        return " ".join([write(asked.problem), "|", name, *rest])
    line = _problem_text.write(replace(asked, bias=""))
    return f"{line} bias={asked.bias}" if asked.bias else line


def is_special(line: str) -> bool:
    """Tell whether a line is more than a convolution's."""
    return (
        "|" in line or normalisation.is_text(line) or any(_is_bias(word) for word in line.split())
    )


def read(line: str) -> Asked:
    """Read one such line.

    >>> write(read("conv2d 1x8x8x4 3x3x4x8 | batch_norm_act.forward_frozen relu6 given=bias epsilon=0.001"))
    'conv2d 1x8x8x4 3x3x4x8 padding=1,1:1,1 | batch_norm_act.forward_frozen relu6 given=bias epsilon=0.001'
    """
    words = line.split()
    if "|" not in words:
        return _norm(" ".join(words)) if normalisation.is_text(words[0]) else _convolution(words)
    at = words.index("|")
    problem, rest = _convolution(words[:at]), words[at + 1 :]
    if problem.kind is not Kind.FORWARD or problem.is_empty:
        raise ArgumentError(
            f"a block begins with a forward convolution that has elements, got {shown(' '.join(words[:at]))}."
        )
    if not rest or rest[0] not in (f"{_PREFIX}forward", f"{_PREFIX}forward_frozen"):
        raise ArgumentError(
            f"behind the | of a block stands {_PREFIX}forward or {_PREFIX}forward_frozen, then an activation,"
            f" got {shown(' '.join(rest))}."
        )
    images = problem.batch
    pixels = problem.rows.out * problem.cols.out
    sizes = f"{images}x{pixels}x{problem.out_c}"
    own = [sizes, problem.data_format, problem.dtype.numpy.name]
    return Block(problem, _norm(" ".join([rest[0], *own, *rest[1:]])))


_PREFIX = "batch_norm_act."


def _norm(line: str) -> Normalisation:
    return normalisation.read(line)


def _is_bias(word: str) -> bool:
    return word == "bias" or word.startswith("bias=")


def _convolution(words: list[str]) -> Problem:
    biases = [word for word in words if _is_bias(word)]
    problem = _problem_text.read_line(
        " ".join(each for each in words if each not in biases)
    ).problem
    if not biases:
        return problem
    side = _SIDES.get(biases[0].removeprefix("bias="), "")
    allowed = _ALLOWED[problem.kind]
    if len(biases) > 1 or side not in allowed:
        raise ArgumentError(
            f"`bias` of a {problem.kind.value} must be {' or '.join(allowed)}, given once, "
            f"got {shown(' '.join(biases))}."
        )
    return replace(problem, bias=side)


def read_lines(text: str, name: str) -> list[Asked]:
    """Read a file of lines, each once; `name` is the file's, for messages."""
    special: list[Asked] = []
    plain = text.removeprefix("\ufeff").split("\n")
    for number, line in enumerate(plain):
        said = line.partition("#")[0].strip()
        if said and is_special(said):
            plain[number] = ""
            try:
                special.append(read(said))
            except ConvgradError as error:
                raise ArgumentError(f"{name}, line {number + 1}: {error}") from None
    return list(dict.fromkeys([*_problem_text.read_lines("\n".join(plain), name), *special]))
