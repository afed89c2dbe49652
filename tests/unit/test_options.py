"""Options hold inside their block, and mistakes name the option, the rule and the value."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

import convgrad
from convgrad._base import config
from convgrad.errors import ArgumentError, ArgumentTypeError

SHAPES: Any = ([8, 28, 28, 64], [3, 3, 64, 64])


def candidates(**values: Any) -> dict[str, str | None]:
    with convgrad.options(**values):
        return convgrad.explain("conv2d", *SHAPES).refusals


def chosen(**values: Any) -> str:
    with convgrad.options(**values):
        return convgrad.explain("conv2d", *SHAPES).algorithm


def test_the_switch_decides_which_winograd_may_run() -> None:
    assert chosen() == "winograd"
    assert chosen(winograd="auto") == "winograd"
    assert chosen(winograd="fast") == "winograd_fast"
    assert not chosen(winograd="off").startswith("winograd")


@pytest.mark.parametrize(
    ("op", "fast"),
    [
        ("conv2d", "winograd_fast"),
        ("conv2d_backprop_input", "winograd_fast"),
        ("conv2d_backprop_filter", "winograd_filter_gradient"),
    ],
)
def test_what_is_less_exact_is_taken_only_if_asked_for(op: str, fast: str) -> None:
    for channels in (64, 128, 512):
        shapes: Any = ([8, 28, 28, channels], [3, 3, channels, channels])
        assert convgrad.explain(op, *shapes).algorithm not in (
            "winograd_fast",
            "winograd_filter_gradient",
        )
        with convgrad.options(winograd="fast"):
            found = convgrad.explain(op, *shapes)
        assert found.refusals[fast] is None or channels != 128, found.refusals


def test_refusals_say_what_to_set() -> None:
    assert candidates()["winograd_fast"] == 'opt-in: options(winograd="fast")'
    assert candidates(winograd="off")["winograd"] == "switched off"
    assert candidates(winograd="off")["winograd_fast"] == "switched off"
    assert candidates(winograd="fast")["winograd_fast"] is None


def test_blocks_nest_end_and_are_not_seen_by_other_threads() -> None:
    seen = []
    with convgrad.options(winograd="off"):
        with convgrad.options(winograd="fast"):
            assert config.get("winograd") == "fast"
        assert config.get("winograd") == "off"
        thread = threading.Thread(target=lambda: seen.append(config.get("winograd")))
        thread.start()
        thread.join()
    assert config.get("winograd") == "auto"
    assert seen == ["auto"]


def test_an_error_ends_the_block_too() -> None:
    with pytest.raises(KeyError), convgrad.options(winograd="off"):
        raise KeyError
    assert config.get("winograd") == "auto"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"winograd": "on"}, "options: `winograd` must be one of 'off', 'auto', 'fast', got 'on'"),
        ({"winograd": True}, "options: `winograd` must be one of 'off', 'auto', 'fast', got True"),
        ({"winograd": None}, "options: `winograd` must be one of 'off', 'auto', 'fast', got None"),
        ({"winograd": ["off"]}, "options: `winograd` must be one of .*, got \\['off'\\]"),
        ({"kernels": False}, "options: `kernels` is an unknown option; known are winograd"),
    ],
)
def test_mistakes(values: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message), convgrad.options(**values):
        pass


@pytest.mark.parametrize("text", ["off", "auto", "fast"])
def test_the_environment_sets_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setenv("CONVGRAD_WINOGRAD", text)
    assert config.get("winograd") == text


def test_the_environment_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setenv("CONVGRAD_WINOGRAD", "on")
    with pytest.warns(RuntimeWarning, match="one of off, auto, fast"):
        assert config.get("winograd") == "auto"


def test_functions_that_run_later_cannot_be_decorated() -> None:
    """Calling one only makes an object, whose body would run after the block: refused, and told what to write."""

    def generator() -> Any:
        yield convgrad.get_num_threads()

    async def coroutine() -> int:
        return convgrad.get_num_threads()

    async def stream() -> Any:
        yield convgrad.get_num_threads()

    class Later:
        async def __call__(self) -> int:
            return convgrad.get_num_threads()

    blocks: Any = {"threads": convgrad.threads(1), "options": convgrad.options(winograd="off")}
    for title, block in blocks.items():
        for function, what in (
            (generator, "a generator"),
            (coroutine, "a coroutine"),
            (stream, "an asynchronous generator"),
            (partial(coroutine), "a coroutine"),
            (Later(), "a coroutine"),
        ):
            with pytest.raises(
                ArgumentTypeError, match=f"^{title}: .* returns {what} that runs later"
            ):
                block(function)
        assert block(lambda: 3)() == 3
    assert convgrad.threads(1)(convgrad.get_num_threads)() == 1
