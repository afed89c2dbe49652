"""What of JAX works with our convolutions: each transformation over the whole list of configurations, as a table.

Usage: python tools/jax_table.py [--every N] [CHECK ...]

The tests of `tests/jax_bridge` sample where the whole list takes too long; this goes through all of it (`--every 10` a
tenth) and says how many pass, and which do not. The first line of each reason is shown below the table.

Values and gradients are compared with those of JAX's own convolution, in float64. All other rows are compared with
what those values say: a convolution is linear in both operands, so every derivative of it is made of convolutions.
(JAX's own would take five times as long to compile as ours, for every row again.)
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SPARSE = {"check_grads, both modes, order 2": 4}
"""Checks that try every nth configuration only: this one takes a second each, more than a third of all together."""


def checks() -> dict[str, Callable[[Any], None]]:
    """Return the checks by name; each raises where a configuration does not pass."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export, lax
    from jax.sharding import Mesh, PartitionSpec
    from jax.test_util import check_grads

    import convgrad
    import convgrad.jax
    from jax_bridge import running
    from jax_bridge.running import arriving, everything, function, native, operands, same_numbers

    @lru_cache(maxsize=2)
    def jitted(each: Any) -> Any:
        return jax.jit(function(each))

    def call(each: Any, *given: Any) -> Any:
        """Return the result as an array of NumPy: what is made of it outside of `jit` need not be compiled."""
        return np.asarray(jitted(each)(*given))

    def pulled(each: Any, *given: Any) -> list[Any]:
        """Return what arrives at image and filter."""
        return [np.asarray(array) for array in running.our_everything(each)(*given)[1:]]

    def values(dtype: str) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            arrays, moved = operands(each, dtype), arriving(each, dtype)
            running.assert_right(each, running.by_us(each, arrays, moved), arrays, moved)

        return check

    def whole(each: Any) -> None:
        arrays, moved = operands(each, "float32", whole=True), arriving(each, "float32")
        made, exact = running.by_us(each, arrays, moved), running.by_jax(each, arrays, moved)
        assert all(np.array_equal(*pair) for pair in zip(made, exact, strict=True)), "not exact"

    def same_bits(wrap: Callable[[Any, list[Any]], Any]) -> Callable[[Any], None]:
        """Return a check that compares bits of what `wrap` makes of all arrays with those of the jitted call."""

        def check(each: Any) -> None:
            arrays, moved = operands(each, "float32"), arriving(each, "float32")
            made = wrap(each, [*arrays, moved])
            assert running.bits(made) == running.bits(running.by_us(each, arrays, moved)), (
                "other bits"
            )

        return check

    def threads(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        before, seen = convgrad.get_num_threads(), set()
        for number in (1, 2, 3):
            convgrad.set_num_threads(number)
            seen.add(running.bits(running.by_us(each, arrays, moved)))
        convgrad.set_num_threads(before)
        assert len(seen) == 1, "bits depend on the number of threads"

    def differences(each: Any) -> None:
        # In two directions: finite differences of every number would take minutes each.
        image, weight = operands(each)
        step, turn = operands(each, seed=1)
        moved = arriving(each, "float64")
        line = lambda a, b: jnp.vdot(moved, function(each)(image + a * step, weight + b * turn))  # noqa: E731
        check_grads(jax.jit(line), (0.5, -0.25), order=2, modes=("fwd", "rev"))

    def forward_mode(how: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            (image, weight), (step, turn) = operands(each), operands(each, seed=1)
            made = jax.jit(lambda *all: how(function(each), all[:2], all[2:]))(
                image, weight, step, turn
            )
            same_numbers(made, call(each, step, weight) + call(each, image, turn))

        return check

    def second(each: Any) -> None:
        (image, weight), (step, turn) = operands(each), operands(each, seed=1)
        first = jax.grad(lambda *given: jnp.sum(jnp.sin(function(each)(*given))), (0, 1))
        made = jax.jit(lambda *all: jax.jvp(first, all[:2], all[2:]))(image, weight, step, turn)
        result = call(each, image, weight)
        slope = call(each, step, weight) + call(each, image, turn)
        curved = pulled(each, image, weight, -np.sin(result) * slope)
        bent = pulled(each, step, turn, np.cos(result))
        moved = tuple(one + other for one, other in zip(curved, bent, strict=True))
        same_numbers(made, (tuple(pulled(each, image, weight, np.cos(result))), moved))

    # Functions of five numbers, by which the operands are multiplied: y = (a + b)(c + d + e) x * f.
    factors = np.linspace(0.5, 1.5, 5)
    parts = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])
    bending = np.asarray(jax.hessian(lambda scale: jnp.prod(parts @ scale) ** 3)(factors))

    def scaled(each: Any) -> Any:
        image, weight = operands(each)
        return lambda scale: function(each)(image * scale[:2].sum(), weight * scale[2:].sum())

    def jacobian(how: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            # Of four numbers made of the result: `jacrev` computes all that may arrive at once.
            result = call(each, *operands(each))
            mixed = np.random.default_rng(0).integers(-2, 3, (4, result.size)).astype(float)
            made = jax.jit(how(lambda scale: mixed @ scaled(each)(scale).ravel()))(factors)
            slopes = (parts @ factors)[::-1] @ parts
            same_numbers(made, np.outer(mixed @ result.ravel(), slopes))

        return check

    def hessian(each: Any) -> None:
        loss = lambda scale: jnp.sum(scaled(each)(scale) ** 3)  # noqa: E731
        made = jax.jit(jax.hessian(loss))(factors)
        exact = np.sum(call(each, *operands(each)) ** 3) * bending
        np.testing.assert_allclose(made, exact, rtol=1e-8, atol=1e-8 * abs(exact).max())

    def batched(axes: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            pairs = list(zip(operands(each), operands(each, seed=1), strict=True))
            given = [
                pair[0] if axis is None else np.stack(pair, axis)
                for pair, axis in zip(pairs, axes, strict=True)
            ]
            made = jax.jit(jax.vmap(function(each), axes, out_axes=0))(*given)
            for at in (0, 1):
                chosen = (
                    pair[0 if axis is None else at] for pair, axis in zip(pairs, axes, strict=True)
                )
                same_numbers(made[at], call(each, *chosen))

        return check

    def nested(each: Any) -> None:
        images, weights = (
            np.stack(pair) for pair in zip(operands(each), operands(each, seed=1), strict=True)
        )
        made = jax.jit(jax.vmap(jax.vmap(function(each), (None, 0)), (0, None), 1))(images, weights)
        for image, weight in product((0, 1), (0, 1)):
            same_numbers(made[weight, image], call(each, images[image], weights[weight]))

    def per_example(each: Any) -> None:
        images = [operands(each, seed=seed)[0] for seed in (0, 1)]
        weight = operands(each)[1]
        loss = lambda weight, image: jnp.sum(jnp.sin(function(each)(image, weight)))  # noqa: E731
        made = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(weight, np.stack(images))
        for at, image in enumerate(images):
            same_numbers(
                made[at], pulled(each, image, weight, np.cos(call(each, image, weight)))[1]
            )

    def total(each: Any, images: list[Any], weight: Any) -> tuple[Any, Any]:
        """Return the sum of a loss over images, and its gradient by the filter."""
        results = [call(each, image, weight) for image in images]
        moves = [
            pulled(each, image, weight, np.cos(result))[1]
            for image, result in zip(images, results, strict=True)
        ]
        return sum(np.sum(np.sin(result)) for result in results), sum(moves)

    def scanned(each: Any) -> None:
        images = [operands(each, seed=seed)[0] for seed in (0, 1)]
        weight = operands(each)[1]

        def loss(weight: Any, images: Any) -> Any:
            body = lambda sum, image: (sum + jnp.sum(jnp.sin(function(each)(image, weight))), None)  # noqa: E731
            return lax.scan(body, jnp.zeros(()), images)[0]

        same_numbers(
            jax.jit(jax.value_and_grad(loss))(weight, np.stack(images)), total(each, images, weight)
        )

    mesh = Mesh(np.array(jax.devices()), ("examples",))
    split, everywhere = PartitionSpec("examples"), PartitionSpec()

    def sharded(each: Any) -> None:
        images = [operands(each, seed=seed)[0] for seed in range(len(jax.devices()))]
        weight = operands(each)[1]

        def step(images: Any, weight: Any) -> Any:
            loss = lambda weight: jnp.sum(jnp.sin(function(each)(images[0], weight)))  # noqa: E731
            own = lax.pcast(weight, "examples", to="varying")
            return lax.psum(jax.value_and_grad(loss)(own), "examples")

        spread = jax.shard_map(step, mesh=mesh, in_specs=(split, everywhere), out_specs=everywhere)
        same_numbers(jax.jit(spread)(np.stack(images), weight), total(each, images, weight))

    def mapped(each: Any) -> None:
        images = [operands(each, seed=seed)[0] for seed in range(len(jax.devices()))]
        weight = operands(each)[1]
        made = jax.pmap(function(each), in_axes=(0, None))(np.stack(images), weight)
        for at, image in enumerate(images):
            same_numbers(jnp.asarray(made[at]), call(each, image, weight))

    def exported(each: Any) -> None:
        arrays = operands(each)
        names = set(running.target_names(jitted(each), *arrays))
        allowed = [export.DisabledSafetyCheck.custom_call(name) for name in names]
        again = export.deserialize(
            export.export(jitted(each), disabled_checks=allowed)(*arrays).serialize()
        )
        assert convgrad.jax.register(again) == len(names), "not all of its programs were found"
        same_numbers(again.call(*arrays), call(each, *arrays))

    def accelerated(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        with convgrad.jax.accelerate():
            lowered = jax.jit(everything(native(each))).lower(*arrays, moved)
            made = [np.asarray(array) for array in lowered.compile()(*arrays, moved)]
        text = lowered.as_text()
        running.assert_right(each, made, arrays, moved)
        mine, theirs = text.count(f"@{running.TARGET}"), text.count("stablehlo.convolution")
        assert (mine, theirs) == ((3, 0) if each.ours else (0, 3)), (
            f"{mine} calls of ours, {theirs} of XLA's"
        )

    def ahead(each: Any, arrays: list[Any]) -> Any:
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        return jax.jit(everything(function(each))).lower(*shapes).compile()(*arrays)

    def donated(each: Any, arrays: list[Any]) -> Any:
        run = jax.jit(everything(function(each)), donate_argnums=(0, 1))
        return run(*map(jnp.array, arrays))

    return {
        **{f"jit and vjp, {dtype}": values(dtype) for dtype in running.DTYPES},
        "exact on whole numbers": whole,
        "same bits on 1, 2 and 3 threads": threads,
        "without jit": same_bits(
            lambda each, arrays: everything(function(each))(*map(jnp.asarray, arrays))
        ),
        "lower and compile": same_bits(ahead),
        "donated operands": same_bits(donated),
        "checkpoint": same_bits(
            lambda each, arrays: jax.jit(everything(jax.checkpoint(function(each))))(*arrays)
        ),
        "jvp": forward_mode(lambda run, arrays, moves: jax.jvp(run, arrays, moves)[1]),
        "linearize": forward_mode(
            lambda run, arrays, moves: jax.linearize(run, *arrays)[1](*moves)
        ),
        "jvp of grad": second,
        "check_grads, both modes, order 2": differences,
        "jacfwd": jacobian(jax.jacfwd),
        "jacrev": jacobian(jax.jacrev),
        "hessian": hessian,
        "vmap over images": batched((0, None)),
        "vmap over filters": batched((None, 0)),
        "vmap over both": batched((0, 0)),
        "vmap, other axes": batched((2, 4)),
        "vmap of vmap": nested,
        "vmap of grad": per_example,
        "scan and its gradient": scanned,
        "shard_map and its gradient": sharded,
        "pmap": mapped,
        "export and register": exported,
        "accelerate": accelerated,
    }


def table(names: list[str], every: int) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Return how many configurations pass each check, of how many, and what was said of those that do not."""
    import jax

    from jax_bridge.configurations import CONFIGURATIONS

    known = {name: check for name, check in checks().items() if not names or name in names}
    chosen = CONFIGURATIONS[::every]
    passed, tried = dict.fromkeys(known, 0), dict.fromkeys(known, 0)
    reasons = []
    for at, each in enumerate(chosen):
        for name, check in known.items():
            if at % SPARSE.get(name, 1):
                continue
            tried[name] += 1
            try:
                check(each)
                passed[name] += 1
            except Exception as error:
                reason = str(error).strip().partition("\n")[0]
                reasons.append(f"{name}: {each}: {type(error).__name__}: {reason}")
        if at % 20 == 19:
            jax.clear_caches()  # thousands of compiled functions would take gigabytes
            print(f"{at + 1} of {len(chosen)} configurations", file=sys.stderr, flush=True)
    return [(name, passed[name], tried[name]) for name in known], reasons


def main(arguments: list[str] | None = None) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="names of checks; all if none")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth configuration")
    given = parser.parse_args(arguments)
    # Two devices for what is spread over devices; quick compilation of what is compared with.
    flags = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    unknown = [name for name in given.checks if name not in checks()]
    if unknown or given.every < 1:
        parser.error(
            f"checks are {', '.join(checks())}; N is at least 1; got {unknown or given.every}"
        )
    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")
        rows, reasons = table(given.checks, given.every)
    print("| check | passes | of |\n|---|---|---|")
    for name, passed, of in rows:
        print(f"| {name} | {passed} | {of} |")
    for reason in reasons:
        print(reason)


if __name__ == "__main__":
    main()
