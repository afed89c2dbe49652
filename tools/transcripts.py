"""Rerun the commands of docs/command-line.md and write what they print below them.

Usage: python tools/transcripts.py [--only VERB]

A transcript is a block that begins with ```console. Its lines after ``$ `` are commands, all others are output, which
is replaced. Commands run in order in one scratch folder, with a kernel cache of its own, so a file one of them writes
is there for the next. Besides ``convgrad`` a few programs that every system has may stand in a pipe. Output longer than
`LONGEST` lines is cut in the middle, where ``...`` says so; a command can ask for other limits in `LIMITS`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "command-line.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)

LONGEST = 32
LIMITS = {"--ir": 8, "--asm": 12, "--json": 14, "completion": 5, "bench": 60, "check": 60}
"""Most lines for commands with a word: the smallest that applies counts."""

COMMANDS = {
    "bench": [
        "convgrad bench --shape 8x56x56x144k3s2 --shape 8x14x14x256k3o256 --peers torch",
        "convgrad bench --model list",
    ],
    "check": [
        "convgrad check convgrad:depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_filter --problems 500",
        "convgrad check tensorflow depthwise_conv2d_backprop_input --property dilation --problems 200",
    ],
}
"""Commands of sections that have none yet: a block with them is put at the section's end."""


def commands(page: str) -> list[str]:
    """Return all commands of a page.

    >>> commands("```console\\n$ convgrad info\\nconvgrad 1\\n$ ls\\n```\\n")
    ['convgrad info', 'ls']
    """
    return [
        line[2:]
        for block in BLOCK.findall(page)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def cut(text: str, longest: int) -> str:
    """Shorten output: the head, a line with dots and how many lines they stand for, the tail.

    >>> print(cut("a\\nb\\nc\\nd\\ne\\nf", 4))
    a
    b
    ... (3 lines)
    f
    """
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    if len(lines) <= longest:
        return "\n".join(lines)
    tail = min(4, longest // 3)
    head = longest - tail - 1
    left_out = len(lines) - head - tail
    return "\n".join([*lines[:head], f"... ({left_out} lines)", *lines[len(lines) - tail :]])


def run(command: str, folder: Path) -> str:
    """Run a command in the scratch folder and return what a person would see."""
    shim = folder / "bin"
    environment = {
        **os.environ,
        "PATH": f"{shim}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": "",
        "CONVGRAD_CACHE_DIR": "",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder / "work",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # The reader's folder is not ours.
    text = done.stdout.replace(str(folder / "home"), "~").replace(str(folder), "~")
    words = command.split()
    return cut(text, min([LIMITS[word] for word in words if word in LIMITS] or [LONGEST]))


def rewritten(page: str, folder: Path, only: str | None) -> str:
    """Return the page with fresh output in its blocks."""

    def fresh(block: re.Match[str]) -> str:
        headings = HEADING.findall(page[: block.start()])
        if only is not None and only not in headings[-1:]:
            return block.group()
        lines = []
        for command in commands(block.group()):
            print(f"$ {command}", file=sys.stderr)
            lines += [f"$ {command}", *run(command, folder).splitlines()]
        return "```console\n" + "\n".join(lines) + "\n```"

    return BLOCK.sub(fresh, page)


def completed(page: str) -> str:
    """Add the blocks of `COMMANDS` to sections that have none."""
    for verb, lines in COMMANDS.items():
        section = re.search(rf"^## {verb}\n(?:.*\n)*?(?=^## |\Z)", page, re.MULTILINE)
        if section is not None and not BLOCK.search(section.group()):
            block = "```console\n" + "".join(f"$ {line}\n" for line in lines) + "```\n\n"
            page = page[: section.end()].rstrip("\n") + "\n\n" + block + page[section.end() :]
    return page.rstrip("\n") + "\n"


def scratch(folder: Path) -> None:
    """Make the folders, with the example pages, and a `convgrad` that is the one of this checkout."""
    for name in ("bin", "home", "work"):
        (folder / name).mkdir()
    for page in (ROOT / "examples" / "pages").glob("*.json"):
        shutil.copy(page, folder / "work")
    program = folder / "bin" / "convgrad"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m convgrad "$@"\n')
    program.chmod(0o755)


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description="rewrite the transcripts of docs/command-line.md")
    parser.add_argument("--only", metavar="VERB", help="the section of one verb")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    if given.only in COMMANDS:
        page = completed(page)
    with tempfile.TemporaryDirectory() as name:
        scratch(Path(name))
        PAGE.write_text(rewritten(page, Path(name), given.only), encoding="utf-8")


if __name__ == "__main__":
    main()
