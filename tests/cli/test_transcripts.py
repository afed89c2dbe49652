"""The commands of docs/command-line.md can be read by the program, and the tool that reruns them works."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import convgrad
from convgrad._apps.cli.main import VERBS, UsageError, _parsed

ROOT = Path(__file__).resolve().parents[2]
WRONG_ON_PURPOSE = {"convgrad expalin"}


def load():
    spec = importlib.util.spec_from_file_location("transcripts", ROOT / "tools" / "transcripts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load()
PAGE = TOOL.PAGE.read_text(encoding="utf-8")
COMMANDS = TOOL.commands(PAGE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_read(command):
    words = shlex.split(command.split(" | ")[0].split(" > ")[0])
    assert words[0] == "convgrad"
    if command in WRONG_ON_PURPOSE:
        with pytest.raises(UsageError):
            _parsed(words[1:])
    else:
        assert _parsed(words[1:]).verb in (words[1], " ".join(words[1:3]))


def test_every_verb_has_a_section_with_a_transcript():
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    for verb in VERBS:
        assert f"$ convgrad {verb}" in sections[verb], (
            f"docs/command-line.md: no transcript of {verb}"
        )


def test_every_command_has_output():
    """A page that was edited and not rerun has commands one below the other."""
    for block in TOOL.BLOCK.findall(PAGE):
        assert not re.search(r"^\$ .*\n(\$ |\Z)", block, re.MULTILINE), block


def test_rewriting_replaces_output_and_nothing_else(tmp_path):
    page = "# A\n\n```console\n$ convgrad --version\nstale\n```\n\ntext\n\n## bench\n\nwords\n\n## info\n\nmore\n"
    TOOL.scratch(tmp_path)
    once = TOOL.rewritten(page, tmp_path, None)
    assert once == page.replace("stale", f"convgrad {convgrad.__version__}")
    assert TOOL.rewritten(page, tmp_path, "info") == page
    added = TOOL.completed(page)
    assert added.index("$ convgrad bench") < added.index("## info")
    assert TOOL.completed(added) == added
