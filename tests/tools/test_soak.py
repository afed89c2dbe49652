"""The soak's verdict, on made-up readings; and what the package remembers, which must not grow without bound."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import _engine
from convgrad._compiler import jit
from convgrad._compiler.jit import elf
from convgrad._runtime.bound import Bound

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "tools" / "soak").is_dir():
    pytest.skip("the soak is not part of this distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from tools.soak.calls import Soak  # noqa: E402
from tools.soak.readings import Bounds, Reading, summary, verdict  # noqa: E402


def readings(seconds: int = 3600, **growing: Any) -> list[Any]:
    """Return an hour of steady readings, but for what a function of the share of time says."""
    found = []
    for at in range(0, seconds + 1, 10):
        values = {"rss": 200 << 20, "fds": 6, "threads": 9, "maps": 400, "cache": 10, "calls": at}
        values |= {name: int(value(at / seconds)) for name, value in growing.items()}
        found.append(Reading(float(at), **values))
    return found


def test_steady_readings_pass() -> None:
    warming = readings(rss=lambda share: (100 if share < 0.1 else 250) << 20)
    for each in (readings(), warming):
        assert verdict(each, Bounds(), []) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rss", lambda share: (200 << 20) + share * (400 << 20)),
        ("fds", lambda share: 6 + share * 20),
        ("threads", lambda share: 9 + (share > 0.5) * 2),
        ("maps", lambda share: 400 + share * 4000),
    ],
)
def test_growth_fails_and_is_named(name: str, value: Any) -> None:
    (reason,) = [r for r in verdict(readings(**{name: value}), Bounds(), []) if "grew" in r]
    assert reason.startswith(f"{name} grew")


def test_a_peak_that_is_gone_at_the_end_fails_too() -> None:
    peak = readings(rss=lambda share: (200 << 20) + (abs(share - 0.6) < 0.01) * (300 << 20))
    assert verdict(peak, Bounds(), [])


def test_a_slow_leak_fails_by_its_slope() -> None:
    """100 MB per hour is below the bound of an hour, but not of a day."""
    (reason,) = verdict(readings(rss=lambda share: (200 << 20) + share * (100 << 20)), Bounds(), [])
    assert "100 MB per hour" in reason


def test_teeth_are_no_slope() -> None:
    """What starts over when it is full grows for most of the time."""
    teeth = readings(rss=lambda share: (200 << 20) + (share * 7.9 % 1) * (60 << 20))
    assert verdict(teeth, Bounds(), []) == []


def test_failures_and_short_runs_fail() -> None:
    assert verdict(readings(), Bounds(), ["the bits changed"]) == ["the bits changed"]
    assert "too short" in verdict(readings()[:2], Bounds(), [])[0]


def test_other_bits_and_unrefused_mistakes_are_noticed() -> None:
    state = Soak(0)
    state.compare("p", np.zeros(4, np.float32))
    state.compare("p", np.zeros(4, np.float32))
    assert state.counts["bits compared"] == 1 and not state.failures
    state.compare("p", -np.zeros(4, np.float32))
    assert len(state.failures) == 1


def test_the_summary_names_all_that_is_watched() -> None:
    text = summary(readings(), Counter({"forked": 3}))
    for word in ("rss MB", "fds", "threads", "maps", "cache entries", "MB per hour", "forked: 3"):
        assert word in text


def test_problems_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many settings with few problems each must not add up."""
    monkeypatch.setattr(_engine, "memory", {})
    monkeypatch.setattr(_engine, "_LARGEST", 20)
    f = np.ones((1, 1, 1, 1), np.float32)
    for side in range(1, 16):
        for pad in range(6):
            x = np.ones((1, side, 1, 1), np.float32)
            convgrad.conv2d(x, f, 1, ((pad, 0), (0, 0)))
        assert len(_engine.memory) <= 20


def test_kernels_are_forgotten_and_unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code goes when neither the cache nor anything prepared holds it, and not before."""
    gone: list[int] = []
    ours: set[int] = set()
    real, place = elf._library().munmap, elf.place

    class Library:
        def munmap(self, address: int, size: int) -> int:
            if address in ours:  # compiling maps a page to see whether it may
                gone.append(address)
            return int(real(address, size))

        def __getattr__(self, name: str) -> Any:
            return getattr(library, name)

    def watched(code: bytes, symbol: str, *imports: Any) -> elf.LoadedCode:
        placed = place(code, symbol, *imports)
        ours.add(placed._address)
        return placed

    library = elf._library()
    monkeypatch.setattr(elf, "place", watched)
    if not elf.supported():
        pytest.skip("kernels are loaded by LLVM here and stay")
    monkeypatch.setattr(jit, "_kernels", {})
    monkeypatch.setattr(_engine, "memory", {})
    monkeypatch.setattr(jit, "_MOST", 2)
    x = np.arange(200, dtype=np.float32).reshape(1, 10, 10, 2)
    first = convgrad.depthwise_conv2d(x, np.ones((2, 2, 2, 1), np.float32), 1, "SAME")
    monkeypatch.setattr(elf, "_c", Library())
    for window in range(3, 8):
        convgrad.depthwise_conv2d(x, np.ones((window, window, 2, 1), np.float32), 1, "SAME")
        assert len(jit._kernels) <= 2
    assert len(ours) > 5
    assert not gone, "what is prepared holds its kernels"
    again = convgrad.depthwise_conv2d(x, np.ones((2, 2, 2, 1), np.float32), 1, "SAME")
    np.testing.assert_array_equal(again, first)
    _engine.memory.clear()
    assert len(gone) >= 3
    again = convgrad.depthwise_conv2d(x, np.ones((2, 2, 2, 1), np.float32), 1, "SAME")
    np.testing.assert_array_equal(again, first)


def test_tables_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few large problems can hold as much as many small ones."""
    monkeypatch.setattr(_engine, "memory", {})
    monkeypatch.setattr(_engine, "_tables", 0)
    f = np.ones((3, 3, 4, 8), np.float32)
    counts = []
    for size in range(12, 24):
        convgrad.conv2d(np.ones((1, size, size, 4), np.float32), f, 1, "SAME")
        if not counts:
            assert _engine._tables > 0
            monkeypatch.setattr(_engine, "_MOST_TABLES", 4 * _engine._tables)
        counts.append(sum(type(each) is Bound for each in _engine.memory.values()))
        assert _engine._tables <= _engine._MOST_TABLES or counts[-1] == 1
    assert 1 < max(counts) < len(counts), (
        "kept while there is room, and dropped where there is none"
    )
