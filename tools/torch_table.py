"""What of PyTorch works with our convolutions: each check over the whole list of configurations, as a table.

Usage: python tools/torch_table.py [--every N] [CHECK ...]

The tests of `tests/pytorch` sample where the whole list takes too long; this goes through all of it (`--every 10` a
tenth) and says how many pass, and which do not. The first reason of each kind of failure is shown below the table.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def checks() -> dict[str, Callable[[Any], None]]:
    """Return the checks by name; each raises where a configuration does not pass."""
    import torch
    from torch.autograd import gradcheck, gradgradcheck
    from torch.func import grad, jacrev, jvp, vmap
    from torch.fx.experimental.proxy_tensor import make_fx

    import convgrad.torch
    from pytorch import running
    from pytorch.running import everything, function, gradient_for, native, operands

    def close(mine: Any, theirs: Any) -> None:
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)

    def values(dtype: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            tensors = operands(each, dtype)
            running.assert_right(each, everything(function(each), tensors), tensors)

        return check

    def plain(each: Any) -> tuple[Any, ...]:
        return tuple(tensor.detach() for tensor in operands(each, torch.float64))

    def threads(each: Any) -> None:
        tensors = operands(each, torch.float32)
        before = torch.get_num_threads()
        seen = set()
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            seen.add(running.bits(everything(function(each), tensors)))
        torch.set_num_threads(before)
        assert len(seen) == 1, "bits depend on the number of threads"

    def first(each: Any) -> None:
        tensors = operands(each, torch.float64)
        how = {"nondet_tol": 0, "fast_mode": True}
        assert gradcheck(function(each), tensors, check_forward_ad=True, **how)

    def second(each: Any) -> None:
        tensors = operands(each, torch.float64)
        assert gradgradcheck(function(each), tensors, nondet_tol=0, fast_mode=True)

    def batched(each: Any) -> None:
        tensors = plain(each)
        images = torch.stack([tensors[0], tensors[0] * 2])
        dims = (0, *[None] * (len(tensors) - 1))
        mine, theirs = (vmap(call(each), dims)(images, *tensors[1:]) for call in (function, native))
        close(mine, theirs)

    def per_sample(each: Any) -> None:
        image, *rest = plain(each)

        def of(call: Any) -> Any:
            loss = lambda weights, sample: call(each)(sample, *weights).sin().sum()  # noqa: E731
            return vmap(grad(loss), (None, 0))(tuple(rest), torch.stack([image, image * 2]))

        close(of(function), of(native))

    def forward_mode(each: Any) -> None:
        tensors = plain(each)
        close(jvp(function(each), tensors, tensors), jvp(native(each), tensors, tensors))

    def jacobian(each: Any) -> None:
        tensors = plain(each)
        close(jacrev(function(each))(*tensors), jacrev(native(each))(*tensors))

    def traced(each: Any) -> None:
        tensors = operands(each, torch.float64)
        arriving = gradient_for(function(each)(*tensors))

        def both(*given: Any) -> Any:
            result = function(each)(*given)
            return [result, *torch.autograd.grad(result, given, arriving)]

        others = operands(each, torch.float64, seed=1)
        running.assert_right(each, make_fx(both)(*tensors)(*others), others)

    def compiled(each: Any) -> None:
        torch._dynamo.reset()
        tensors = operands(each, torch.float64)
        call = torch.compile(function(each), fullgraph=True, backend="aot_eager")
        running.assert_right(each, everything(call, tensors), tensors)

    def exported(each: Any) -> None:
        class Layer(torch.nn.Module):
            def forward(self, *given: Any) -> Any:
                return function(each)(*given)

        tensors = plain(each)
        close(torch.export.export(Layer(), tensors).module()(*tensors), function(each)(*tensors))

    def scripted(each: Any) -> None:
        tensors, others = (operands(each, torch.float64, seed) for seed in (0, 1))
        with torch.no_grad():
            trace = torch.jit.trace(function(each), tuple(tensors))
        running.assert_right(each, everything(trace, others), others)

    def layer(order: Any) -> Callable[[Any], None]:
        def check(each: Any) -> None:
            mine, theirs, image = running.layers(each, order)
            images = torch.stack([image, image * 2])
            close(vmap(mine)(images), vmap(theirs)(images))
            close(running.per_example(mine, images), running.per_example(theirs, images))
            found, wanted = (
                everything(
                    lambda *given, layer=layer: layer(given[0]),
                    [image.requires_grad_(), *layer.parameters()],
                )
                for layer in (mine, theirs)
            )
            close(found, wanted)

        return check

    def patched(each: Any) -> None:
        tensors = operands(each, torch.float32)
        with convgrad.torch.patch():
            running.assert_right(each, everything(native(each), tensors), tensors)

    return {
        **{
            f"values and gradients, {str(dtype).removeprefix('torch.')}": values(dtype)
            for dtype in running.DTYPES
        },
        "same bits on 1, 2 and 3 threads": threads,
        "gradcheck, backward and forward mode": first,
        "gradgradcheck": second,
        "torch.func.vmap": batched,
        "torch.func gradients per sample": per_sample,
        "torch.func.jvp": forward_mode,
        "torch.func.jacrev": jacobian,
        "make_fx, forward and backward": traced,
        "torch.compile, fullgraph": compiled,
        "torch.export": exported,
        "torch.jit.trace": scripted,
        "layers, contiguous": layer(torch.contiguous_format),
        "layers, channels_last": layer(torch.channels_last),
        "convgrad.torch.patch": patched,
    }


def table(names: list[str], every: int) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Return how many configurations pass each check, of how many, and what was said of those that do not."""
    from pytorch.configurations import CONFIGURATIONS

    known = checks()
    rows, reasons = [], []
    for name in names or known:
        chosen = CONFIGURATIONS[::every]
        passed = 0
        for each in chosen:
            try:
                known[name](each)
                passed += 1
            except Exception as error:
                reason = str(error).strip().partition("\n")[0]
                reasons.append(f"{name}: {each}: {type(error).__name__}: {reason}")
        rows.append((name, passed, len(chosen)))
    return rows, reasons


def main(arguments: list[str] | None = None) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="names of checks; all if none")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth configuration")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.checks if name not in checks()]
    if unknown or given.every < 1:
        parser.error(
            f"checks are {', '.join(checks())}; N is at least 1; got {unknown or given.every}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, reasons = table(given.checks, given.every)
    print("| check | passes | of |\n|---|---|---|")
    for name, passed, of in rows:
        print(f"| {name} | {passed} | {of} |")
    for reason in reasons:
        print(reason)


if __name__ == "__main__":
    main()
