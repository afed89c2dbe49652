"""The convolutions the bridge is tried with: a table of edges written by hand, and a drawn list for what lies between.

Sizes are small, so that a whole derivative fits a test; what matters is which code a configuration leads to: every kind
of window, step and group, each order of memory of images and filters, both directions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

Pair = tuple[int, int]

IMAGES = ("contiguous", "channels_last", "strided", "sliced")
"""How an image lies: in PyTorch's two formats, every second column of a wider one, some channels of a deeper one."""
WEIGHTS = ("OIHW", "OHWI", "HWIO", "sliced")
"""How a filter lies: PyTorch's two formats, the kernels' order, and as a part of a larger one."""


@dataclass(frozen=True)
class Configuration:
    """One call of `conv2d` or `conv_transpose2d`, without its numbers."""

    batch: int = 2
    channels: int = 4
    size: Pair = (6, 7)
    made: int = 6
    """Channels of the result."""
    kernel: Pair = (3, 3)
    stride: Pair = (1, 1)
    padding: Pair | str = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    bias: bool = True
    transposed: bool = False
    output_padding: Pair = (0, 0)
    image: str = "contiguous"
    weight: str = "OIHW"
    unbatched: bool = False

    @property
    def image_shape(self) -> tuple[int, ...]:
        return (self.batch, self.channels, *self.size)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return (self.channels, self.made // self.groups, *self.kernel)
        return (self.made, self.channels // self.groups, *self.kernel)

    @property
    def pads(self) -> Pair:
        """What is added to each axis, both sides together."""
        if self.padding == "valid":
            return (0, 0)
        if self.padding == "same":
            reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel, strict=True)]
            return (reach[0], reach[1])
        return (2 * int(self.padding[0]), 2 * int(self.padding[1]))

    @property
    def fits(self) -> bool:
        """Whether there is a result: windows fit the padded image, and transposed images have pixels left."""
        for axis in (0, 1):
            reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
            if self.transposed:
                made = (self.size[axis] - 1) * self.stride[axis] - self.pads[axis] + reach
                if made + self.output_padding[axis] < 1:
                    return False
            elif self.size[axis] + self.pads[axis] < reach:
                return False
        return True

    @property
    def left_to_pytorch(self) -> bool:
        """Whether we compute it at all: more output padding than steps is a window more, which our sums have not."""
        pairs = zip(self.output_padding, self.stride, strict=True)
        return self.transposed and any(more >= step for more, step in pairs)

    @property
    def uneven(self) -> bool:
        """Whether the two sides are padded differently."""
        return self.padding == "same" and any(total % 2 for total in self.pads)

    def __str__(self) -> str:
        return " ".join(
            (
                f"{self.batch}x{self.channels}x{self.size[0]}x{self.size[1]}",
                f"{'transposed ' * self.transposed}k{self.kernel[0]}x{self.kernel[1]} o{self.made} g{self.groups}",
                f"s{self.stride[0]}{self.stride[1]} d{self.dilation[0]}{self.dilation[1]} p{self.padding}",
                f"+{self.output_padding[0]}{self.output_padding[1]}" if self.transposed else "",
                f"{self.image} {self.weight}{' bias' * self.bias}{' unbatched' * self.unbatched}",
            )
        )


