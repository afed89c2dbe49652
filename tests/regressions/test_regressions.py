"""Failures the campaign has found and shrunk, tried again; the first trials of the campaign; its record."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "tools" / "campaign").is_dir():
    pytest.skip("the campaign is not part of this distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from tools.campaign import draw  # noqa: E402 - the path is set above
from tools.campaign.shrink import REGRESSIONS, read  # noqa: E402
from tools.campaign.worker import try_job  # noqa: E402

CASES = sorted(REGRESSIONS.glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_failure_of_the_past_stays_mended(path: Path) -> None:
    assert try_job({"trial": read(path).to_json()})["failure"] == ""


@pytest.mark.parametrize("part", range(5))
def test_the_first_trials_hold(part: int) -> None:
    """What `make campaign` begins with, so that the default run has some of it even where nothing was ever found."""
    for index in range(5 * part, 5 * part + 5):
        trial = draw.trial(1, index)
        assert try_job({"trial": trial.to_json()})["failure"] == "", trial


def test_the_record_is_of_a_hundred_thousand_problems_without_a_failure() -> None:
    record = json.loads((ROOT / "docs" / "campaign.json").read_text(encoding="utf-8"))
    assert record["problems"] >= 100_000 and record["failures"] == []
    assert record["checks"]["threads"] >= 10_000 and record["checks"]["pairs"] >= 10_000
    page = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    assert f"{record['trials']:,} trials of {record['problems']:,} distinct problems" in page
