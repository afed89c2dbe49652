"""Compiled functions of fused blocks: the same bits as step by step, and what they leave to Python."""

from __future__ import annotations

import gc
import itertools
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import convgrad
from convgrad import torch as ours
from convgrad._torch import blocks, fused_records, install
from pytorch.fusing import assert_same, images, network, pair
from pytorch.fusing import step as mean_step

pytestmark = pytest.mark.skipif(
    install.handlers() is None, reason="this PyTorch has no functions for compiled handlers"
)

CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "1x1": {"kernel_size": 1},
    "3x3": {"kernel_size": 3, "padding": 1, "stride": 2},
    "depthwise": {"kernel_size": 3, "padding": 1, "groups": 6},
    "grouped": {"kernel_size": (1, 3), "groups": 2, "dilation": 2, "padding": (0, 2)},
}
ACTIVATIONS = {
    "none": nn.Identity,
    "relu6": nn.ReLU6,
    "leaky": lambda: nn.LeakyReLU(0.3),
    "silu": nn.SiLU,
}


class Unit(nn.Module):
    """One block, with the image itself as a residual where there is one."""

    def __init__(self, convolution: str, activation: str, place: str, **norm: Any) -> None:
        super().__init__()
        how = CONVOLUTIONS[convolution]
        self.conv = nn.Conv2d(6, 6, bias=place == "before", **how)
        self.bn = nn.BatchNorm2d(6, **norm)
        self.act = ACTIVATIONS[activation]()
        self.place = place

    def forward(self, x: Any) -> Any:
        u = self.bn(self.conv(x))
        if self.place == "before":
            return self.act(u + x)
        return self.act(u) + x if self.place == "after" else self.act(u)


class Spy:
    """Counts the calls of both functions, and those that were served."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.served = 0
        for name in ("_fused", "_fused_backward"):
            monkeypatch.setattr(blocks, name, self._watched(getattr(blocks, name)))

    def _watched(self, function: Any) -> Any:
        def call(*args: Any) -> Any:
            made = function(*args)
            self.calls += 1
            self.served += any(each is not None for each in made)
            return made

        return call


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def step(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Return what a forward and a backward pass leave, of a gradient that lies as the result does."""
    model.zero_grad()
    x = x.detach().requires_grad_()
    y = model(x)
    if y.requires_grad:
        y.backward(torch.sin(y.detach() * 7))
    made = {"result": y.detach(), "image": x.grad, **model.state_dict()}
    made |= {f"d {name}": each.grad for name, each in model.named_parameters()}
    return {
        name: each.clone(memory_format=torch.preserve_format)
        for name, each in made.items()
        if each is not None
    }


def step_by_step(monkeypatch: pytest.MonkeyPatch, model: nn.Module, x: Tensor) -> Any:
    """Return what a step leaves without compiled functions."""
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "_fused", lambda *_: (None,) * 3)
        patch.setattr(blocks, "_fused_backward", lambda *_: (None,) * 6)
        return step(model, x)


