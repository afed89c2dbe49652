"""What a call costs beside its arithmetic: tiny layers through PyTorch's own kernels and through ours, in turns.

``python tools/torch_calls.py [--repeats N] [--json]`` prints microseconds, the best of many repeats on one thread:
a forward call without gradients, with gradients recorded, and forward and backward together. The backward pass of both
includes what `torch.autograd.grad` itself takes, some 35 us.
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


def measure(repeats: int) -> list[dict[str, Any]]:
    """Return a row per layer: microseconds of PyTorch and of ours for each kind of call."""
    import torch

    import convgrad.torch

    torch.set_num_threads(1)
    rows = []
    for name, arguments in LAYERS.items():
        images = torch.randn(1, 8, 6, 6).to(memory_format=torch.channels_last)
        theirs = torch.nn.Conv2d(**arguments).to(memory_format=torch.channels_last)
        ours = torch.nn.Conv2d(**arguments).to(memory_format=torch.channels_last)
        convgrad.torch.accelerate(ours)
        contestants = [*calls(theirs, images), *calls(ours, images)]
        for call in contestants:
            call()
        best = [float("inf")] * len(contestants)
        for _ in range(repeats):
            for at, call in enumerate(contestants):
                best[at] = min(best[at], timeit.timeit(call, number=_NUMBER) / _NUMBER * 1e6)
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
