"""What a call costs beside its arithmetic: tiny convolutions by JAX itself and by us, in turns.

``python tools/jax_calls.py [--repeats N] [--json]`` prints microseconds, the best of many repeats:

- a jitted call, with JAX's dispatch around it;
- a jitted call of 50 convolutions, each of the result of the one before, per convolution;
- a call without jit: JAX's eager function, `convgrad.jax.conv_general_dilated`, and `convgrad.conv2d` on arrays of JAX.

Both sides wait for each result. What differs between the sides is the arithmetic too: theirs and ours.
"""

from __future__ import annotations

import argparse
import json
import os
import timeit
from collections.abc import Callable
from typing import Any

CHAIN = 50
LAYERS = {
    "1x1, 4 to 4": {"kernel": 1, "groups": 1},
    "3x3, 4 to 4": {"kernel": 3, "groups": 1},
    "depthwise 3x3": {"kernel": 3, "groups": 4},
}
CALLS = ("jitted", f"{CHAIN} in one jit, each", "without jit")
_NUMBER = 100


def contestants(kernel: int, groups: int) -> dict[str, list[Callable[[], Any]]]:
    """Return what is timed: JAX's and ours, in the order of `CALLS`; `conv2d` has only the last."""
    import jax
    import jax.numpy as jnp

    import convgrad.jax

    image = jnp.ones((1, 4, 4, 4), jnp.float32)
    weight = jnp.ones((kernel, kernel, 4 // groups, 4), jnp.float32) / (
        kernel * kernel * 4 // groups
    )
    names = ("NHWC", "HWIO", "NHWC")

    def calls(convolve: Any) -> list[Callable[[], Any]]:
        def one(image: Any, weight: Any) -> Any:
            return convolve(
                *(image, weight, (1, 1), "SAME"),
                dimension_numbers=names,
                feature_group_count=groups,
            )

        def many(image: Any, weight: Any) -> Any:
            for _ in range(CHAIN):
                image = one(image, weight)
            return image

        jitted, chained = jax.jit(one), jax.jit(many)
        return [
            lambda: jitted(image, weight).block_until_ready(),
            lambda: chained(image, weight).block_until_ready(),
            lambda: one(image, weight).block_until_ready(),
        ]

    function = convgrad.depthwise_conv2d if groups > 1 else convgrad.conv2d
    given = weight.reshape(kernel, kernel, 4, 1) if groups > 1 else weight
    return {
        "jax": calls(jax.lax.conv_general_dilated),
        "ours": calls(convgrad.jax.conv_general_dilated),
        "convgrad": [lambda: function(image, given, 1, "SAME").block_until_ready()],
    }


def measure(repeats: int) -> list[dict[str, Any]]:
    """Return a row per layer: microseconds per call of each contestant."""
    rows = []
    for name, arguments in LAYERS.items():
        sides = contestants(**arguments)
        best = {side: [float("inf")] * len(calls) for side, calls in sides.items()}
        for calls in sides.values():
            for call in calls:
                call()
        for _ in range(repeats):
            for at in range(len(CALLS)):  # in turns, so that both sides see the same machine
                for side, calls in sides.items():
                    if len(calls) == len(CALLS) or at == len(CALLS) - 1:
                        call = calls[at if len(calls) == len(CALLS) else 0]
                        number = _NUMBER // 5 if at == 1 else _NUMBER
                        spent = timeit.timeit(call, number=number) / number * 1e6
                        best[side][at if len(calls) == len(CALLS) else 0] = min(
                            best[side][at if len(calls) == len(CALLS) else 0], spent
                        )
        for side in ("jax", "ours"):
            best[side][1] /= CHAIN
        rows.append({"layer": name, **best})
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=30, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"N is at least 1, got {options.repeats}")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    rows = measure(options.repeats)
    if options.json:
        print(json.dumps({"calls": CALLS, "rows": rows}))
        return
    print(
        f"{'us, jax / ours':20}"
        + "".join(f"{call:>24}" for call in CALLS)
        + f"{'convgrad.conv2d':>20}"
    )
    for row in rows:
        pairs = zip(row["jax"], row["ours"], strict=True)
        shown = "".join(f"{f'{a:.2f} / {b:.2f}':>24}" for a, b in pairs)
        print(f"{row['layer']:20}{shown}{row['convgrad'][0]:>20.2f}")


if __name__ == "__main__":
    main()
