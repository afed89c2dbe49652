"""The convolutions the bridge to JAX is tried with: a table of edges written by hand, and a drawn list between them.

Sizes are small, so that a whole derivative fits a test; what matters is which code a configuration leads to: every kind
of window, step and group, both layouts, all orders of dimensions, both directions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import product

Pair = tuple[int, int]
Pads = str | tuple[Pair, Pair]
Orders = tuple[str, str, str]

OURS = (("NHWC", "HWIO", "NHWC"), ("NCHW", "HWIO", "NCHW"))
"""Orders of dimensions the kernels read as they are."""
OTHERS = (
    ("NCHW", "OIHW", "NCHW"),  # JAX's default, PyTorch's order
    ("NHWC", "OIHW", "NHWC"),
    ("NHWC", "OHWI", "NCHW"),
    ("NCHW", "HWOI", "NHWC"),
    ("CHWN", "IHWO", "HWNC"),  # how JAX writes filter gradients
    ("HNWC", "IWHO", "CWHN"),  # rows and columns apart, and the other way around
    ("NWHC", "WHIO", "NWHC"),
)


@dataclass(frozen=True)
class Configuration:
    """One call, without its numbers."""

    function: str = "conv2d"
    """conv2d, depthwise_conv2d, conv2d_transpose or conv_general_dilated."""
    batch: int = 2
    size: Pair = (6, 7)
    """Of the image; of the result of conv2d_transpose."""
    groups: int = 1
    """The channels, of depthwise_conv2d."""
    depth: int = 4
    """Channels of a group of the image, 1 for depthwise_conv2d."""
    made: int = 6
    """Channels a group makes."""
    kernel: Pair = (3, 3)
    strides: Pair = (1, 1)
    padding: Pads = "SAME"
    dilations: Pair = (1, 1)
    layout: str = "NHWC"
    # What only conv_general_dilated has:
    orders: Orders | None = None
    """Dimensions of image, filter and result; None is JAX's default."""
    image_dilation: Pair = (1, 1)
    batch_groups: int = 1

    @property
    def general(self) -> bool:
        return self.function == "conv_general_dilated"

    @property
    def transposed(self) -> bool:
        return self.function == "conv2d_transpose"

    @property
    def image_order(self) -> str:
        if self.general:
            return self.orders[0] if self.orders else "NCHW"
        return self.layout

    @property
    def filter_order(self) -> str:
        if self.general:
            return self.orders[1] if self.orders else "OIHW"
        return "HWIO"

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Of what `conv2d` takes, also where that is the result."""
        return ordered(self.image_order, N=self.batch, C=self.groups * self.depth, **self._area)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        if self.function == "depthwise_conv2d":
            return (*self.kernel, self.groups, self.made)
        height, width = self.kernel
        made = self.groups * self.made * self.batch_groups
        return ordered(self.filter_order, I=self.depth, O=made, H=height, W=width)

    @property
    def result_size(self) -> Pair:
        return (self._windows(0), self._windows(1))

    @property
    def _area(self) -> dict[str, int]:
        return {"H": self.size[0], "W": self.size[1]}

    def _windows(self, axis: int) -> int:
        size = (
            max(0, (self.size[axis] - 1) * self.image_dilation[axis] + 1) if self.size[axis] else 0
        )
        if isinstance(self.padding, str) and self.padding.startswith("SAME"):
            return -(-size // self.strides[axis])
        before, after = (0, 0) if isinstance(self.padding, str) else self.padding[axis]
        room = size + before + after - (self.dilations[axis] * (self.kernel[axis] - 1) + 1)
        return room // self.strides[axis] + 1 if room >= 0 else 0

    @property
    def fits(self) -> bool:
        """Whether there is a result with numbers in it."""
        return min(self.result_size) > 0

    @property
    def plain(self) -> bool:
        """Whether it is a convolution of TensorFlow's, which the kernels compute as it stands."""
        pads = () if isinstance(self.padding, str) else (*self.padding[0], *self.padding[1])
        return (
            (not self.general or self.orders in OURS)
            and self.image_dilation == (1, 1)
            and self.batch_groups == 1
            and self.padding != "SAME_LOWER"
            and min(pads, default=0) >= 0
        )

    @property
    def ours(self) -> bool:
        """Whether the kernels compute it, turned about if need be; the rest is left to JAX."""
        if self.image_dilation == (1, 1):
            return True
        # An input gradient: of steps it has the image's, and its pads end where the window does.
        assert not isinstance(self.padding, str)
        spare = [
            dilation * (kernel - 1) - max(pads)
            for dilation, kernel, pads in zip(
                self.dilations, self.kernel, self.padding, strict=True
            )
        ]
        return self.strides == (1, 1) and min(spare) >= 0

    def __str__(self) -> str:
        pads = (
            self.padding
            if isinstance(self.padding, str)
            else "{}+{},{}+{}".format(*sum(self.padding, ()))
        )
        parts = [
            self.function.replace("_conv2d", "").replace("conv2d_", "").replace("_dilated", ""),
            f"{self.batch}x{self.size[0]}x{self.size[1]}x{self.groups}*{self.depth}",
            f"k{self.kernel[0]}x{self.kernel[1]}o{self.made} {pads}",
            f"s{self.strides[0]}{self.strides[1]} d{self.dilations[0]}{self.dilations[1]}",
        ]
        if self.general:
            parts.append("-".join(self.orders) if self.orders else "default")
            if self.image_dilation != (1, 1):
                parts.append("id{}{}".format(*self.image_dilation))
            if self.batch_groups != 1:
                parts.append(f"b{self.batch_groups}")
        else:
            parts.append(self.layout)
        return " ".join(parts)


