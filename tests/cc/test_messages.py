"""Mistakes are refused in TensorFlow's words; where not, the reason stands in a table."""

from __future__ import annotations

import re

import pytest

from cc_differences import DIFFERENCES, REASONS
from cc_lines import labelled
from cc_programs import PROGRAMS, Builds, Setting, run, settings

GOLDEN = labelled((PROGRAMS / "goldens" / "messages.txt").read_text())
_CONSTANT = re.compile(r"\bConst(_\d+)?(?=[/,)])")


def spoken(builds: Builds, how: Setting) -> dict[str, str]:
    done = run(builds.all_together(how), "messages")
    assert done.returncode == 0, done.stderr
    return labelled(done.stdout)


def check(lines: dict[str, str]) -> None:
    assert list(lines) == list(GOLDEN)
    wanted = {
        label: DIFFERENCES[label][0] if label in DIFFERENCES else GOLDEN[label] for label in GOLDEN
    }
    # Compilers differ in which argument of a call they compute first, and so which constant is the first one.
    unnumbered = {label: _CONSTANT.sub("Const", line) for label, line in wanted.items()}
    wrong = {
        label: (_CONSTANT.sub("Const", line), unnumbered[label])
        for label, line in lines.items()
        if _CONSTANT.sub("Const", line) != unnumbered[label]
    }
    assert not wrong


def test_mistakes_are_refused_in_tensorflows_words(builds: Builds) -> None:
    check(spoken(builds, settings()[0]))


@pytest.mark.cc_long
@pytest.mark.parametrize("how", settings()[1:], ids=str)
def test_words_do_not_depend_on_the_compiler(how: Setting, builds: Builds) -> None:
    check(spoken(builds, how))


def test_every_difference_is_one_and_has_a_reason() -> None:
    for label, (ours, reason) in DIFFERENCES.items():
        assert GOLDEN[label] != ours
        assert reason in REASONS
