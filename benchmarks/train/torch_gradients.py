"""Gradients of whole models against float64: PyTorch's own, accelerated, and with fused blocks.

Usage: python -m benchmarks.train.torch_gradients [MODEL ...] [--image N] [--batch N] [--seeds N] [--planted 1.001]
                                                  [--json FILE]

For each seed a model and a batch are made in float64, and one step's gradients of all parameters are computed there by
PyTorch, layer by layer. The same model in float32 is then run in three ways, and its error is the length of the
difference of all gradients over their length. Batch norm after batch norm makes some of these models badly conditioned:
one seed tells little, so the geometric mean over seeds is printed, and how often an error was at most native's.
`--planted` multiplies every gradient that leaves a fused batch norm, to see what an error of that size does.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import torch
from torch import nn

import convgrad.torch
from benchmarks.train import torch_models
from convgrad._base.text import aligned
from convgrad._bridges.torch import blocks, passes

MODELS = ("mobilenet_v2", "efficientnet_b0", "mobilenet_v3_large", "resnet50")
WAYS = ("native", "accelerate", "fused")


@dataclass(frozen=True)
class Row:
    """One model in one way."""

    model: str
    way: str
    error: float
    """Geometric mean over the seeds."""
    worst: float
    at_most_native: int
    """Seeds."""
    seeds: int


def gradients(model: nn.Module, image: Any, label: Any) -> list[Any]:
    """Return the gradients of a step, in float64."""
    model.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(image), label).backward()
    return [each.grad.double() for each in model.parameters() if each.grad is not None]


def error(found: list[Any], exact: list[Any]) -> float:
    """Return the length of the difference over the length of what is exact."""
    pairs = list(zip(found, exact, strict=True))
    off = sum(float((a - b).square().sum()) for a, b in pairs)
    return (off / sum(float(b.square().sum()) for _, b in pairs)) ** 0.5


def errors(name: str, image: int, batch: int, seed: int) -> dict[str, float]:
    """Return the error of each way."""
    torch.manual_seed(seed)
    last = torch.channels_last
    exact = getattr(torch_models, name)().double().to(memory_format=last).train()
    images = torch.randn(batch, 3, image, image, dtype=torch.float64).to(memory_format=last)
    labels = torch.randint(0, 1000, (batch,))
    single = copy.deepcopy(exact).float()
    right = gradients(exact, images, labels)
    found = {}
    for way in WAYS:
        model = copy.deepcopy(single)
        if way != "native":
            convgrad.torch.accelerate(model, fuse=way == "fused")
        found[way] = error(gradients(model, images.float(), labels), right)
    return found


def plant(factor: float) -> None:
    """Multiply every gradient that leaves a fused batch norm."""
    right = passes.Norm.backward

    def wrong(self: passes.Norm, *args: Any) -> Any:
        dx, *others = right(self, *args)
        return (None if dx is None else dx.mul_(factor), *others)

    passes.Norm.backward = wrong  # type: ignore[method-assign, assignment]
    # The compiled function would compute the whole block, and nobody could reach what is between.
    blocks._fused_backward = lambda *_: (None,) * 6


def rows(name: str, image: int, batch: int, seeds: int) -> list[Row]:
    """Return the rows of a model."""
    every = [errors(name, image, batch, seed) for seed in range(seeds)]
    made = []
    for way in WAYS:
        these = [each[way] for each in every]
        mean = exp(sum(map(log, these)) / seeds)
        good = sum(each[way] <= each["native"] for each in every)
        made.append(Row(name, way, mean, max(these), good, seeds))
    return made


def main(arguments: list[str] | None = None) -> int:
    """Compare, print, and write JSON if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--image", type=int, default=96)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--planted", type=float, default=1.0, help="a factor such as 1.001")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args(arguments)
    if unknown := [each for each in given.models if each not in MODELS]:
        parser.error(f"no model {unknown[0]!r}; there are {', '.join(MODELS)}")
    if given.planted != 1.0:
        plant(given.planted)
    found = [
        row for name in given.models for row in rows(name, given.image, given.batch, given.seeds)
    ]
    table = [["model", "way", "error", "worst", "at most native's"]]
    table += [
        [
            *(row.model, row.way, f"{row.error:.2e}", f"{row.worst:.2e}"),
            f"{row.at_most_native} of {row.seeds}",
        ]
        for row in found
    ]
    print(aligned(table, left=(0, 1)))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