def ordered(order: str, **sizes: int) -> tuple[int, ...]:
    """Return sizes in the order of the letters of a specification."""
    return tuple(sizes[letter] for letter in order)


_dense = Configuration()
_depthwise = Configuration("depthwise_conv2d", groups=4, depth=1, made=1)
_transposed = Configuration("conv2d_transpose", strides=(2, 2), size=(8, 7))
_general = Configuration("conv_general_dilated", orders=OURS[0])
_LAYOUTS = ("NHWC", "NCHW")

EDGES = (
    *(
        replace(_dense, layout=layout, padding=word)
        for layout in _LAYOUTS
        for word in ("SAME", "VALID")
    ),
    # Pads: of each side its own, wider than the window, none.
    *(
        replace(_dense, padding=pads, layout=layout)
        for pads in (((1, 1), (1, 1)), ((0, 1), (2, 0)), ((4, 5), (3, 6)), ((0, 0), (0, 0)))
        for layout in _LAYOUTS
    ),
    # Windows of even and oblong sizes, larger than the image.
    *(
        replace(_dense, kernel=kernel, padding=word)
        for kernel in ((2, 2), (4, 2), (1, 3), (3, 1), (5, 5), (7, 7), (9, 8))
        for word in ("SAME", "VALID")
        if word == "SAME" or kernel[0] < 7
    ),
    *(
        replace(_dense, kernel=(1, 1), strides=strides, padding=pads, layout=layout)
        for strides, pads in (((1, 1), "SAME"), ((2, 2), "SAME"), ((1, 1), ((1, 1), (1, 1))))
        for layout in _LAYOUTS
    ),
    # Steps and gaps, together and apart, steps that leave pixels unread.
    *(
        replace(_dense, strides=strides, dilations=dilations, size=(9, 10))
        for strides, dilations in product(((1, 1), (2, 2), (2, 1)), ((1, 1), (2, 2), (1, 3)))
        if (strides, dilations) != ((1, 1), (1, 1))
    ),
    replace(_dense, strides=(3, 4), kernel=(2, 2), padding="VALID"),
    replace(_dense, strides=(5, 7), kernel=(2, 2)),
    replace(_dense, kernel=(7, 7), strides=(2, 2), depth=3, size=(12, 13)),
    # One of something.
    replace(_dense, size=(1, 1)),
    replace(_dense, size=(1, 1), kernel=(1, 1)),
    replace(_dense, size=(1, 9), kernel=(1, 3)),
    replace(_dense, size=(9, 1), kernel=(3, 1), layout="NCHW"),
    replace(_dense, batch=1),
    replace(_dense, depth=1),
    replace(_dense, made=1),
    replace(_dense, batch=1, depth=1, made=1, size=(1, 1), kernel=(1, 1)),
    # Vectors are filled and overflow.
    replace(_dense, depth=17, made=19),
    replace(_dense, depth=16, made=33, kernel=(1, 1)),
    replace(_dense, depth=33, made=16, layout="NCHW"),
    # Groups.
    *(
        replace(_dense, groups=groups, depth=depth, made=made, layout=layout)
        for groups, depth, made in ((2, 2, 3), (3, 1, 2), (4, 8, 4), (2, 3, 1))
        for layout in _LAYOUTS
    ),
    replace(
        _dense,
        groups=2,
        depth=2,
        made=3,
        strides=(2, 1),
        dilations=(1, 2),
        padding=((0, 2), (1, 0)),
    ),
    # Depthwise, with one and more results per channel.
    *(replace(_depthwise, made=made, layout=layout) for made in (1, 2, 3) for layout in _LAYOUTS),
    *(
        replace(_depthwise, strides=strides, dilations=dilations, padding=pads, size=(9, 8))
        for strides, dilations in (((2, 2), (1, 1)), ((1, 1), (2, 2)), ((2, 1), (1, 2)))
        for pads in ("SAME", "VALID", ((0, 2), (1, 0)))
    ),
    replace(_depthwise, kernel=(5, 5), strides=(2, 2)),
    replace(_depthwise, kernel=(2, 4)),
    replace(_depthwise, kernel=(1, 1), made=2),
    replace(_depthwise, groups=1, made=5),
    replace(_depthwise, groups=18),
    replace(_depthwise, groups=33, made=2, layout="NCHW"),
    # Transposed.
    *(
        replace(_transposed, padding=pads, layout=layout, kernel=kernel)
        for pads in ("SAME", "VALID", ((1, 0), (0, 2)))
        for layout, kernel in (("NHWC", (3, 3)), ("NCHW", (2, 4)))
    ),
    replace(_transposed, strides=(1, 1)),
    replace(_transposed, kernel=(1, 1), strides=(1, 1)),
    replace(_transposed, kernel=(1, 1)),
    replace(_transposed, strides=(1, 1), dilations=(2, 2)),
    replace(_transposed, strides=(2, 3), dilations=(2, 1), size=(9, 11)),
    replace(_transposed, groups=2, depth=2, made=3),
    # conv_general_dilated: orders of dimensions, with and without groups.
    *(
        replace(_general, orders=orders, groups=groups, depth=2)
        for orders in (None, *OURS, *OTHERS)
        for groups in (1, 2)
    ),
    *(
        replace(_general, orders=orders, groups=4, depth=1, made=made)
        for orders in (None, *OURS)
        for made in (1, 2)
    ),
    *(replace(_general, orders=orders, kernel=(1, 1)) for orders in (None, *OURS, *OTHERS[3:6])),
    replace(_general, orders=OTHERS[1], strides=(2, 1), padding=((0, 1), (2, 0)), dilations=(1, 2)),
    # What TensorFlow's functions have no words for.
    *(
        replace(_general, padding="SAME_LOWER", kernel=kernel, strides=strides, orders=orders)
        for kernel, strides, orders in (
            ((2, 4), (1, 1), OURS[0]),
            ((3, 3), (2, 2), None),
            ((4, 1), (3, 1), OURS[1]),
        )
    ),
    *(
        replace(_general, padding=pads, orders=orders, size=(9, 9))
        for pads in (((-1, 0), (0, -2)), ((-2, 3), (1, -1)), ((-3, -3), (0, 0)))
        for orders in (OURS[0], None)
    ),
    *(
        replace(
            _general, image_dilation=dilation, padding=pads, orders=orders, groups=groups, depth=2
        )
        for dilation, pads in (
            ((2, 2), ((2, 2), (2, 2))),
            ((3, 1), ((1, 2), (0, 0))),
            ((1, 2), ((1, 1), (-1, 2))),
        )
        for orders, groups in ((OURS[0], 1), (OURS[0], 2), (None, 1))
    ),
    replace(_general, image_dilation=(2, 2), padding=((2, 3), (2, 3)), kernel=(4, 4)),
    replace(_general, image_dilation=(2, 2), padding=((0, 0), (0, 0)), kernel=(2, 2)),
    replace(_general, image_dilation=(2, 2), padding=((5, 6), (4, 7)), kernel=(3, 3)),
    replace(_general, image_dilation=(2, 2), padding=((2, 2), (2, 2)), dilations=(2, 2)),
    replace(_general, image_dilation=(2, 3), padding=((2, 2), (2, 2)), strides=(2, 1)),
    *(
        replace(_general, batch=4, batch_groups=count, orders=orders, depth=3, made=2)
        for count in (2, 4)
        for orders in (OURS[0], None, OTHERS[4])
    ),
    replace(
        _general,
        batch=4,
        batch_groups=2,
        strides=(2, 2),
        dilations=(1, 2),
        padding=((1, 0), (2, 2)),
    ),
)
EMPTY = (
    replace(_dense, batch=0),
    replace(_dense, size=(0, 7)),
    replace(_dense, made=0),
    replace(_dense, size=(3, 3), kernel=(4, 4), padding="VALID"),
    replace(_depthwise, batch=0),
    replace(_transposed, batch=0),
    replace(_general, batch=0, orders=None),
    replace(_general, size=(3, 3), kernel=(5, 5), padding="VALID", orders=None),
)
"""Results or gradients without numbers, or without anything to sum."""
DRAWN = 90


