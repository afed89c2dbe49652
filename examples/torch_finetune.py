"""Fine-tune a MobileNetV2 on drawn shapes in PyTorch, with its convolutions computed by convgrad.

What you learn: `convgrad.torch.accelerate(model, memory=True)` fits a model whose early layers are frozen, and a head
that is exchanged afterwards. What the line changes in a model: docs/pytorch.md.

    pip install torch
    pip install '.[cli]'
    python examples/torch_finetune.py              # --native: PyTorch's own kernels, to compare

The images are made here: four shapes to learn from the beginning, then four others for which only the later layers
and a new head are trained. `--weights FILE` begins with a checkpoint instead: parameters have the names and shapes of
torchvision's mobilenet_v2. The exit status is 1 if fewer than 90% of the new test images are recognised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from digits import progress
from numpy.typing import NDArray

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("torch_finetune.py: PyTorch is not installed: pip install torch")

import convgrad.torch

Plane = NDArray[np.float64]
REQUIRED = 0.9  # of the test images
BATCH = 16
RATE = 5e-3  # of AdamW, at its highest
FROZEN = 7  # of the 19 parts of the features: all that sees images of 1/4 and 1/8 of the size

FIRST: dict[str, Callable[[Plane, Plane], Plane]] = {
    "disc": lambda x, y: np.hypot(x, y) < 1,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 0.9,
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) < 0.25) & (np.maximum(abs(x), abs(y)) < 1),
    "stripes": lambda x, y: (np.sin(9 * y) > 0) & (np.maximum(abs(x), abs(y)) < 1),
}
NEW: dict[str, Callable[[Plane, Plane], Plane]] = {
    "ring": lambda x, y: abs(np.hypot(x, y) - 0.75) < 0.25,
    "frame": lambda x, y: abs(np.maximum(abs(x), abs(y)) - 0.75) < 0.2,
    "triangle": lambda x, y: (y > -0.8) & (abs(x) < (0.9 - y) / 1.7),
    "checks": lambda x, y: (np.sin(6 * x) * np.sin(6 * y) > 0) & (np.maximum(abs(x), abs(y)) < 1),
}
"""Whether a point belongs to a shape; the shape fills -1 to 1 in both directions."""


def drawn(
    shapes: Sequence[Callable[[Plane, Plane], Plane]],
    count: int,
    size: int,
    random: np.random.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw shapes in random places, sizes, angles and colours, with noise; return images [n, 3, h, w] and labels."""
    labels = np.arange(count) % len(shapes)
    images = np.empty((count, size, size, 3), np.float32)
    grid = np.linspace(-1, 1, size)
    for image, label in zip(images, labels, strict=True):
        scale, angle = random.uniform(0.5, 0.7), random.uniform(-0.15, 0.15)
        centre = random.uniform(-0.2, 0.2, 2)
        x, y = np.meshgrid(grid - centre[0], grid - centre[1])
        x, y = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        inside = shapes[label](x / scale, y / scale)[..., None]
        back, front = random.uniform(-1, -0.3, 3), random.uniform(0.3, 1, 3)
        image[:] = np.where(inside, front, back) + random.normal(0, 0.05, image.shape)
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels)


def normalized(inputs: int, outputs: int, window: int, stride: int = 1, groups: int = 1) -> nn.Module:  # fmt: skip
    convolution = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """Expand, convolve channel by channel, project; add the input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        layers = [normalized(inputs, wide, 1)] if expansion > 1 else []
        layers += [normalized(wide, wide, 3, stride, wide)]
        layers += [nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.conv = nn.Sequential(*layers)
        self.adds_input = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.adds_input else self.conv(x)


class MobileNetV2(nn.Module):
    """Table 2 of Sandler et al. 2018."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        layers, inputs = [normalized(3, 32, 3, 2)], 32
        for expansion, outputs, repeats, stride in (
            *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
            *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
        ):
            for number in range(repeats):
                layers.append(InvertedResidual(inputs, outputs, 1 if number else stride, expansion))
                inputs = outputs
        self.features = nn.Sequential(*layers, normalized(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images).mean((2, 3)))


