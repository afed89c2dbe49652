"""`accelerate(fuse=True)`: blocks compute what their layers did, in training, evaluation and every mode of PyTorch."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from convgrad._bridges.torch import blocks, excitation, passes
from pytorch.fusing import BLOCKS, Residual, assert_same, images, network, nodes, pair, step

OURS = {"_BlockBackward", "NormalizeBackward", "_ForkBackward", "_ScaleBackward"}
NATIVE = {
    "NativeBatchNormBackward0",
    "MulBackward0",
    "SiluBackward0",
    "ReluBackward0",
    "AddBackward0",
}


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_training_and_evaluation(order: Any) -> None:
    plain, fused, report = pair(network().double().to(memory_format=order))
    assert report.fused == BLOCKS and report.unfused == {}
    x = images().contiguous(memory_format=order)
    for _ in range(3):  # statistics move
        assert_same(step(fused, x), step(plain, x))
    found = nodes(copy.deepcopy(fused)(x))
    assert found & OURS == OURS and not found & (NATIVE - {"SiluBackward0"})
    for model in (plain, fused):
        model.eval()
    assert_same(step(fused, x), step(plain, x))
    with torch.no_grad():
        torch.testing.assert_close(fused(x), plain(x), rtol=1e-9, atol=1e-9)
    with torch.inference_mode():
        torch.testing.assert_close(fused(x), plain(x), rtol=1e-9, atol=1e-9)


def test_only_some_in_training() -> None:
    plain, fused, _ = pair(network().double())
    for model in (plain, fused):
        for number, each in enumerate(model.modules()):
            if isinstance(each, nn.BatchNorm2d) and number % 2:
                each.eval()
    assert_same(step(fused, images()), step(plain, images()))


@pytest.mark.parametrize("how", ["momentum", "tracked", "affine", "frozen", "first", "bias only"])
def test_settings_of_layers(how: str) -> None:
    model = network().double()
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
    for norm in norms:
        if how == "momentum":
            norm.momentum = None
        elif how == "tracked":
            fresh = nn.BatchNorm2d(norm.num_features, track_running_stats=False).double()
            norm.__dict__.update(fresh.__dict__)
        elif how == "affine":
            norm.__dict__.update(nn.BatchNorm2d(norm.num_features, affine=False).double().__dict__)
        elif how == "bias only":
            norm.weight.requires_grad_(False)
    if how == "frozen":
        for each in model.parameters():
            each.requires_grad_(each.dim() == 1)
    if how == "first":
        for each in list(model.parameters())[:12]:
            each.requires_grad_(False)
    plain, fused, report = pair(model)
    assert report.fused == BLOCKS
    for _ in range(3):
        assert_same(step(fused, images()), step(plain, images()))
    for each in (plain, fused):
        each.eval()
    assert_same(step(fused, images()), step(plain, images()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    model = network()
    wide = copy.deepcopy(model).double()
    plain, fused, _ = pair(model.to(dtype))
    exact = step(wide, images())
    mine, theirs = (step(each, images(dtype)) for each in (fused, plain))
    assert {name: each.dtype for name, each in mine.items()} == {
        name: each.dtype for name, each in theirs.items()
    }

    def error(found: dict[str, Tensor]) -> float:
        names = [name for name in exact if name.startswith("d ")]
        apart = sum(float((found[name].double() - exact[name]).square().sum()) for name in names)
        return float((apart / sum(float(exact[name].square().sum()) for name in names)) ** 0.5)

    assert error(mine) < 1.5 * error(theirs)


def test_second_derivatives() -> None:
    plain, fused, _ = pair(nn.Sequential(Residual(3, 4, 2), nn.SiLU()).double())
    found = []
    for model in (fused, plain):
        x = images()[:, :, :6, :6].clone().requires_grad_()
        parameters = [x, *model.parameters()]
        first = torch.autograd.grad(model(x).square().sum(), parameters, create_graph=True)
        norm = sum(each.square().sum() for each in first)
        found.append([*first, *torch.autograd.grad(norm, parameters)])
    torch.testing.assert_close(found[0], found[1], rtol=1e-8, atol=1e-8)


def test_transforms() -> None:
    plain, fused, _ = pair(network().double().eval())
    x = images()
    state = dict(fused.named_parameters())

    def loss(model: nn.Module, state: Any, x: Tensor) -> Tensor:
        return torch.func.functional_call(model, state, (x,)).square().sum()

    mine, theirs = (torch.func.grad(loss, 1)(model, state, x) for model in (fused, plain))
    torch.testing.assert_close(mine, theirs)
    batched = torch.func.vmap(lambda x: fused(x[None]))(x)
    torch.testing.assert_close(batched.squeeze(1), plain(x))
    changed = {name: each * 1.1 for name, each in state.items()}
    torch.testing.assert_close(loss(fused, changed, x), loss(plain, changed, x))


def test_modes() -> None:
    plain, fused, _ = pair(network())
    x = images(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mine, theirs = fused(x), plain(x)
    assert mine.dtype == theirs.dtype
    torch.testing.assert_close(mine, theirs, rtol=0.1, atol=0.1)
    meta = copy.deepcopy(fused).to("meta")
    assert meta(x.to("meta")).shape == (4, 3)
    with torch.device("meta"):
        assert fused(x).device.type == "cpu"
    traced = torch.jit.trace(fused.eval(), x, check_trace=False)
    torch.testing.assert_close(traced(x), fused(x), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled() -> None:
    torch._dynamo.reset()
    plain, fused, _ = pair(nn.Sequential(*network()[:2], *network()[5:]).double()[:2])
    x = images()
    for model in (plain, fused):
        model.eval()
    torch.testing.assert_close(
        torch.compile(fused, backend="aot_eager", fullgraph=True)(x), plain(x), rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(torch.export.export(fused, (x,)).module()(x), plain(x))


def test_threads() -> None:
    """Several threads with copies of a model, and one with the same model in evaluation."""
    plain, fused, _ = pair(network().double())
    wanted = step(copy.deepcopy(plain), images())
    found: list[dict[str, Tensor]] = []
    models = [copy.deepcopy(fused) for _ in range(3)]
    workers = [
        threading.Thread(target=lambda model=model: found.append(step(model, images())))
        for model in models
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(found) == 3
    for each in found:
        assert_same(each, wanted)
        assert all(torch.equal(each[name], found[0][name]) for name in wanted)


def test_what_is_kept() -> None:
    """A fused model holds fewer bytes for its backward pass than PyTorch does."""
    plain, fused, _ = pair(network())
    sums = []
    for model in (plain, fused):
        kept: dict[int, int] = {}

        def pack(tensor: Tensor, kept: dict[int, int] = kept) -> Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = model(images(torch.float32))
        sums.append(sum(kept.values()))
        del y
    assert sums[1] < 0.9 * sums[0]


@pytest.mark.parametrize("where", ["norm", "block", "excitation"])
def test_a_planted_error_is_noticed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One part in a thousand of one gradient."""
    if where == "norm":
        true = passes.Norm.backward

        def wrong(self: Any, *arguments: Any) -> Any:
            dx, *others = true(self, *arguments)
            return (None if dx is None else dx * 1.001, *others)

        monkeypatch.setattr(passes.Norm, "backward", wrong)
    elif where == "block":
        compiled = blocks._compiled_backward

        def a_little_wrong(*arguments: Any) -> Any:
            made = compiled(*arguments)
            return made and (*made[:3], made[3] * 1.001, *made[4:])

        monkeypatch.setattr(blocks, "_compiled_backward", a_little_wrong)
    else:
        scale = excitation._Scale.backward
        monkeypatch.setattr(
            excitation._Scale,
            "backward",
            lambda ctx, *grads: (scale(ctx, *grads)[0] * 1.001, *scale(ctx, *grads)[1:]),
        )
    plain, fused, _ = pair(network().double())
    with pytest.raises(AssertionError, match="not close"):
        assert_same(step(fused, images()), step(plain, images()))
