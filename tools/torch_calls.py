"""What a call costs beside its arithmetic: tiny layers and blocks by PyTorch's own kernels and by ours, in turns.

``python tools/torch_calls.py [--repeats N] [--json]`` prints microseconds, the best of many repeats on one thread:
a forward call without gradients, with gradients recorded, and forward and backward together. The backward pass of both
includes what `torch.autograd.grad` itself takes, some 35 us. The last rows are for one of 16 blocks in a row, of
convolution, batch norm and ReLU6: layer by layer accelerated, and fused.
"""

from __future__ import annotations

import argparse
import json
import timeit
from typing import Any

LAYERS = {
    "1x1, 8 to 8": {"in_channels": 8, "out_channels": 8, "kernel_size": 1, "bias": False},
    "3x3, 8 to 8": {
        "in_channels": 8,
        "out_channels": 8,
        "kernel_size": 3,
        "padding": 1,
        "bias": False,
    },
    "3x3, 8 to 8, bias": {"in_channels": 8, "out_channels": 8, "kernel_size": 3, "padding": 1},
    "depthwise 3x3": {
        "in_channels": 8,
        "out_channels": 8,
        "kernel_size": 3,
        "padding": 1,
        "groups": 8,
        "bias": False,
    },
}
BLOCKS = 16
CALLS = ("forward", "forward, recorded", "forward and backward")
_NUMBER = 300


def calls(layer: Any, images: Any) -> list[Any]:
    """Return what is timed of a layer, in the order of `CALLS`."""
    import torch

    still = images.detach()
    given = images.detach().requires_grad_()
    grad = torch.ones_like(layer(still).detach())
    wanted = (given, *layer.parameters())

    def forward() -> None:
        with torch.no_grad():
            layer(still)

    def both() -> None:
        torch.autograd.grad(layer(given), wanted, grad)

    return [forward, lambda: layer(given), both]


def contestants() -> list[tuple[str, Any, Any, int]]:
    """Return what is compared: a name, PyTorch's module and ours, and how many times either does the same."""
    import torch
    from torch import nn

    import convgrad.torch

    made: list[tuple[str, Any, Any, int]] = []
    for name, arguments in LAYERS.items():
        theirs, ours = nn.Conv2d(**arguments), nn.Conv2d(**arguments)
        made.append((name, theirs, ours, 1))
    for name in ("a block, accelerated", "a block, fused"):
        pair = [
            nn.Sequential(
                *(
                    nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(True))
                    for _ in range(BLOCKS)
                )
            )
            for _ in range(2)
        ]
        made.append((name, *pair, BLOCKS))
    for name, theirs, ours, _ in made:
        theirs.to(memory_format=torch.channels_last)
        ours.to(memory_format=torch.channels_last)
        convgrad.torch.accelerate(ours, fuse=name == "a block, fused")
    return made


def measure(repeats: int) -> list[dict[str, Any]]:
    """Return a row per layer or block: microseconds of PyTorch and of ours for each kind of call."""
    import torch

    torch.set_num_threads(1)
    rows = []
    for name, theirs, ours, count in contestants():
        images = torch.randn(1, 8, 6, 6).to(memory_format=torch.channels_last)
        timed = [*calls(theirs, images), *calls(ours, images)]
        for call in timed:
            call()
        best = [float("inf")] * len(timed)
        number = _NUMBER // count
        for _ in range(repeats):
            for at, call in enumerate(timed):
                best[at] = min(best[at], timeit.timeit(call, number=number) / number / count * 1e6)
        half = len(CALLS)
        rows.append({"layer": name, "torch": best[:half], "ours": best[half:]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=30, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = measure(options.repeats)
    if options.json:
        print(json.dumps({"calls": CALLS, "rows": rows}))
        return
    print(f"{'us, torch / ours':20}" + "".join(f"{call:>24}" for call in CALLS))
    for row in rows:
        pairs = zip(row["torch"], row["ours"], strict=True)
        print(f"{row['layer']:20}" + "".join(f"{f'{a:.1f} / {b:.1f}':>24}" for a, b in pairs))


if __name__ == "__main__":
    main()