def train(
    model: MobileNetV2,
    frozen: int,
    images: torch.Tensor,
    labels: torch.Tensor,
    epochs: int,
    rate: float,
) -> list[float]:
    """Train all but the first `frozen` parts of the features; return the seconds of each epoch, and print them."""
    for part in model.features[:frozen]:
        part.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, rate)
    count = len(labels) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * count)
    seconds = []
    with progress(epochs * count) as advance:
        for epoch in range(epochs):
            model.train()
            for part in model.features[:frozen]:
                part.eval()  # its averages stay, too
            started, total = time.perf_counter(), 0.0
            for chosen in torch.randperm(len(labels))[: count * BATCH].split(BATCH):
                optimizer.zero_grad()
                batch = images[chosen].contiguous(memory_format=torch.channels_last)
                loss = nn.functional.cross_entropy(model(batch), labels[chosen])
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.item()
                advance()
            seconds.append(time.perf_counter() - started)
            print(f"{epoch + 1:5d}  {total / count:7.3f}  {seconds[-1]:8.2f}")
    return seconds


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    with torch.inference_mode():
        right = [
            model(x).argmax(1) == y
            for x, y in zip(images.split(BATCH), labels.split(BATCH), strict=True)
        ]
    return float(torch.cat(right).float().mean())


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=5, help="of each part (5)")
    parser.add_argument("--images", type=int, default=480, help="to learn from, in each part (480)")
    parser.add_argument("--size", type=int, default=64, help="rows and columns of an image (64)")
    parser.add_argument("--seed", type=int, default=0, help="of images and weights (0)")
    parser.add_argument("--weights", type=Path, metavar="FILE",
                        help="a checkpoint to begin with, instead of the first part")  # fmt: skip
    parser.add_argument("--native", action="store_true", help="with PyTorch's own kernels")
    parser.add_argument("--no-memory", action="store_true",
                        help="leave the C library's memory settings alone")  # fmt: skip
    given = parser.parse_args()
    if given.epochs < 1 or given.images < BATCH or given.size < 16:
        parser.error(f"there must be an epoch, {BATCH} images, and 16 rows in an image")
    return given


def main() -> int:
    """Train in two parts, and say what an epoch took and what was learnt."""
    given = options()
    torch.manual_seed(given.seed)
    random = np.random.default_rng(given.seed)
    checkpoint = None if given.weights is None else torch.load(given.weights, weights_only=True)
    classes = len(FIRST) if checkpoint is None else len(checkpoint["classifier.1.bias"])
    model = MobileNetV2(classes).to(memory_format=torch.channels_last)

    if not given.native:
        report = convgrad.torch.accelerate(model, memory=not given.no_memory)
        print(f"{len(report.taken)} layers are computed by convgrad. Memory: {report.memory}.\n")
    elif not given.no_memory:  # it helps PyTorch as well, and the convolutions are to be compared
        print(f"All layers are computed by PyTorch. Memory: {convgrad.torch.tune_memory()}.\n")

    if checkpoint is not None:
        model.load_state_dict(checkpoint)
    else:
        print(f"Learning {', '.join(FIRST)}\nepoch     loss   seconds")
        images, labels = drawn(list(FIRST.values()), given.images, given.size, random)
        train(model, 0, images, labels, given.epochs, RATE)
    model.classifier[1] = nn.Linear(1280, len(NEW))

    print(
        f"\nLearning {', '.join(NEW)}; the first {FROZEN} parts are frozen\nepoch     loss   seconds"
    )
    images, labels = drawn(list(NEW.values()), given.images, given.size, random)
    seconds = train(model, FROZEN, images, labels, given.epochs, RATE)
    found = accuracy(model, *drawn(list(NEW.values()), 160, given.size, random))
    whose = "PyTorch" if given.native else "convgrad"
    # The first epoch makes and loads kernels.
    print(
        f"\n{whose}: {min(seconds[1:] or seconds):.2f} s per epoch, {found:.1%} of the test images"
    )
    learnt = found >= REQUIRED
    print("verdict:", "ok" if learnt else f"NOT LEARNT, {REQUIRED:.0%} are required")
    return 0 if learnt else 1


if __name__ == "__main__":
    sys.exit(main())
