"""`accelerate` and `restore`: which layers are taken, what they keep, and what their report says."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from convgrad import torch as ours
from convgrad._bridges.torch import weights


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8, stride=2),
        nn.Conv2d(8, 4, 1, bias=False),
        nn.ConvTranspose2d(4, 6, 3, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 2),
    ).double()


def image(batch: int = 2) -> torch.Tensor:
    return torch.randn(
        batch, 3, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )


def close(mine: Any, theirs: Any) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


def trained(model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Return a result and all gradients."""
    model.zero_grad()
    y = model(x)
    y.square().sum().backward()
    return [y.detach(), *(each.grad for each in model.parameters() if each.grad is not None)]


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_model_computes_the_same(order: Any) -> None:
    plain = network().to(memory_format=order)
    model = copy.deepcopy(plain)
    report = ours.accelerate(model)
    assert report.taken == ("0", "3", "4", "5", "8") and report.left == {}
    x = image().contiguous(memory_format=order)
    close(trained(model, x), trained(plain, x))


def test_the_report() -> None:
    model = network()
    report = ours.accelerate(model)
    rows = {layer.name: layer for layer in report.layers}
    assert {name: row.what for name, row in rows.items()} == {
        "0": "3x3",
        "3": "depthwise",
        "4": "pointwise",
        "5": "dense",
        "8": "linear",
    }
    assert rows["5"].kind == "ConvTranspose2d" and rows["3"].expected == "2 to 4"
    text = str(report)
    assert "5 of 5 layers are computed by convgrad." in text
    assert "x 2 to 4" in text and "channels_last" in text
    again = ours.accelerate(model)
    assert again.taken == report.taken
    assert {layer.reason for layer in again.layers} == {"already"}
    last = ours.accelerate(network().to(memory_format=torch.channels_last))
    assert last.advice == ()
    assert "8" not in ours.accelerate(network(), linear=False).taken
    alone = ours.accelerate(nn.Conv2d(1, 1, 1))
    assert alone.taken == ("",) and "(the model)" in str(alone)


def test_nothing_taken_warns_at_the_callers_line() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ours.accelerate(nn.ReLU())
    assert [each.category for each in seen] == [RuntimeWarning]
    assert "no layer of this model was taken" in str(seen[0].message)
    assert seen[0].filename == __file__
    assert "accelerate(nn.ReLU())" in Path(__file__).read_text().splitlines()[seen[0].lineno - 1]