def _drawn() -> tuple[Configuration, ...]:
    """Draw configurations that have a result; the list is the same in every process."""
    rng = random.Random(18)
    found: list[Configuration] = []
    while len(found) < DRAWN:
        each = drawn(rng)
        if each.fits and each not in found:
            found.append(each)
    return tuple(found)


def drawn(rng: random.Random) -> Configuration:
    """Draw a configuration, which may have no result."""
    function = rng.choice(
        ("conv2d", "depthwise_conv2d", "conv2d_transpose", *["conv_general_dilated"] * 3)
    )
    general = function == "conv_general_dilated"
    depthwise = function == "depthwise_conv2d"
    batch_groups = rng.choice((1, 1, 1, 2, 3)) if general else 1
    low = -2 if general and rng.random() < 0.3 else 0
    words: tuple[str, ...] = ("SAME", "VALID", "SAME_LOWER") if general else ("SAME", "VALID")
    some_pads = lambda: (rng.randint(low, 3), rng.randint(low, 3))  # noqa: E731
    image_dilation = _pair(rng, (1, 2, 3)) if general and rng.random() < 0.3 else (1, 1)
    if image_dilation != (1, 1):
        words = ()  # JAX takes no words there
    return Configuration(
        function=function,
        batch=rng.choice((1, 2, 3)) * batch_groups,
        size=_pair(rng, range(1, 10)),
        groups=rng.randint(1, 5)
        if depthwise
        else 1
        if batch_groups > 1
        else rng.choice((1, 1, 2, 3)),
        depth=1 if depthwise else rng.randint(1, 4),
        made=rng.choice((1, 1, 2, 3)),
        kernel=_pair(rng, range(1, 6)),
        strides=_pair(rng, (1, 1, 2, 3)),
        padding=rng.choice((*words, (some_pads(), some_pads()))),
        dilations=_pair(rng, (1, 1, 1, 2, 3)),
        layout="NHWC" if general else rng.choice(_LAYOUTS),
        orders=rng.choice((None, *OURS, OTHERS[0], _orders(rng))) if general else None,
        image_dilation=image_dilation,
        batch_groups=batch_groups,
    )


def _orders(rng: random.Random) -> Orders:
    image, window, result = (rng.sample(letters, 4) for letters in ("NHWC", "HWIO", "NHWC"))
    return ("".join(image), "".join(window), "".join(result))


def _pair(rng: random.Random, values: tuple[int, ...] | range) -> Pair:
    return (rng.choice(values), rng.choice(values))


CONFIGURATIONS = (*EDGES, *_drawn())


def some(number: int, seed: int = 1) -> list[Configuration]:
    """Return some of the list, edges and drawn ones alike; the same each time."""
    return random.Random(seed).sample(CONFIGURATIONS, number)
