"""From tensors of PyTorch to programs: which memory to make, and which programs to run on what.

A `Recipe` is all that a call needs once it has been seen: it holds no data and no tensor, and is carried out by Python
(`kernels`) or by compiled code (`handler`), on addresses. Its places are numbered through: what is given, what is
returned, and what is made and dropped.

A convolution of PyTorch, forwards or transposed, stands between two images: `near`, on which windows are placed, and
`far`, which has one pixel per window. The three sums of the engine lead from near to far (`FORWARD`), from far to near
(`INPUT_GRADIENT`) and from both to the filter (`FILTER_GRADIENT`). A transposed convolution starts at the far image.

**Filters.** Kernels want [kh, kw, near/groups, far]; PyTorch has [far, near/groups, kh, kw]. What is stored in the
kernels' order is read where it lies. So is a 1x1 filter of stride 1 in PyTorch's own order: read as [1, 1, far, near]
it is the filter of the convolution from far to near, so the two images exchange their roles. Any other filter in one of
PyTorch's two orders is reordered by a program of its own, which takes a filter's size and not an image's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ... import _engine
from ..._engine.prepare import Executable
from ..._problem import convolution
from ..._problem.convolution import Kind, Problem, Side
from ..._problem.filter_order import FilterOrder
from ..records import NOWHERE, Made
from .tensors import (
    DTYPES,
    Four,
    Tensor,
    layout,
    lies_as,
    nchw_strides,
    nhwc_strides,
    prefers_channels_last,
)

Pair = tuple[int, int]

INPUT, WEIGHT, THIRD = 0, 1, 2
"""Places: the image a layer is given, its filter, and its bias or the gradient that arrives."""
OUTPUTS = 3
"""The places of what is returned begin here: a result, or the gradients of input, weight and bias."""
_TEMPORARIES = 100
"""The places of what is made and dropped, until it is known how much is returned."""
_CALLS = {
    (Kind.FORWARD, False): convolution.CONV2D,
    (Kind.FORWARD, True): convolution.DEPTHWISE,
    (Kind.INPUT_GRADIENT, False): convolution.CONV2D_INPUT,
    (Kind.INPUT_GRADIENT, True): convolution.DEPTHWISE_INPUT,
    (Kind.FILTER_GRADIENT, False): convolution.CONV2D_FILTER,
    (Kind.FILTER_GRADIENT, True): convolution.DEPTHWISE_FILTER,
}


class Settings(NamedTuple):
    """The arguments of a convolution that are not tensors."""

    stride: Pair
    pads: tuple[Pair, Pair]
    """((top, bottom), (left, right)): PyTorch's own are alike on both sides."""
    dilation: Pair
    transposed: bool
    output_padding: Pair
    groups: int


class Run(NamedTuple):
    """A program and where its places are, which may be `NOWHERE`."""

    program: Executable
    places: tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """How a call is computed: allocate, then run in order."""

    outputs: tuple[Made | None, ...]
    temporaries: tuple[Made, ...]
    runs: tuple[Run, ...]
    scalars: tuple[float, ...] = ()
    """Numbers of passes; their place is behind all others."""

    @property
    def made(self) -> tuple[Made | None, ...]:
        return (*self.outputs, *self.temporaries)

    def on(self, places: dict[int, int], temporaries: int) -> list[Run]:
        """Return the runs on other places; those of temporaries come to lie behind each other, from one place on."""
        first = OUTPUTS + len(self.outputs)
        found = {NOWHERE: NOWHERE, **places}
        found |= {first + number: temporaries + number for number in range(len(self.temporaries))}
        return [Run(run.program, tuple(found[each] for each in run.places)) for run in self.runs]


