"""Train the network of digits.py in PyTorch, once as it is and once with its convolutions computed by convgrad.

What you learn: one line, `convgrad.torch.accelerate(model)`, is all that changes. The layers, the optimizer and the
loop are PyTorch's own.

    pip install torch
    pip install '.[cli,examples]'
    python examples/torch_digits.py

It takes seconds. Both networks start from the same numbers and see the same images, epoch by epoch in turns, so that
both have the same machine. The exit status is 1 if one of them recognises fewer than 97% of the test images.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import numpy as np
from digits import BATCH, REQUIRED, data, progress, shifted

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("torch_digits.py: PyTorch is not installed: pip install torch")

import convgrad.torch


def build() -> nn.Module:
    """A 3x3 stem and three depthwise-separable blocks, as in digits.py."""
    layers = normalized(nn.Conv2d(1, 16, 3, padding=1, bias=False))
    for inputs, outputs, stride in ((16, 32, 1), (32, 64, 2), (64, 64, 1)):
        layers += normalized(
            nn.Conv2d(inputs, inputs, 3, stride, padding=1, groups=inputs, bias=False)
        )
        layers += normalized(nn.Conv2d(inputs, outputs, 1, bias=False))
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return network.to(memory_format=torch.channels_last)


def normalized(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU()]


class Trainer:
    """A network with its optimizer, and what its epochs took."""

    def __init__(self, seed: int, rate: float, steps: int, accelerated: bool) -> None:
        torch.manual_seed(seed)
        self.network = build()
        if accelerated:
            print(convgrad.torch.accelerate(self.network), end="\n\n")
        self.optimizer = torch.optim.AdamW(self.network.parameters(), rate)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)
        self.seconds: list[float] = []
        self.losses: list[float] = []

    def epoch(self, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self.network.train()
        started, total = time.perf_counter(), 0.0
        for images, labels in batches:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.network(images), labels)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.item()
        self.seconds.append(time.perf_counter() - started)
        self.losses.append(total / len(batches))

    def accuracy(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        self.network.eval()
        with torch.inference_mode():
            return float((self.network(images).argmax(1) == labels).float().mean())


def as_images(array: np.ndarray) -> torch.Tensor:
    """Return images [n, h, w, c] as PyTorch writes them, [n, c, h, w], in the same memory: that is channels_last."""
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def train(epochs: int, rate: float, seed: int) -> dict[str, Trainer]:
    """Train both networks in turns, and print loss and seconds of each epoch as they come."""
    random = np.random.default_rng(seed)
    x, y, _, _ = data(random)
    count = len(y) // BATCH
    steps = epochs * count
    trainers = {
        "PyTorch": Trainer(seed, rate, steps, accelerated=False),
        "convgrad": Trainer(seed, rate, steps, accelerated=True),
    }
    print("epoch   PyTorch: loss  seconds   convgrad: loss  seconds")
    with progress(epochs) as advance:
        for epoch in range(epochs):
            order = random.permutation(len(y))
            batches = [
                (as_images(shifted(x[chosen], random)), torch.from_numpy(y[chosen]))
                for chosen in np.split(order[: count * BATCH], count)
            ]
            for trainer in trainers.values():
                trainer.epoch(batches)
            (a, b), (c, d) = (
                (trainer.losses[-1], trainer.seconds[-1]) for trainer in trainers.values()
            )
            print(f"{epoch + 1:5d}  {a:14.3f}  {b:7.3f}  {c:15.3f}  {d:7.3f}")
            advance()
    return trainers


def main() -> int:
    """Train both and say whether they learnt, and how long an epoch took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=0.01, help="of AdamW; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error("--epochs must be at least 1")
    trainers = train(arguments.epochs, arguments.rate, arguments.seed)
    _, _, x, y = data(np.random.default_rng(arguments.seed))  # the same split
    found = {
        name: each.accuracy(as_images(x), torch.from_numpy(y)) for name, each in trainers.items()
    }
    print()
    for name, trainer in trainers.items():
        # The first epoch compiles kernels, here and there.
        seconds = median(trainer.seconds[1:] or trainer.seconds)
        print(f"{name:9s} {found[name]:.2%} of the test images, {seconds:.3f} s per epoch")
    learnt = min(found.values()) >= REQUIRED
    print("verdict:", "ok" if learnt else f"NOT LEARNT, {REQUIRED:.0%} are required")
    return 0 if learnt else 1


if __name__ == "__main__":
    sys.exit(main())
