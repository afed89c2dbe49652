"""What of JAX works with our convolutions: each transformation over the whole list of configurations, as a table.

Usage: python tools/jax_table.py [--every N] [CHECK ...]

The tests of `tests/jax_bridge` sample where the whole list takes too long; this goes through all of it (`--every 10` a
tenth) and says how many pass, and which do not. The first line of each reason is shown below the table.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


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

    def both(each: Any, of: Callable[[Any], Any]) -> None:
        """Compare what is made of our call with what is made of JAX's."""
        same_numbers(of(function(each)), of(native(each)))

    def values(dtype: str) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            arrays, moved = operands(each, dtype), arriving(each, dtype)
            running.assert_right(each, running.by_us(each, arrays, moved), arrays, moved)

        return check

    def whole(each: Any) -> None:
        arrays, moved = operands(each, "float32", whole=True), arriving(each, "float32")
        made, exact = running.by_us(each, arrays, moved), running.by_jax(each, arrays, moved)
        assert all(np.array_equal(*pair) for pair in zip(made, exact, strict=True)), "not exact"

    def eager(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        made = everything(function(each))(*map(jnp.asarray, (*arrays, moved)))
        assert running.bits(made) == running.bits(running.by_us(each, arrays, moved)), "other bits"

    def threads(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        before, seen = convgrad.get_num_threads(), set()
        for number in (1, 2, 3):
            convgrad.set_num_threads(number)
            seen.add(running.bits(running.by_us(each, arrays, moved)))
        convgrad.set_num_threads(before)
        assert len(seen) == 1, "bits depend on the number of threads"

    def differences(each: Any) -> None:
        # Along a direction, as `order` needs a call per direction: the whole operands at once would take minutes.
        image, weight = operands(each)
        step, turn = operands(each, seed=1)
        line = lambda a, b: function(each)(image + a * step, weight + b * turn)  # noqa: E731
        check_grads(jax.jit(line), (0.5, -0.25), order=2, modes=("fwd", "rev"))

    def forward_mode(each: Any) -> None:
        arrays, moves = operands(each), operands(each, seed=1)
        both(
            each,
            lambda call: jax.jit(lambda *all: jax.jvp(call, all[:2], all[2:]))(*arrays, *moves),
        )

    def linearized(each: Any) -> None:
        arrays, moves = operands(each), operands(each, seed=1)
        both(
            each,
            lambda call: jax.jit(lambda *all: jax.linearize(call, *all[:2])[1](*all[2:]))(
                *arrays, *moves
            ),
        )

    def hessian_product(each: Any) -> None:
        arrays, moves = operands(each), operands(each, seed=1)

        def of(call: Any) -> Any:
            first = jax.grad(lambda *given: jnp.sum(jnp.sin(call(*given))), (0, 1))
            return jax.jit(lambda *all: jax.jvp(first, all[:2], all[2:]))(*arrays, *moves)

        both(each, of)

    def jacobian(how: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            image, weight = operands(each)
            # By what every filter of a column of taps is multiplied: few numbers, so that the whole matrix is small.
            factors = np.linspace(0.5, 1.5, 5)

            def of(call: Any) -> Any:
                scaled = lambda scale: call(image * jnp.sum(scale[:2]), weight * scale[2:].sum())  # noqa: E731
                loss = lambda scale: jnp.sum(scaled(scale) ** 3)  # noqa: E731
                return jax.jit(how(loss if how is jax.hessian else scaled))(factors)

            both(each, of)

        return check

    def batched(axes: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            given = [
                array if axis is None else np.stack([array, array * 2 - 1], axis)
                for array, axis in zip(operands(each), axes, strict=True)
            ]
            both(each, lambda call: jax.jit(jax.vmap(call, axes))(*given))

        return check

    def nested(each: Any) -> None:
        image, weight = operands(each)
        images, weights = np.stack([image, -image]), np.stack([weight, weight + 1])
        both(
            each,
            lambda call: jax.jit(jax.vmap(jax.vmap(call, (None, 0)), (0, None), 1))(
                images, weights
            ),
        )

    def per_example(each: Any) -> None:
        image, weight = operands(each)

        def of(call: Any) -> Any:
            loss = lambda weight, image: jnp.sum(jnp.sin(call(image, weight)))  # noqa: E731
            gradients = jax.vmap(jax.grad(loss), (None, 0))
            return jax.jit(gradients)(weight, np.stack([image, image * 2]))

        both(each, of)

    def donated(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        call = jax.jit(everything(function(each)), donate_argnums=(0, 1))
        made = call(*map(jnp.array, arrays), moved)
        assert running.bits(made) == running.bits(running.by_us(each, arrays, moved)), "other bits"

    def checkpoint(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        made = jax.jit(everything(jax.checkpoint(function(each))))(*arrays, moved)
        assert running.bits(made) == running.bits(running.by_us(each, arrays, moved)), "other bits"

    def scanned(each: Any) -> None:
        image, weight = operands(each)

        def of(call: Any) -> Any:
            def loss(weight: Any) -> Any:
                body = lambda total, image: (total + jnp.sum(jnp.sin(call(image, weight))), None)  # noqa: E731
                return lax.scan(body, jnp.zeros(()), np.stack([image, -2 * image]))[0]

            return jax.jit(jax.value_and_grad(loss))(weight)

        both(each, of)

    def ahead(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in (*arrays, moved)]
        compiled = jax.jit(everything(function(each))).lower(*shapes).compile()
        made = compiled(*arrays, moved)
        assert running.bits(made) == running.bits(running.by_us(each, arrays, moved)), "other bits"

    def exported(each: Any) -> None:
        arrays = operands(each, "float32")
        call = jax.jit(function(each))
        names = set(running.target_names(call, *arrays))
        allowed = [export.DisabledSafetyCheck.custom_call(name) for name in names]
        blob = export.export(call, disabled_checks=allowed)(*arrays).serialize()
        again = export.deserialize(blob)
        convgrad.jax.register(again)
        assert running.bits([again.call(*arrays)]) == running.bits([call(*arrays)]), "other bits"

    mesh = Mesh(np.array(jax.devices()), ("examples",))

    def sharded(each: Any) -> None:
        image, weight = operands(each)
        images = np.stack([image * (at + 1) for at in range(len(jax.devices()))])
        split = PartitionSpec("examples")

        def of(call: Any) -> Any:
            def step(images: Any, weight: Any) -> Any:
                loss = lambda weight: jnp.sum(jnp.sin(call(images[0], weight)))  # noqa: E731
                value, moves = jax.value_and_grad(loss)(lax.pcast(weight, "examples", to="varying"))
                return lax.psum((value, moves), "examples")

            specs = {"in_specs": (split, PartitionSpec()), "out_specs": PartitionSpec()}
            return jax.jit(jax.shard_map(step, mesh=mesh, **specs))(images, weight)

        both(each, of)

    def mapped(each: Any) -> None:
        image, weight = operands(each)
        images = np.stack([image * (at + 1) for at in range(len(jax.devices()))])
        made = jax.pmap(function(each), in_axes=(0, None))(images, weight)
        same_numbers(jnp.asarray(made), jax.jit(jax.vmap(native(each), (0, None)))(images, weight))

    def accelerated(each: Any) -> None:
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        with convgrad.jax.accelerate():
            call = jax.jit(everything(native(each)))
            made = [np.asarray(array) for array in call(*arrays, moved)]
            mine, theirs = running.custom_calls(call, *arrays, moved)
        running.assert_right(each, made, arrays, moved)
        assert (mine, theirs) == ((3, 0) if each.ours else (0, 3)), (
            f"{mine} calls of ours, {theirs} of XLA's"
        )

    return {
        **{f"jit, vjp: values and gradients, {dtype}": values(dtype) for dtype in running.DTYPES},
        "whole numbers exact": whole,
        "same bits without jit": eager,
        "same bits on 1, 2 and 3 threads": threads,
        "check_grads, both modes, order 2": differences,
        "jvp": forward_mode,
        "linearize": linearized,
        "jvp of grad": hessian_product,
        "jacfwd": jacobian(jax.jacfwd),
        "jacrev": jacobian(jax.jacrev),
        "hessian": jacobian(jax.hessian),
        "vmap over images": batched((0, None)),
        "vmap over filters": batched((None, 0)),
        "vmap over both": batched((0, 0)),
        "vmap, other axes": batched((2, 4)),
        "vmap of vmap": nested,
        "gradients per example": per_example,
        "donated operands": donated,
        "checkpoint": checkpoint,
        "scan and its gradient": scanned,
        "lower().compile()": ahead,
        "export and register": exported,
        "shard_map and its gradient": sharded,
        "pmap": mapped,
        "accelerate": accelerated,
    }


def table(names: list[str], every: int) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Return how many configurations pass each check, of how many, and what was said of those that do not."""
    import jax

    from jax_bridge.configurations import CONFIGURATIONS

    known = checks()
    rows, reasons = [], []
    for name in names or known:
        chosen = CONFIGURATIONS[::every]
        passed = 0
        for at, each in enumerate(chosen):
            try:
                known[name](each)
                passed += 1
            except Exception as error:
                reason = str(error).strip().partition("\n")[0]
                reasons.append(f"{name}: {each}: {type(error).__name__}: {reason}")
            if at % 50 == 49:
                jax.clear_caches()  # thousands of compiled functions would take gigabytes
        rows.append((name, passed, len(chosen)))
        print(f"{name}: {passed} of {len(chosen)}", file=sys.stderr, flush=True)
    return rows, reasons


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
