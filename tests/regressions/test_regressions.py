"""Every failure the campaign has ever found and shrunk, tried again: `python -m tools.campaign --replay FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "tools" / "campaign").is_dir():
    pytest.skip("the campaign is not part of this distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from tools.campaign.shrink import REGRESSIONS, read  # noqa: E402
from tools.campaign.worker import try_job  # noqa: E402

CASES = sorted(REGRESSIONS.glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_failure_of_the_past_stays_mended(path: Path) -> None:
    assert try_job({"trial": read(path).to_json()})["failure"] == ""
