"""A call as its caller wrote it, and the one place where it is read, for every kind of array.

The order of checks is TensorFlow's: call form, words and lists (`arguments`), then dtypes, ranks, channels, window,
`out_backprop`; for batch norm settings, then dtypes, then shapes. Each argument is read once, and nothing is allocated
before all checks have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

from .._base.dtypes import FLOATING, DType, accumulator
from .._problem import arguments, convolution
from .._problem.arguments import Given, as_written
from .._problem.convolution import Call, Kind, Problem, Settings, Shape
from .._problem.norm import call as norm
from .._problem.norm.call import ARGUMENTS, ONE
from .._problem.norm.normalisation import Normalisation
from .borrowed import Borrowed

Key = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""What a call is remembered by: the call, its sizes and settings; shapes and dtypes; switches."""

Borrow = Callable[[str, str, Any, tuple[DType, ...], DType | None], Borrowed]
"""An adapter's `borrow`."""


class Like(NamedTuple):
    """An array of the shape that a gradient is to have, in the place of sizes; its values are not read."""

    array: Any


class Checked(NamedTuple):
    """A request after all checks."""

    problem: Problem
    first: Borrowed
    second: Borrowed
    shape: Shape
    """The result's: the problem counts all batch dimensions as one."""


class Request(NamedTuple):
    """One of the three sums, on two arrays: input and filter, filter and gradient, or input and gradient."""

    call: Call
    given: Given
    wanted: Any
    """Sizes of a gradient, or `Like` an array; None for a forward pass."""
    first: Any
    second: Any
    key: Key | None = None
    """What a call of plain arguments is remembered by; it holds copies of them."""

    def read(
        self, borrow: Borrow, later: Callable[[Any], bool] | None = None
    ) -> tuple[Settings, Any, Borrowed, Borrowed]:
        """Return the settings, the wanted shape and the two arrays, each after its own checks.

        The shape is a tuple of ints, or a borrowed array that has it, or sizes of which `later` says that they are not
        known before a graph is run.
        """
        call, given, wanted = self.call, self.given, self.wanted
        if self.key is None:
            settings = arguments.settings(call.function, *given)
        else:
            # From the key's copies: another thread may be changing the caller's lists.
            _, sizes, _, *copies = self.key[0]
            settings = arguments.read_settings(
                call.function, given[0], *map(as_written, copies, (*given[1:], ()))
            )
            wanted = as_written(sizes, wanted)
        if type(wanted) is Like:
            return settings, *self._arrays_and_like(borrow, wanted.array)
        made, one, two = {
            Kind.FORWARD: (call.grad, call.input, call.filter),
            Kind.INPUT_GRADIENT: (call.input, call.filter, call.grad),
            Kind.FILTER_GRADIENT: (call.filter, call.input, call.grad),
        }[call.kind]
        if call.kind is not Kind.FORWARD and (later is None or not later(wanted)):
            wanted = arguments.sizes(call.function, made, wanted, call.lengths)
        if call.grad_first:
            second = borrow(call.function, two, self.second, call.allowed, None)
            first = borrow(call.function, one, self.first, call.allowed, second.row)
        else:
            first = borrow(call.function, one, self.first, call.allowed, None)
            second = borrow(call.function, two, self.second, call.allowed, first.row)
        return settings, wanted, first, second

    def check(self, borrow: Borrow) -> Checked:
        """Make all checks, for arrays whose shapes are known."""
        settings, wanted, first, second = self.read(borrow)
        if type(wanted) is Borrowed:
            wanted = wanted.shape
        call, shape, batch = self.call, first.shape, ()
        if call.batched and len(shape) > 4:
            batch = shape[:-3]
            shape = (prod(batch), *shape[-3:])
        shapes = {
            Kind.FORWARD: (shape, second.shape, None),
            Kind.INPUT_GRADIENT: (wanted, shape, second.shape),
            Kind.FILTER_GRADIENT: (shape, wanted, second.shape),
        }[call.kind]
        problem = convolution.build(call, settings, first.row, *shapes)
        made = problem.result_shape
        return Checked(problem, first, second, (*batch, *made[1:]) if batch else made)

    def _arrays_and_like(self, borrow: Borrow, like: Any) -> tuple[Borrowed, Borrowed, Borrowed]:
        call = self.call
        to_input = call.kind is Kind.INPUT_GRADIENT
        image, taps = (like, self.first) if to_input else (self.first, like)
        x = borrow(call.function, call.input, image, call.allowed, None)
        f = borrow(call.function, call.filter, taps, call.allowed, x.row)
        g = borrow(call.function, call.grad, self.second, call.allowed, x.row)
        if to_input and x.shape is not None:  # 2 sizes are legal, a matrix is not
            convolution.check_rank(call.function, call.input, x.shape)
        return (x, f, g) if to_input else (f, x, g)