class Own(nn.Conv2d):
    """A layer with a forward of its own."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input) * 2


def test_what_is_left_alone() -> None:
    on_meta = nn.Conv2d(2, 2, 1, device="meta")
    model = nn.ModuleDict(
        {
            "taken": nn.Conv2d(2, 2, 1),
            "own": Own(2, 2, 1),
            "parametrized": parametrizations.weight_norm(nn.Conv2d(2, 2, 1)),
            "lazy": nn.LazyConv2d(2, 1),
            "meta": on_meta,
            "complex": nn.Conv2d(2, 2, 1, dtype=torch.complex64),
            "one": nn.Conv1d(2, 2, 1),
            "three": nn.Conv3d(2, 2, 1),
            "normed": nn.SyncBatchNorm(2),
        }
    )
    kinds = {name: type(layer) for name, layer in model.items()}
    report = ours.accelerate(model)
    assert report.taken == ("taken",)
    assert report.left.keys() == {"own", "parametrized", "lazy", "meta", "complex"}
    for name, part in (
        ("own", "class of its own"),
        ("parametrized", "parametrization"),
        ("lazy", "class of its own"),
        ("meta", "on meta"),
        ("complex", "complex64"),
    ):
        assert part in report.left[name] and report.left[name] in str(report)
    assert {name: type(layer) for name, layer in model.items() if name != "taken"} == {
        name: kind for name, kind in kinds.items() if name != "taken"
    }
    x = torch.randn(1, 2, 3, 3)
    assert model["lazy"](x).shape == (1, 2, 3, 3)  # and can be taken once it has a shape
    assert "lazy" in ours.accelerate(model).taken
    assert torch.equal(model["own"](x), Own.forward(model["own"], x))


def test_hook_style_weight_norm() -> None:
    made = []
    for _ in range(2):
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is deprecated, and still in many models
            made.append(torch.nn.utils.weight_norm(nn.Conv2d(3, 4, 3)).double())
    model, plain = made
    assert ours.accelerate(model).taken == ("",)
    x = image()
    for _ in range(2):
        close(trained(model, x), trained(plain, x))
    assert ours.restore(model) == 1
    close(trained(model, x), trained(plain, x))


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), "same"], ids=str)
def test_padding_modes(mode: str, padding: Any) -> None:
    plain = nn.Conv2d(3, 4, 3, padding=padding, padding_mode=mode, dtype=torch.float64)
    model = copy.deepcopy(plain)
    ours.accelerate(model)
    for x in (image(), image()[0]):
        close(trained(model, x), trained(plain, x))


def test_tied_weights() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.there = nn.Conv2d(3, 5, 3, dtype=torch.float64)
            self.back = nn.ConvTranspose2d(5, 3, 3, dtype=torch.float64)
            self.back.weight = self.there.weight

        def forward(self, x: Any) -> Any:
            return self.back(self.there(x))

    plain = Tied()
    model = copy.deepcopy(plain)
    assert model.back.weight is model.there.weight
    ours.accelerate(model)
    assert model.back.weight is model.there.weight
    close(trained(model, image()), trained(plain, image()))
    ours.restore(model)
    assert model.back.weight is model.there.weight and model.back.weight.is_contiguous()


@pytest.mark.parametrize("frozen", ["weight", "bias", "both", "image", "nothing"])
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_frozen_parts(kind: Any, frozen: str) -> None:
    plain = kind(3, 4, 3, dtype=torch.float64)
    if frozen in ("weight", "both"):
        plain.weight.requires_grad_(False)
    if frozen in ("bias", "both"):
        plain.bias.requires_grad_(False)
    model = copy.deepcopy(plain)
    ours.accelerate(model)
    results = []
    for layer in (model, plain):
        x = image().requires_grad_(frozen != "image")
        results.append([*trained(layer, x), x.grad])
    assert len(results[0]) == len(results[1])
    assert (results[0][-1] is None) == (frozen == "image")
    close(results[0], results[1])


def test_restore_gives_everything_back() -> None:
    for order in (torch.contiguous_format, torch.channels_last):
        model = network().to(memory_format=order)
        before = {name: (type(m), set(m.__dict__)) for name, m in model.named_modules()}
        strides = {name: p.stride() for name, p in model.named_parameters()}
        numbers = {name: p.clone() for name, p in model.named_parameters()}
        places = {name: id(p) for name, p in model.named_parameters()}
        ours.accelerate(model)
        assert any(p.stride() != strides[name] for name, p in model.named_parameters())
        trained(model, image())
        assert ours.restore(model) == 5
        assert {name: (type(m), set(m.__dict__)) for name, m in model.named_modules()} == before
        for name, p in model.named_parameters():
            assert p.stride() == strides[name] and torch.equal(p, numbers[name])
            assert id(p) == places[name]
            assert p.grad is not None and p.grad.stride() == strides[name]
            assert not weights.changed(p)
        assert ours.restore(model) == 0


def test_without_restriding_nothing_moves() -> None:
    model = network()
    strides = [p.stride() for p in model.parameters()]
    places = [p.data_ptr() for p in model.parameters()]
    ours.accelerate(model, restride=False)
    assert [p.stride() for p in model.parameters()] == strides
    assert [p.data_ptr() for p in model.parameters()] == places
    close(trained(model, image()), trained(network(), image()))


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_gradients_are_taken_over_without_a_copy(order: Any) -> None:
    """They have the strides of their parameters, and what the kernels wrote becomes `.grad` itself."""
    model = network().to(memory_format=order)
    ours.accelerate(model)
    arrived: dict[str, int] = {}
    for name, p in model.named_parameters():
        p.register_hook(lambda grad, name=name: arrived.update({name: grad.data_ptr()}))
    trained(model, image().contiguous(memory_format=order))
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.stride() == p.stride(), name
        assert p.grad.data_ptr() == arrived[name], name


def test_checkpoints_load_either_way() -> None:
    plain, model = network(), network()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    ours.accelerate(model)
    assert list(model.state_dict()) == list(plain.state_dict())
    strides = [p.stride() for p in model.parameters()]
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    fresh = network()
    fresh.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    close(fresh(image()), model(image()))
    model.load_state_dict(plain.state_dict(), strict=True)
    assert [p.stride() for p in model.parameters()] == strides
    close(model(image()), plain(image()))
    other = network()
    ours.accelerate(other)
    other.load_state_dict(plain.state_dict(), strict=True, assign=True)
    close(trained(other, image()), trained(plain, image()))


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_copies_and_pickles(order: Any) -> None:
    model = network().to(memory_format=order)
    strides = [p.stride() for p in model.parameters()]
    ours.accelerate(model)
    wanted = trained(model, image())
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for other in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(buffer, weights_only=False),
    ):
        assert [type(m) for m in other.modules()] == [type(m) for m in model.modules()]
        close(trained(other, image()), wanted)
        ours.restore(other)
        assert type(other[0]) is nn.Conv2d
        assert [p.stride() for p in other.parameters()] == strides
        close(trained(other, image()), wanted)


def test_hooks() -> None:
    plain = network()
    model = copy.deepcopy(plain)
    calls: list[str] = []
    for each in (model, plain):
        layer = each[3]
        layer.register_forward_pre_hook(lambda *_: calls.append("before"))
        layer.register_forward_hook(lambda module, given, made: made * 2)
        layer.register_full_backward_hook(lambda module, given, made: calls.append("backward"))
    ours.accelerate(model)
    close(trained(model, image()), trained(plain, image()))
    assert sorted(calls) == ["backward"] * 2 + ["before"] * 2


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)], ids=str)
def test_linear_layers_of_every_rank(shape: tuple[int, ...]) -> None:
    plain = nn.Linear(5, 7, dtype=torch.float64)
    model = copy.deepcopy(plain)
    ours.accelerate(model)
    results = []
    for layer in (model, plain):
        x = torch.ones(shape, dtype=torch.float64).cumsum(-1).requires_grad_()
        results.append([*trained(layer, x), x.grad])
    close(*results)


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_errors_name_the_layer(kind: Any) -> None:
    model = nn.Sequential(nn.ReLU(), nn.Sequential(kind(3, 4, 3)))
    x = torch.randn(1, 2, 5, 5)
    with pytest.raises(RuntimeError) as theirs:
        model(x)
    ours.accelerate(model)
    with pytest.raises(RuntimeError) as mine:
        model(x)
    assert str(mine.value) == str(theirs.value)
    if hasattr(mine.value, "add_note"):  # from Python 3.11 on
        assert mine.value.__notes__ == ["in the layer '1.0', computed by convgrad"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_other_dtypes(dtype: torch.dtype) -> None:
    model = network()
    wanted = model.eval()(image())
    ours.accelerate(model.to(dtype))
    made = model(image().to(dtype))
    assert made.dtype == dtype
    torch.testing.assert_close(made.double(), wanted, rtol=0.05, atol=0.05)


def test_autocast() -> None:
    model = network().float()
    plain = copy.deepcopy(model)
    ours.accelerate(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mine, theirs = model(image().float()), plain(image().float())
    assert mine.dtype == theirs.dtype == torch.bfloat16
    torch.testing.assert_close(mine, theirs, rtol=0.05, atol=0.05)
    mine.sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())