class Sides(NamedTuple):
    """The two images and the filter of a convolution, by their sizes."""

    near: Four
    far: Four
    window: Pair
    settings: Settings

    def problem(self, kind: Kind, dtype: int, data_format: str, bias: Side = "") -> Problem:
        """Return the problem of one of the three sums; raises what `convolution.build` raises."""
        s = self.settings
        near, far = (
            (sizes if data_format == "NCHW" else (sizes[0], *sizes[2:], sizes[1]))
            for sizes in (self.near, self.far)
        )
        group_near = self.near[1] // s.groups
        depthwise = s.groups > 1 and group_near == 1
        channels = (s.groups, self.far[1] // s.groups) if depthwise else (group_near, self.far[1])
        problem = convolution.build(
            _CALLS[kind, depthwise],
            convolution.Settings(s.stride, s.dilation, s.pads, data_format),
            DTYPES[dtype],
            near,
            (*self.window, *channels),
            None if kind is Kind.FORWARD else far,
        )
        return replace(problem, bias=bias) if bias else problem

    def exchanged(self) -> Sides | None:
        """Return the convolution in which near and far have exchanged their roles, if there is one."""
        s = self.settings
        plain = s.stride == (1, 1) and s.pads == ((0, 0), (0, 0)) and s.groups == 1
        if self.window != (1, 1) or not plain:
            return None
        return self._replace(near=self.far, far=self.near)


def sides(image: Four, weight: Four, settings: Settings) -> Sides | None:
    """Return the images of a layer from the one it is given, or None where shapes do not fit or nothing is computed."""
    window = (weight[2], weight[3])
    stride, pads, dilation, transposed, output_padding, groups = settings
    if min(*image, *weight, *stride, *dilation, groups) < 1 or min(*pads[0], *pads[1]) < 0:
        return None
    if image[1] != (weight[0] if transposed else weight[1] * groups) or weight[0] % groups:
        return None
    sizes = []
    for axis in (0, 1):
        size, reach = image[2 + axis], dilation[axis] * (window[axis] - 1) + 1
        padding = sum(pads[axis])
        if transposed:
            more = output_padding[axis]
            # That many would be another window; PyTorch has it for large dilations.
            if not 0 <= more < stride[axis]:
                return None
            made = (size - 1) * stride[axis] - padding + reach + more
        else:
            made = (size + padding - reach) // stride[axis] + 1
        sizes.append(made)
    if min(sizes) < 1:
        return None
    channels = weight[1] * groups if transposed else weight[0]
    other: Four = (image[0], channels, sizes[0], sizes[1])
    near, far = (other, image) if transposed else (image, other)
    return Sides(near, far, window, settings)


def forward(
    image: Tensor, weight: Tensor, bias: Tensor | None, settings: Settings
) -> Recipe | None:
    """Return how a layer's result is computed, or None where its tensors must be copied first or are not for us."""
    between = sides(image.sizes, weight.sizes, settings)
    if between is None or not _alike(image, weight, bias):
        return None
    made = between.near if settings.transposed else between.far
    if bias is not None and (bias.sizes[0] != made[1] or (made[1] > 1 and bias.strides[0] != 1)):
        return None
    last = prefers_channels_last(image) or prefers_channels_last(weight)
    strides = nhwc_strides(made) if last else nchw_strides(made)
    result = Made(image.dtype, made, strides)
    order = _common_layout(image, Tensor(image.dtype, made, strides))
    maker = _Maker.of(weight, between)
    if order is None or maker is None:
        return None
    place = maker.weight()
    runs = maker.towards(settings.transposed, order, INPUT, place, OUTPUTS, bias)
    return maker.recipe((result,), runs)


def backward(
    grad: Tensor, image: Tensor, weight: Tensor, settings: Settings, mask: tuple[bool, bool, bool]
) -> Recipe | None:
    """Return how the gradients of input, weight and bias are computed, those of `mask`."""
    between = sides(image.sizes, weight.sizes, settings)
    if between is None or not _alike(image, weight, grad) or not any(mask):
        return None
    made = between.near if settings.transposed else between.far
    order = _common_layout(image, grad)
    maker = _Maker.of(weight, between)
    if grad.sizes != made or order is None or maker is None:
        return None
    outputs: list[Made | None] = [None, None, None]
    runs: list[Run] = []
    if mask[0]:
        outputs[0] = Made(*image)
        place = maker.weight()
        runs += maker.towards(not settings.transposed, order, THIRD, place, OUTPUTS, None)
    if mask[1] or mask[2]:
        bias = OUTPUTS + 2 if mask[2] else NOWHERE
        if mask[2]:
            outputs[2] = Made(image.dtype, (made[1],), (1,))
        if mask[1]:
            outputs[1] = Made(image.dtype, weight.sizes, maker.strides)
        runs += maker.filter_gradient(settings.transposed, order, bias, wanted=mask[1])
    return maker.recipe(tuple(outputs), runs)


def _alike(image: Tensor, weight: Tensor, third: Tensor | None) -> bool:
    kinds = {image.dtype, weight.dtype, image.dtype if third is None else third.dtype}
    return len(kinds) == 1 and image.dtype in DTYPES


def _common_layout(*images: Tensor) -> str | None:
    """Return the layout in which kernels can read and write all of some images, or None."""
    if all(lies_as(each, nhwc_strides(each.sizes)) for each in images):
        return "NHWC"
    if all(lies_as(each, nchw_strides(each.sizes)) for each in images):
        return "NCHW"
    return None


def hwio_strides(sizes: Four) -> Four:
    """Return the strides of a filter [o, i, kh, kw] that lies in memory as kernels want it: kh, kw, i, o.

    >>> hwio_strides((8, 4, 3, 5))
    (1, 8, 160, 32)
    """
    o, i, _, kw = sizes
    return (1, o, kw * i * o, i * o)


class _Maker:
    """Puts a recipe together for a filter that lies in some order."""

    def __init__(self, between: Sides, weight: Tensor, exchanged: bool, reorder: bool) -> None:
        self.between, self._weight = between, weight
        self.exchanged, self._reorder = exchanged, reorder
        self.strides = weight.strides
        """Of the filter, and so of its gradient, which is then taken without a copy."""
        self._temporaries: list[Made] = []
        self._first: list[Run] = []
        self._place: int | None = None

    @classmethod
    def of(cls, weight: Tensor, between: Sides) -> _Maker | None:
        other = between.exchanged()
        if lies_as(weight, hwio_strides(weight.sizes)):
            return cls(between, weight, exchanged=False, reorder=False)
        if other is not None and lies_as(weight, nchw_strides(weight.sizes)):
            return cls(other, weight, exchanged=True, reorder=False)
        return cls(between, weight, exchanged=False, reorder=True) if layout(weight) else None

    def weight(self) -> int:
        """Return the place of the filter as kernels want it."""
        if not self._reorder:
            return WEIGHT
        if self._place is None:
            self._place = self._temporary()
            self._first.append(Run(self._reordering(back=False), (WEIGHT, self._place)))
        return self._place

    def towards(
        self, near: bool, order: str, image: int, weight: int, result: int, bias: object
    ) -> list[Run]:
        """Return the run that leads to an image: the near one of the layer, or the far one."""
        beside = () if bias is None else (THIRD,)
        if near != self.exchanged:
            problem = self._problem(Kind.INPUT_GRADIENT, order, "" if bias is None else "input")
            return [Run(_engine.program(problem), (weight, image, result, *beside))]
        problem = self._problem(Kind.FORWARD, order, "" if bias is None else "output")
        return [Run(_engine.program(problem), (image, weight, result, *beside))]

    def filter_gradient(self, transposed: bool, order: str, bias: int, wanted: bool) -> list[Run]:
        """Return the runs that lead to the filter's gradient, and to that of the bias if it has a place."""
        # The image the layer was given is its near one, the gradient has the shape of the far one; or else.
        given_is_near = transposed == self.exchanged
        near, far = (INPUT, THIRD) if given_is_near else (THIRD, INPUT)
        which: Side = "" if bias == NOWHERE else "output" if given_is_near else "input"
        program = _engine.program(self._problem(Kind.FILTER_GRADIENT, order, which))
        result = OUTPUTS + 1 if wanted and not self._reorder else self._temporary()
        beside = () if bias == NOWHERE else (bias,)
        runs = [Run(program, (near, far, result, *beside))]
        if wanted and self._reorder:
            runs.append(Run(self._reordering(back=True), (result, OUTPUTS + 1)))
        return runs

    def recipe(self, outputs: tuple[Made | None, ...], runs: list[Run]) -> Recipe:
        shift = OUTPUTS + len(outputs) - _TEMPORARIES
        numbered = (
            Run(run.program, tuple(at + shift if at >= _TEMPORARIES else at for at in run.places))
            for run in (*self._first, *runs)
        )
        return Recipe(outputs, tuple(self._temporaries), tuple(numbered))

    @property
    def _dtype(self) -> int:
        return self._weight.dtype

    def _reordering(self, back: bool) -> Executable:
        order: Literal["OHWI", "OIHW"] = "OHWI" if layout(self._weight) == "NHWC" else "OIHW"
        size = DTYPES[self._dtype].itemsize
        return _engine.program(FilterOrder(self._weight.sizes, order, size, back))

    def _temporary(self) -> int:
        """Make room for a filter in the kernels' order."""
        sizes = self._weight.sizes
        self._temporaries.append(Made(self._dtype, sizes, hwio_strides(sizes)))
        return _TEMPORARIES + len(self._temporaries) - 1

    def _problem(self, kind: Kind, order: str, bias: Side) -> Problem:
        return self.between.problem(kind, self._dtype, order, bias)