# Batch norm. ----------------------------------------------------------------------------------------------------------


class CheckedNorm(NamedTuple):
    """A request of batch norm after all checks that can be made before it runs."""

    function: str
    settings: norm.Settings
    row: DType
    """The dtype of images; rows have its accumulator."""
    arrays: dict[str, Borrowed]
    """What is given, by its place in a task."""

    @property
    def sizes(self) -> norm.Sizes:
        """Those of the images, if they are known."""
        return self.settings.sizes(self.arrays["x"].shape)

    @property
    def operands(self) -> dict[str, Any]:
        """The arrays in the framework's own type, by their places."""
        return {place: each.array for place, each in self.arrays.items()}

    def forward(self, sizes: norm.Sizes) -> Normalisation:
        """Return the forward call; one without a number has the sizes of one with a single number."""
        sizes = ONE if sizes.is_empty else sizes
        return self.settings.normalisation(self.row, sizes, self.arrays, "residual" in self.arrays)

    def backward(self, sizes: norm.Sizes) -> Normalisation:
        """Return the call for all gradients."""
        has_residual = "residual" in self.arrays
        return self.forward(sizes).backward(x=True, parameters=True, residual=has_residual)


class NormRequest(NamedTuple):
    """Batch norm with activation, or its gradients."""

    function: str
    given: tuple[Any, ...]
    """The settings, in the order of `norm.settings`."""
    images: Mapping[str, Any]
    """By argument, in the order in which they are checked; None for one that is not there."""
    rows: Mapping[str, Any]

    @property
    def values(self) -> list[Any]:
        """All arrays that are there."""
        every = (*self.images.values(), *self.rows.values())
        return [each for each in every if each is not None]

    def check(self, borrow: Borrow) -> CheckedNorm:
        """Make all checks that shapes allow: where a graph is being built, sizes may not be known yet."""
        function = self.function
        settings = norm.settings(function, *self.given)
        mean, variance = self.rows["mean"], self.rows["variance"]
        if function == norm.FORWARD:
            norm.check_statistics(function, settings.is_training, mean, variance)
        else:
            norm.check_given(function, "mean", mean)
            norm.check_given(function, "variance", variance)
        found: dict[str, Borrowed] = {}
        row: DType | None = None
        for name, value in self.images.items():
            if value is not None or name != "residual":
                found[name] = borrow(function, name, value, FLOATING, row)
                row = found[name].row
        assert row is not None
        wide = accumulator(row)
        alike = {name: each.shape for name, each in found.items()}
        image = alike.pop("input")
        rows = {
            name: borrow(function, name, value, (wide,), wide)
            for name, value in self.rows.items()
            if value is not None
        }
        shapes = {name: each.shape for name, each in rows.items()}
        norm.check_shapes(function, settings.data_format, image, alike, shapes)
        found |= rows
        places = {place: found[name] for place, name in ARGUMENTS.items() if name in found}
        return CheckedNorm(function, settings, row, places)
