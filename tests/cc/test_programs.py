"""Programs of TensorFlow's C++ guide, its include lines unchanged, print what they print with TensorFlow itself.

The goldens are from TensorFlow: see `with_tensorflow/record.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cc_lines import difference, labelled
from cc_programs import PROGRAMS, Builds, Setting, found, run, settings

GUIDE = sorted(PROGRAMS.glob("guide_*.cc"))
OURS: dict[str, dict[str, str]] = {
    # What differs by intention: the program, the line's label, and our line. A feed's shape is checked by its
    # placeholder's, which TensorFlow leaves to whatever op meets it.
    "guide_feeds": {
        "a target": (
            "a target = INVALID_ARGUMENT: Cannot feed value of shape [] for Tensor 'product:0', "
            "which has shape [?,?]"
        ),
        "fetched''": "fetched = 2",
        "wrong shape": (
            "wrong shape = INVALID_ARGUMENT: Cannot feed value of shape [1,3] for Tensor 'x:0', "
            "which has shape [?,2]"
        ),
        "wrong rank": (
            "wrong rank = INVALID_ARGUMENT: Cannot feed value of shape [2] for Tensor 'x:0', "
            "which has shape [?,2]"
        ),
    },
}
DEFAULT = settings()[:1] if found() else []


def check(source: Path, how: Setting, builds: Builds) -> None:
    done = run(builds.all_together(how), source.stem)
    assert done.returncode == 0, done.stderr
    golden = labelled((PROGRAMS / "goldens" / f"{source.stem}.txt").read_text())
    golden |= OURS.get(source.stem, {})
    lines = labelled(done.stdout)
    assert list(lines) == list(golden)
    wrong = {label: text for label in golden if (text := difference(lines[label], golden[label]))}
    assert not wrong


@pytest.mark.parametrize("source", GUIDE, ids=lambda path: path.stem)
def test_a_program_prints_what_it_prints_with_tensorflow(source: Path, builds: Builds) -> None:
    check(source, DEFAULT[0], builds)


@pytest.mark.cc_long
@pytest.mark.parametrize("how", settings()[1:], ids=str)
@pytest.mark.parametrize("source", GUIDE, ids=lambda path: path.stem)
def test_a_program_prints_the_same_however_it_is_compiled(
    source: Path, how: Setting, builds: Builds
) -> None:
    check(source, how, builds)
