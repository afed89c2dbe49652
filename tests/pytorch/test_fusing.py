"""`accelerate(fuse=True)`: blocks compute what their layers did, and everything about a model stays what it was."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from convgrad import torch as ours
from convgrad._torch import excitation, passes
from convgrad._torch.forwards import FusedForward
from pytorch.fusing import Residual, assert_same, images, network, nodes, pair, step

BLOCKS = {
    "0.0": "convolution + batch norm + relu6",
    "1.conv1": "convolution + batch norm + relu",
    "1.conv2": "convolution + batch norm + residual + relu",
    "2.conv1": "convolution + batch norm + relu",
    "2.conv2": "convolution + batch norm + residual + relu",
    "2.downsample.0": "convolution + batch norm",
    "3.front.0": "convolution + batch norm + silu",
    "3.back.0": "convolution + batch norm + residual",
    "3.pool": "pooling, and scaling by what follows",
    "4.bn": "batch norm + leaky_relu",
    "5": "convolution + batch norm + gelu_tanh",
}
OURS = {"_BlockBackward", "_NormalizeBackward", "_ForkBackward", "_ScaleBackward"}
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


@pytest.mark.parametrize("which", ["0.0", "0.1", "0.2", "0", "1", "3.pool", "3.drop"])
@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_hooks(which: str, kind: str, before: bool) -> None:
    """They are called as often and change as much as natively."""
    seen: list[str] = []
    counts = []
    found = []
    for name in ("plain", "fused"):
        model = network().double()
        for each in model.modules():
            if hasattr(each, "inplace"):
                each.inplace = False  # PyTorch refuses hooks on results that are written to

        def hook(layer: Any, *given: Any) -> Any:
            seen.append(type(layer).__name__)
            return given[-1] * 2 if kind == "forward" else None

        if name == "fused" and not before:
            ours.accelerate(model, fuse=True)
        handle = getattr(model.get_submodule(which), f"register_{kind}_hook")(hook)
        if name == "fused" and before:
            ours.accelerate(model, fuse=True)
        found.append(step(model, images()))
        counts.append(len(seen))
        handle.remove()
        found.append(step(model, images()))
        assert len(seen) == counts[-1]
        seen.clear()
    assert counts[0] == counts[1] > 0
    assert_same(found[2], found[0])
    assert_same(found[3], found[1])


@pytest.mark.parametrize("kind", ["forward", "forward_pre"])
def test_hooks_on_all_modules(kind: str) -> None:
    plain, fused, _ = pair(network().double())
    counts = []
    for model in (plain, fused):
        seen: list[Any] = []
        register = getattr(nn.modules.module, f"register_module_{kind}_hook")
        handle = register(lambda layer, *given, seen=seen: seen.append(layer))
        model(images())
        handle.remove()
        counts.append(len(seen))
    assert counts[0] == counts[1] > 20


def test_a_child_that_was_replaced() -> None:
    plain, fused, _ = pair(network().double())
    for model in (plain, fused):
        torch.manual_seed(3)
        model[1].bn1 = nn.GroupNorm(2, 6).double()
        model[1].relu = nn.Tanh()
        model[3].drop = nn.Dropout(0.5).eval()
        model[2].downsample[1] = nn.Identity()
        model[0].append(nn.Hardtanh())
        model[7] = nn.LeakyReLU(0.3)
    assert_same(step(fused, images()), step(plain, images()))


def test_settings_that_change_later() -> None:
    plain, fused, _ = pair(network().double())
    for model in (plain, fused):
        model[7].approximate = "none"
        model[0][1].eps, model[0][1].momentum = 0.1, 0.5
        model[0][0].stride, model[0][0].padding = (1, 1), "same"
        model[1].conv1.padding_mode = "reflect"
        model[2].downsample[0].padding = "valid"
    assert_same(step(fused, images()), step(plain, images()))


class Chosen(nn.Module):
    """Does one thing or another, as an attribute says."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
        self.adds, self.factor = True, 2.0

    def forward(self, x: Any) -> Any:
        y = self.bn(self.conv(x))
        if self.adds:
            y = y + x
        return y * self.factor if self.training else y


