"""What children of `convgrad bench train` do with PyTorch; `test_train_torch.py` runs this in a process of its own.

PyTorch changes the process it is imported in, such as whose threads are used, which other tests look at.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.train.frameworks import TRAININGS
from benchmarks.train.job import Job

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

PARAMETERS = {
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032,
    "efficientnet_b0": 5_288_548,
    "resnet50": 25_557_032,
    "convnext_t": 28_589_128,
}


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def bridge(torch: Any, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand in for `convgrad.torch`: it notes what it is asked and computes as PyTorch does."""
    asked: list[str] = []

    def accelerate(model: Any) -> str:
        asked.append("accelerate")
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                assert module.weight.is_contiguous(memory_format=torch.channels_last)
                module.weight.data = module.weight.data.clone()
        return "two lines\nof report"

    def conv2d(*arguments: Any) -> Any:
        asked.append("conv2d")
        return torch.nn.functional.conv2d(*arguments)

    def tune_memory() -> Any:
        asked.append("tune_memory")
        return SimpleNamespace(applied=True)

    stand_in = SimpleNamespace(
        asked=asked, accelerate=accelerate, conv2d=conv2d, tune_memory=tune_memory
    )
    monkeypatch.setitem(sys.modules, "convgrad.torch", stand_in)  # type: ignore[arg-type]
    return stand_in


def a_job(**how: Any) -> Job:
    usual = {"family": "native", "layout": "channels_last", "memory": False}
    threads = pytest.importorskip("torch").get_num_threads()
    usual |= {"image": 32, "batch": 2}
    return Job("mobilenet_v2", threads=threads, **{**usual, **how})


def test_networks_have_the_published_parameters(torch: Any) -> None:
    from benchmarks.train.torch_models import MODELS

    with torch.device("meta"):
        found = {
            name: sum(each.numel() for each in make().parameters()) for name, make in MODELS.items()
        }
    assert found == PARAMETERS
    assert tuple(MODELS) == TRAININGS["torch"].models


def test_networks_compute_classes_and_have_the_usual_convolutions(torch: Any) -> None:
    from benchmarks.train.torch_models import MODELS

    counts = {}
    with torch.device("meta"):
        for name, make in MODELS.items():
            model = make()
            assert model(torch.empty(2, 3, 64, 64)).shape == (2, 1000)
            counts[name] = sum(isinstance(each, torch.nn.Conv2d) for each in model.modules())
    assert counts == {
        "mobilenet_v2": 52,
        "mobilenet_v3_large": 62,
        "efficientnet_b0": 81,
        "resnet50": 53,
        "convnext_t": 22,
    }


def test_ours_is_accelerated_before_the_optimizer_sees_it(
    torch: Any, bridge: SimpleNamespace
) -> None:
    from benchmarks.train import torch_trainer

    # Not the smallest: two images that end in one pixel each make PyTorch's own training NaN after four steps with
    # oneDNN on AVX-512 (it learns without oneDNN, and on AVX2).
    larger = {"image": 64, "batch": 4}
    trained = torch_trainer.prepare(a_job(family="ours", memory=True, **larger))
    assert bridge.asked == ["tune_memory", "accelerate"]
    assert trained.note == "two lines\nof report"
    trained.step()
    first = trained.loss()
    native = torch_trainer.prepare(a_job(**larger))
    assert bridge.asked == ["tune_memory", "accelerate"]
    native.step()
    assert native.loss() == pytest.approx(first, rel=1e-5)
    for _ in range(4):
        trained.step()
    assert trained.loss() < first  # it learns


def test_a_memory_setting_that_is_not_to_be_had_is_no_configuration(
    bridge: SimpleNamespace,
) -> None:
    from benchmarks.train import torch_trainer

    bridge.tune_memory = lambda: SimpleNamespace(applied=False)
    with pytest.raises(RuntimeError, match="the memory setting: "):
        torch_trainer.prepare(a_job(memory=True))


def test_layers_are_counted_and_compared(torch: Any, bridge: SimpleNamespace) -> None:
    from benchmarks.train import torch_layers

    convolution = torch.nn.Conv2d(4, 4, 3, padding=1, groups=4)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 2, 1, bias=False),
        convolution,
        torch.nn.ReLU(),
        convolution,
        torch.nn.Conv2d(4, 8, 1, bias=False),
    )
    rows = torch_layers.compare(model, (2, 3, 8, 8), repeats=3)
    assert [(row["input"], row["filter"], row["count"]) for row in rows] == [
        ((2, 3, 8, 8), (4, 3, 3, 3), 1),
        ((2, 4, 4, 4), (4, 1, 3, 3), 2),
        ((2, 4, 4, 4), (8, 4, 1, 1), 1),
    ]
    assert [row["input_gradient"] for row in rows] == [False, True, True]
    assert [(row["groups"], row["bias"], row["stride"]) for row in rows] == [
        (1, False, (2, 2)),
        (4, True, (1, 1)),
        (1, False, (1, 1)),
    ]
    for row in rows:
        assert row["error"] < 1e-6
        assert row["forward"]["native_ms"] > 0 < row["backward"]["ours_ms"]
    assert bridge.asked.count("accelerate") == 3
    assert bridge.asked.count("conv2d") == 3 * (torch_layers.WARM_UP + 3)


def test_a_wrong_gradient_of_ours_is_an_error(torch: Any, bridge: SimpleNamespace) -> None:
    from benchmarks.train import torch_layers

    def scaled(x: Any, weight: Any, *rest: Any) -> Any:
        good = torch.nn.functional.conv2d(x, weight, *rest)
        return good + 0.1 * (weight - weight.detach()).sum()  # the same output, another gradient

    bridge.conv2d = scaled
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False))
    (row,) = torch_layers.compare(model, (2, 3, 8, 8), repeats=1)
    assert row["error"] > 1e-3