_plain = Configuration()
EDGES = (
    replace(_plain, bias=False),
    replace(_plain, batch=1),
    *(replace(_plain, image=image, weight=weight) for image in IMAGES for weight in WEIGHTS),
    *(
        replace(_plain, kernel=(1, 1), image=image, weight=weight, bias=False)
        for image in IMAGES
        for weight in WEIGHTS
    ),
    *(
        replace(_plain, kernel=(1, 1), transposed=True, image=image, weight=weight)
        for image in ("contiguous", "channels_last")
        for weight in WEIGHTS
    ),
    replace(_plain, kernel=(1, 1), stride=(2, 2)),
    replace(_plain, kernel=(1, 1), padding=(1, 1)),
    replace(_plain, kernel=(1, 1), groups=2),
    # Images of one pixel, one channel, one of everything.
    replace(_plain, size=(1, 1), kernel=(1, 1)),
    replace(_plain, size=(1, 1), padding=(1, 1)),
    replace(_plain, size=(1, 1), padding="same", image="channels_last"),
    replace(_plain, size=(1, 1), transposed=True),
    replace(_plain, size=(1, 9), kernel=(1, 3)),
    replace(_plain, size=(9, 1), kernel=(3, 1)),
    replace(_plain, channels=1),
    replace(_plain, channels=1, image="channels_last", weight="OHWI"),
    replace(_plain, made=1),
    replace(_plain, channels=1, made=1, image="channels_last"),
    replace(_plain, batch=1, channels=1, made=1, size=(1, 1), kernel=(1, 1)),
    # Words for padding: the total may be odd, and then the sides differ.
    *(
        replace(_plain, padding=word, kernel=kernel, dilation=dilation, image=image)
        for word in ("same", "valid")
        for kernel, dilation in (((3, 3), (1, 1)), ((2, 4), (1, 1)), ((2, 3), (3, 2)))
        for image in ("contiguous", "channels_last")
    ),
    replace(_plain, padding="same", kernel=(4, 2), groups=4, made=8),
    replace(_plain, padding="same", kernel=(2, 2), bias=False, unbatched=True),
    # Depthwise, with one and more results per channel.
    *(
        replace(_plain, groups=4, made=4 * multiplier, image=image, weight=weight, padding=(1, 1))
        for multiplier in (1, 2, 3)
        for image in ("contiguous", "channels_last")
        for weight in ("OIHW", "HWIO")
    ),
    replace(_plain, groups=4, made=4, stride=(2, 2), kernel=(5, 5), padding=(2, 2)),
    replace(_plain, groups=4, made=8, dilation=(2, 2), padding=(2, 2), image="channels_last"),
    replace(_plain, channels=18, made=18, groups=18, image="channels_last", padding=(1, 1)),
    replace(_plain, groups=4, made=4, transposed=True, stride=(2, 2), output_padding=(1, 1)),
    replace(_plain, groups=2, made=4, transposed=True, stride=(2, 3), output_padding=(1, 2)),
    # Vectors are filled and overflow.
    replace(_plain, channels=17, made=19, image="channels_last", padding=(1, 1)),
    replace(_plain, channels=32, made=16, groups=4, image="channels_last", padding=(1, 1)),
    replace(_plain, channels=16, made=33, kernel=(1, 1), image="channels_last"),
    # Steps that leave pixels of the image unread, padding wider than the window.
    replace(_plain, stride=(3, 4), kernel=(2, 2)),
    replace(_plain, padding=(4, 5)),
    replace(_plain, kernel=(2, 2), padding=(3, 3), stride=(2, 2)),
    replace(_plain, kernel=(7, 7), padding=(3, 3), stride=(2, 2), channels=3),
    replace(_plain, unbatched=True),
    replace(_plain, unbatched=True, transposed=True, stride=(2, 2)),
    # More output padding than steps: PyTorch takes it where the dilation is larger.
    replace(_plain, transposed=True, dilation=(3, 3), output_padding=(2, 2)),
)
DRAWN = 130


def _drawn() -> tuple[Configuration, ...]:
    """Draw configurations that have a result; the list is the same in every process."""
    rng = random.Random(20)
    found: list[Configuration] = []
    while len(found) < DRAWN:
        groups = rng.choice((1, 1, 2, 3))
        transposed = rng.random() < 0.35
        stride, dilation = (_pair(rng, (1, 1, 2, 3)), _pair(rng, (1, 1, 1, 2, 3)))
        padding: Pair | str = _pair(rng, (0, 0, 1, 2, 3))
        if not transposed and rng.random() < 0.2:
            padding, stride = rng.choice(("same", "valid")), (1, 1)
        more = tuple(rng.randrange(step) for step in stride) if transposed else (0, 0)
        each = Configuration(
            batch=rng.choice((1, 2, 3)),
            channels=groups * rng.choice((1, 1, 2, 3)),
            size=_pair(rng, range(1, 9)),
            made=groups * rng.choice((1, 2, 3)),
            kernel=_pair(rng, range(1, 8)),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=rng.random() < 0.6,
            transposed=transposed,
            output_padding=(more[0], more[1]),
            image=rng.choice(IMAGES),
            weight=rng.choice(WEIGHTS),
            unbatched=rng.random() < 0.1,
        )
        if each.fits and each not in found:
            found.append(each)
    return tuple(found)


def _pair(rng: random.Random, values: tuple[int, ...] | range) -> Pair:
    return (rng.choice(values), rng.choice(values))


CONFIGURATIONS = (*EDGES, *_drawn())


def some(number: int, seed: int = 1) -> list[Configuration]:
    """Return some of the list, edges and drawn ones alike; the same each time."""
    return random.Random(seed).sample(CONFIGURATIONS, number)
