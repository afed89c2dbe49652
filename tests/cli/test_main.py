"""What all verbs share: one-line mistakes, exit statuses, JSON, help."""

from __future__ import annotations

import json
import shlex

import pytest

from convgrad._apps.cli import main as command_line
from convgrad._apps.cli.verb import Refusal

COMMANDS = {
    "run": "run conv2d --random 1,4,4,1 --filter-sizes 1,1,1,1",
    "explain": "explain conv2d 1x4x4x1 1x1x1x1",
    "info": "info",
    "cache": "cache stats",
    "completion": "completion bash",
}


def see(verb):
    return f"(see convgrad {verb} --help)"


@pytest.mark.parametrize(("words", "line"), [
    ("", ""),
    ("expalin", "convgrad: there is no verb 'expalin'; did you mean 'explain'? (see convgrad --help)"),
    ("xyzzy", "convgrad: there is no verb 'xyzzy' (see convgrad --help)"),
    ("--jsn", "convgrad: unknown: --jsn (see convgrad --help)"),
    ("info --jsn", "convgrad info: unknown: --jsn " + see("info")),
    ("run conv2", "convgrad run: argument OP: there is no operation 'conv2'; did you mean 'conv2d'? " + see("run")),
    ("explain conv2d 1x2", "convgrad explain: the following arguments are required: FILTER " + see("explain")),
    ("run conv2d --threads x", "convgrad run: argument --threads: 'x' must be a whole number from 1 up " + see("run")),
    ("run conv2d --see 1", "convgrad run: unknown: --see 1 " + see("run")),
])  # fmt: skip
def test_mistakes(convgrad_command, words, line):
    ending = convgrad_command(*words.split())
    assert ending.status == 2
    assert ending.err.rstrip("\n") == line
    assert bool(ending.out) is (words == "")  # without any word, the help


@pytest.mark.parametrize("name", [*command_line.VERBS, *command_line.TWO_WORDS])
def test_help_has_examples_that_parse(convgrad_command, name):
    ending = convgrad_command(*name.split(), "--help")
    assert ending.status == 0 and ending.err == ""
    examples = [
        line.strip() for line in ending.out.partition("examples:")[2].splitlines() if line.strip()
    ]
    assert examples
    for example in examples:
        words = example.split("convgrad ", 1)[1].split(" | ")[0].split(" > ")[0]
        given = command_line._parsed(shlex.split(words))
        assert given.verb == name


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_one_document(convgrad_command, name):
    ending = convgrad_command(*COMMANDS[name].split(), "--json")
    assert ending.status == 0 and ending.err == ""
    assert isinstance(ending.document, dict) and ending.document


@pytest.mark.parametrize(
    "words", ["info --jsn --json", "nonsense --json", "explain conv2d 1x4x4x1 1x1x3x1 --json"]
)
def test_a_refusal_is_a_document_too(convgrad_command, words):
    ending = convgrad_command(*words.split())
    assert ending.status == 2
    assert set(ending.document) == {"error", "kind"}
    assert ending.document["error"] in ending.err


@pytest.mark.parametrize(("error", "status", "word"), [
    (Refusal("no\n  way"), 2, "no way"),
    (MemoryError(), 2, "MemoryError"),
    (FileNotFoundError(2, "No such file", "x"), 2, "No such file"),
    (KeyboardInterrupt(), 130, "interrupted"),
])  # fmt: skip
def test_endings(convgrad_command, monkeypatch, error, status, word):
    from convgrad._apps.cli import info

    def fail(given, screen):
        raise error

    monkeypatch.setattr(info, "run", fail)
    ending = convgrad_command("info")
    assert ending.status == status and ending.out == ""
    assert (
        ending.err.startswith("convgrad info: ")
        and word in ending.err
        and ending.err.count("\n") == 1
    )


def test_no_colour_in_a_pipe(convgrad_command):
    for words in COMMANDS.values():
        assert "\x1b" not in convgrad_command(*words.split()).out


def test_json_and_the_table_agree(convgrad_command):
    words = [
        "explain",
        "depthwise_conv2d_backprop_filter",
        "2x9x9x4",
        "3x3x4x2",
        "--padding",
        "0,1:2,0",
    ]
    story, document = (
        convgrad_command(*words).out,
        json.loads(convgrad_command(*words, "--json").out),
    )
    assert document["pads"] == [[0, 1], [2, 0]] and "pads rows 0+1, columns 2+0" in story
    assert document["formula"] in story
    assert f"* {document['algorithm']}" in story