def test_attributes_that_change() -> None:
    plain, fused, report = pair(Chosen().double())
    assert report.fused == {"conv": "convolution + batch norm + residual"}
    x = images()
    assert_same(step(fused, x), step(plain, x))
    for change in ({"factor": 3.0}, {"adds": False}, {"training": False}, {"adds": True}):
        for model in (plain, fused):
            model.__dict__.update(change)
        assert_same(step(fused, x), step(plain, x))


def test_other_arguments() -> None:
    plain, fused, _ = pair(Chosen().double())
    x = images()
    torch.testing.assert_close(fused(x=x), plain(x=x))
    with pytest.raises(TypeError):
        fused(x, x)
    with pytest.raises(ValueError, match=r"expected 4D input \(got 3D input\)"):
        fused(x[0])
    with pytest.raises(RuntimeError, match=r"conv: .*expected input"):
        fused(x[:, :2])
    one = torch.randn(1, 3, 1, 1, dtype=torch.float64)
    count = int(fused.bn.num_batches_tracked)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        fused(one)
    assert int(fused.bn.num_batches_tracked) == count + 1  # as PyTorch's


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


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
def test_copies(way: str) -> None:
    plain, fused, _ = pair(network().double())
    step(fused, images())
    step(plain, images())
    if way == "deepcopy":
        copied = copy.deepcopy(fused)
    elif way == "pickle":
        copied = pickle.loads(pickle.dumps(fused))
    else:
        file = io.BytesIO()
        torch.save(fused, file)
        file.seek(0)
        copied = torch.load(file, weights_only=False)
    own = copied[1].__dict__["forward"]
    assert type(own) is FusedForward and own.module is copied[1]
    with torch.no_grad():  # the two share nothing
        for each in fused.parameters():
            each.zero_()
    assert_same(step(copied, images()), step(plain, images()))


def test_everything_stays_and_goes_back() -> None:
    plain, fused, report = pair(network().double(), restride=False)
    assert list(fused.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in fused.named_modules()] == [
        name for name, _ in plain.named_modules()
    ]
    assert type(fused[1]) is Residual and isinstance(fused[0], nn.Sequential)
    assert "11 of 11 blocks are computed as one." in str(report)
    fused.load_state_dict(plain.state_dict())
    x = images()
    alone = fused[1].bn1(fused[1].conv1(fused[0](x)))  # layers by themselves do what they did
    torch.testing.assert_close(alone, plain[1].bn1(plain[1].conv1(plain[0](x))))
    fused.load_state_dict(plain.state_dict())
    ours.restore(fused)
    assert not any("forward" in each.__dict__ for each in fused.modules())
    mine, theirs = step(fused, x), step(plain, x)
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_one_call_after_another() -> None:
    fused = network().double()
    assert ours.accelerate(fused).blocks is None
    report = ours.accelerate(fused, fuse=True)
    assert report.fused == BLOCKS and {each.reason for each in report.layers} == {"already"}
    again = ours.accelerate(fused, fuse=True)
    assert again.fused == BLOCKS
    ours.accelerate(fused)
    assert "_BlockBackward" in nodes(copy.deepcopy(fused)(images()))
    assert_same(step(fused, images()), step(network().double(), images()))


class Chance(nn.Module):
    def __init__(self, do: str) -> None:
        super().__init__()
        self.conv, self.bn, self.do = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), do
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        return self.bn(self.conv(x))