def assert_equal(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert list(mine) == list(theirs)
    for name, each in mine.items():
        assert torch.equal(each, theirs[name]), name
        assert each.stride() == theirs[name].stride(), name


def unit(dtype: torch.dtype, last: bool, *what: str, **norm: Any) -> nn.Module:
    torch.manual_seed(3)
    made = Unit(*what, **norm).to(dtype)
    if last:
        made = made.to(memory_format=torch.channels_last)
    report = ours.accelerate(made, fuse=True)
    assert len(report.blocks) == 1, report
    return made


def picture(dtype: torch.dtype, last: bool, size: tuple[int, ...] = (3, 6, 8, 10)) -> Tensor:
    made = torch.randn(size, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return made.to(dtype, memory_format=torch.channels_last if last else torch.contiguous_format)


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("place", ["", "before", "after"])
def test_a_step_has_the_bits_of_its_parts(convolution, activation, place, monkeypatch, spy):
    if place and convolution == "3x3":
        place = ""  # its result is smaller
    for dtype, last in itertools.product((torch.float32, torch.float64), (True, False)):
        model, x = unit(dtype, last, convolution, activation, place), picture(dtype, last)
        initial = {name: each.clone() for name, each in model.state_dict().items()}
        theirs = step_by_step(monkeypatch, model, x)
        model.load_state_dict(initial)
        spy.calls = spy.served = 0
        mine = step(model, x)
        assert (spy.calls, spy.served) == (2, 2)
        assert_equal(mine, theirs)
        assert int(mine["bn.num_batches_tracked"]) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_of_another_dtype_than_the_image(dtype, monkeypatch, spy):
    model = unit(dtype, True, "1x1", "relu6", "")
    model.bn.float()
    x = picture(dtype, True)
    initial = {name: each.clone() for name, each in model.state_dict().items()}
    theirs = step_by_step(monkeypatch, model, x)
    model.load_state_dict(initial)
    assert_equal(step(model, x), theirs)
    assert spy.served == 2
    # Parameters in the image's own narrow dtype are converted first.
    model.bn.to(dtype)
    step(model, x)
    assert (spy.calls, spy.served) == (4, 3)


def test_statistics_out_of_the_convolution(monkeypatch, spy):
    """The image is large enough that the convolution's own plan finds them out."""
    model, x = (
        unit(torch.float32, True, "1x1", "relu6", ""),
        picture(torch.float32, True, (4, 6, 160, 160)),
    )
    initial = {name: each.clone() for name, each in model.state_dict().items()}
    theirs = step_by_step(monkeypatch, model, x)
    model.load_state_dict(initial)
    assert_equal(step(model, x), theirs)
    assert spy.served == 2


@pytest.mark.parametrize("grad", [True, False])
def test_frozen_statistics(grad, monkeypatch, spy):
    model, x = (
        unit(torch.float32, True, "depthwise", "silu", "after").eval(),
        picture(torch.float32, True),
    )
    with torch.set_grad_enabled(grad):
        theirs = step_by_step(monkeypatch, model, x)
        assert_equal(step(model, x), theirs)
    assert spy.served == 1 + grad


def test_training_statistics_without_gradients(monkeypatch, spy):
    model, x = unit(torch.float32, True, "1x1", "relu6", "before"), picture(torch.float32, True)
    initial = {name: each.clone() for name, each in model.state_dict().items()}
    with torch.no_grad():
        theirs = step_by_step(monkeypatch, model, x)
        model.load_state_dict(initial)
        assert_equal(step(model, x), theirs)
    assert spy.served == 1


@pytest.mark.parametrize("wanted", list(itertools.product([False, True], repeat=4)))
def test_only_wanted_gradients(wanted, monkeypatch, spy):
    model, x = unit(torch.float32, True, "1x1", "relu6", "before"), picture(torch.float32, True)
    parameters = (model.conv.weight, model.conv.bias, model.bn.weight, model.bn.bias)
    for each, asked in zip(parameters, wanted, strict=True):
        each.requires_grad_(asked)
    theirs = step_by_step(monkeypatch, model, x)
    model.bn.reset_running_stats()
    mine = step(model, x)
    theirs |= {name: each for name, each in mine.items() if "running" in name or "batches" in name}
    assert_equal(mine, theirs)
    assert spy.served == 2


def test_norms_without_parameters_or_statistics(monkeypatch, spy):
    for norm in ({"affine": False}, {"track_running_stats": False}):
        model, x = (
            unit(torch.float32, True, "1x1", "silu", "", **norm),
            picture(torch.float32, True),
        )
        theirs = step_by_step(monkeypatch, model, x)
        if model.bn.track_running_stats:
            model.bn.reset_running_stats()
        mine = step(model, x)
        assert_equal(mine, {**theirs, **{each: mine[each] for each in mine if "bn." in each}})
    assert spy.served == 4


def test_a_cumulative_average_goes_the_longer_way(spy):
    model = unit(torch.float32, True, "1x1", "relu6", "", momentum=None)
    x = picture(torch.float32, True)
    with torch.no_grad():
        z = model.conv(x)
    step(model, x)
    step(model, x)
    torch.testing.assert_close(model.bn.running_mean, z.mean((0, 2, 3)))
    assert int(model.bn.num_batches_tracked) == 2
    assert spy.served == 2  # backwards


def test_tensors_that_must_be_copied_first(spy):
    model = unit(torch.float64, True, "1x1", "relu6", "")
    x = picture(torch.float64, True)
    right = step(model, x)
    model.bn.reset_running_stats()
    wide = torch.zeros(3, 6, 8, 20, dtype=x.dtype)
    wide[..., ::2] = x
    model.zero_grad()
    result = model(wide[..., ::2])
    torch.testing.assert_close(result, right["result"])
    # A gradient in another order than the result's.
    crooked = torch.randn(3, 6, 10, 8, dtype=x.dtype).transpose(2, 3)
    before = (spy.calls, spy.served)
    result.backward(crooked)
    assert (spy.calls, spy.served) == (before[0] + 2, before[1] + 1)
    torch.testing.assert_close(model.bn.bias.grad, _relu6_bias(result, crooked))


def _relu6_bias(result: Tensor, grad: Tensor) -> Tensor:
    return (grad * ((result > 0) & (result < 6))).sum((0, 2, 3))


def test_gradients_that_are_expanded(spy):
    model, x = unit(torch.float64, True, "1x1", "none", ""), picture(torch.float64, True)
    model(x).sum().backward()
    torch.testing.assert_close(model.bn.bias.grad, torch.full((6,), 240.0, dtype=x.dtype))


def test_a_network_and_its_layers_agree(spy):
    model, fused, _ = pair(network().double())
    assert_same(mean_step(fused, images()), mean_step(model, images()))
    assert spy.served == spy.calls > 10


def test_one_value_per_channel_is_pytorchs_error(spy):
    model = unit(torch.float32, True, "1x1", "relu6", "")
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        model(torch.randn(1, 6, 1, 1))
    assert spy.served == 0
    assert int(model.bn.num_batches_tracked) == 1  # as natively


def test_images_without_pixels_or_of_other_channels(spy):
    model = unit(torch.float32, True, "1x1", "relu6", "")
    assert model(torch.randn(0, 6, 4, 4)).shape == (0, 6, 4, 4)
    with pytest.raises(RuntimeError, match="channels"):
        model(torch.randn(2, 5, 4, 4))
    assert spy.served == 0


def test_switches_decide_which_record_is_found(spy):
    model, x = unit(torch.float32, True, "3x3", "relu6", ""), picture(torch.float32, True)
    handlers = install.handlers()
    assert handlers is not None

    def records_and_step() -> Any:
        model.bn.reset_running_stats()
        before = len(handlers.fused_table)
        left = step(model, x)
        return len(handlers.fused_table) - before, left

    _, right = records_and_step()
    assert records_and_step()[0] == 0
    with convgrad.threads(1):
        found, single = records_and_step()
    assert found == 0
    assert_equal(single, right)
    with convgrad.options(winograd="off"):
        found, other = records_and_step()
    assert found == 2
    assert_equal(other, right)  # no algorithm of Winograd's takes strides
    assert spy.served == spy.calls == 8


def test_nothing_is_kept_of_calls_that_are_over():
    model, x = unit(torch.float32, True, "1x1", "relu6", "before"), picture(torch.float32, True)
    other = torch.randn(3, 6, 10, 8).transpose(2, 3)  # declined
    for each in (x, other):
        step(model, each)
        gc.collect()
        before = sum(1 for found in gc.get_objects() if type(found) is Tensor)
        storage = each.untyped_storage()
        uses = torch._C._storage_Use_Count(storage._cdata)
        for _ in range(20):
            step(model, each)
        gc.collect()
        assert sum(1 for found in gc.get_objects() if type(found) is Tensor) == before
        assert torch._C._storage_Use_Count(storage._cdata) == uses


def test_handles_of_tensors_are_deleted():
    """Memory of tensors that only compiled code saw does not grow either."""
    model, x = (
        unit(torch.float32, True, "1x1", "relu6", ""),
        picture(torch.float32, True, (8, 6, 64, 64)),
    )

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(20):
        step(model, x)
    before = resident()
    for _ in range(200):
        step(model, x)
    # Each step makes eight images of 786 kB.
    assert resident() - before < 50e6


def test_many_threads_at_once():
    made: list[Any] = []
    right: dict[int, Tensor] = {}

    models = [unit(torch.float32, True, "depthwise", "relu6", "after") for _ in range(6)]

    def run(seed: int) -> None:
        model = models[seed]
        x = torch.randn(2, 6, 5 + seed, 7).to(memory_format=torch.channels_last)
        for _ in range(10):
            model.bn.reset_running_stats()
            made.append((seed, step(model, x)["image"]))

    workers = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(made) == 60
    for seed, each in made:
        assert torch.equal(right.setdefault(seed, each), each)


def test_a_record_says_what_is_made_and_run():
    """The words a handler reads, spelt out once."""
    from convgrad._torch import fused_handler

    unit(torch.float32, True, "1x1", "relu6", "")
    row = fused_records.ROWS[0]
    assert row.has_recipes()
    assert not row._replace(how=row.how._replace(epsilon=0.0)).has_recipes()
    crooked = row.how._replace(activation="leaky_relu", slope=-0.1, residual="before")
    assert not row._replace(how=crooked).has_recipes()
    assert fused_records.body(None) == [0]
    assert fused_handler.RECORD["BODY"] == 1 + fused_handler.KEY_WORDS + 4 + 4 + 10