def test_what_is_left_alone() -> None:
    import random

    class Random(Chance):
        def forward(self, x: Any) -> Any:
            return x if random.random() < 0.5 else self.bn(self.conv(x))

    class Stores(Chance):
        def forward(self, x: Any) -> Any:
            self.last = self.bn(self.conv(x))
            return self.last

    class Collects(Chance):
        def forward(self, x: Any) -> Any:
            self.seen.append(1)
            return self.bn(self.conv(x))

    class Block(Chance):
        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                return self.bn(self.conv(x))

    class Decorated(Chance):
        @torch.no_grad()
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x))

    class Optional(Chance):
        def forward(self, x: Any, mask: Any = None) -> Any:
            return self.bn(self.conv(x)) if mask is None else x

    class Asks(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x)) if isinstance(x, Tensor) else x

    class Branches(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x)) if x.sum() > 0 else x

    class Twice(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(self.bn(self.conv(x))))

    class Draws(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x)) if torch.rand(()) < 2 else x

    says = {
        Random: "calls random",
        Stores: "sets attributes",
        Collects: "calls append",
        Block: "has a block of `with`",
        Decorated: "is decorated",
        Optional: "an optional argument, mask",
        Asks: "calls isinstance",
        Branches: "cannot trace",
        Twice: "used in several places",
        Draws: "calls rand",
    }
    for kind, words in says.items():
        plain, fused, report = pair(nn.Sequential(kind("")).double())
        assert report.fused == {} and words in report.unfused["0.bn"], (kind, report.unfused)
        assert report.unfused["0.bn"] in str(report)
        random.seed(0)
        mine = step(fused, images())
        random.seed(0)
        assert_same(mine, step(plain, images()))
        assert fused[0].seen == plain[0].seen


def test_layers_that_are_left_alone() -> None:
    shared = nn.BatchNorm2d(3)

    class Own(nn.BatchNorm2d):
        pass

    for layers, says in (
        ((nn.Conv2d(3, 3, 1), shared, nn.Conv2d(3, 3, 1), shared), "it is used in several places"),
        ((nn.Conv2d(3, 3, 1), Own(3)), "Own is left to PyTorch"),
        ((nn.Conv2d(3, 3, 1), nn.SyncBatchNorm(3)), "SyncBatchNorm is left to PyTorch"),
        ((nn.Conv2d(3, 3, 1), nn.LazyBatchNorm2d()), "LazyBatchNorm2d is left to PyTorch"),
    ):
        report = ours.accelerate(nn.Sequential(*layers), fuse=True)
        assert report.fused == {} and set(report.unfused.values()) == {says}
    assert "there is no batch norm" in str(ours.accelerate(nn.Conv2d(1, 1, 1), fuse=True))
    # A sequence inside a module that cannot be traced is fused by itself.

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU())

        def forward(self, x: Any) -> Any:
            return self.inside(x) if x.shape[0] > 1 else x

    assert ours.accelerate(Outside(), fuse=True).fused == {
        "inside.0": "convolution + batch norm + relu"
    }


def test_writing_in_place_is_seen() -> None:
    """What stands between a block's layers may not change what they read."""

    class Between(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

        def forward(self, x: Any) -> Any:
            x = x * 1
            y = self.bn(self.conv(x))
            z = x.relu_()
            return y + z

    class Into(Between):
        def forward(self, x: Any) -> Any:
            x = x * 1
            y = x
            y += self.bn(self.conv(x.clone()))
            return y + x

    for kind in (Between, Into):
        plain, fused, report = pair(kind().double())
        assert report.fused == {"conv": "convolution + batch norm"}
        with torch.no_grad():
            torch.testing.assert_close(fused(images()), plain(images()))
    assert_same(step(fused, images()), step(plain, images()))


def test_residuals_of_another_shape() -> None:
    class Broadcast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

        def forward(self, x: Any) -> Any:
            return F.relu(self.bn(self.conv(x)) + x.mean((2, 3), keepdim=True))

    plain, fused, report = pair(Broadcast().double())
    assert report.fused == {"conv": "convolution + batch norm + residual + relu"}
    assert_same(step(fused, images()), step(plain, images()))


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


@pytest.mark.parametrize("where", ["norm", "excitation"])
def test_a_planted_error_is_noticed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One part in a thousand of one gradient."""
    if where == "norm":
        true = passes.Norm.backward

        def wrong(self: Any, *arguments: Any) -> Any:
            dx, *others = true(self, *arguments)
            return (None if dx is None else dx * 1.001, *others)

        monkeypatch.setattr(passes.Norm, "backward", wrong)
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
