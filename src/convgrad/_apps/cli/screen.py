"""What a person or a machine sees: tables, progress, errors, JSON.

On a terminal, and where rich is installed, tables and progress are drawn by it; a pipe and a file get plain text, and
``--json`` gets one document on standard output and nothing else there.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from ..._base.text import aligned, finite

Mood = Literal["plain", "good", "bad", "dim", "strong"]
_STYLES = {"plain": "", "good": "green", "bad": "bold red", "dim": "dim", "strong": "bold"}


NEWS = 20.0
"""Seconds between two signs of life where nobody sees a progress bar."""


class Cell(NamedTuple):
    """A word of a table and how it is meant."""

    text: str
    mood: Mood = "plain"


Advance = Callable[[int, str], None]
"""Takes how much was done since, and what is going on now."""


class Screen:
    """Where a verb prints. With `as_json`, only `document` and errors reach standard output."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._rich = find_spec("rich") is not None

    def line(self, text: str = "", mood: Mood = "plain") -> None:
        """Print a line for people."""
        if self.as_json:
            return
        if self._drawn(sys.stdout) and mood != "plain":
            from rich.console import Console
            from rich.text import Text

            Console(soft_wrap=True).print(Text(text, style=_STYLES[mood]))
        else:
            print(text)

    def note(self, text: str) -> None:
        """Print a line beside the result, on standard error."""
        print(text, file=sys.stderr)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str | Cell]], *, left: int = 1
    ) -> None:
        """Print a table for people; the first `left` columns are words, the others numbers."""
        if self.as_json:
            return
        cells = [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in rows]
        if not self._drawn(sys.stdout):
            texts = [list(columns), *([cell.text for cell in row] for row in cells)]
            print(aligned(texts, range(left)))
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for at, name in enumerate(columns):
            table.add_column(name, justify="left" if at < left else "right", overflow="fold")
        for row in cells:
            table.add_row(*(Text(cell.text, style=_STYLES[cell.mood]) for cell in row))
        Console().print(table)

    def document(self, data: Any) -> None:
        """Print the JSON document, if one was asked for; a number that is not finite becomes null."""
        if self.as_json:
            print(lists_in_lines(json.dumps(finite(data), indent=2)))

    def error(self, where: str, error: BaseException) -> None:
        """Print why the job ended, in one line on standard error, and as JSON if that was asked for."""
        text = " ".join(str(error).split()) or type(error).__name__
        # Words of a command line that are not text come as half characters, which no stream takes.
        text = text.encode(errors="backslashreplace").decode()
        if self.as_json:
            with suppress(OSError):  # nobody takes it, which may be the error to report
                print(json.dumps({"error": text, "kind": type(error).__name__}, indent=2))
        with suppress(OSError):
            print(f"{where}: {text}", file=sys.stderr)

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Advance]:
        """Show how far a long job is, on standard error, if that is a terminal."""
        if not sys.stderr.isatty():
            yield lambda done, text: None
        elif self._rich:
            with _rich_bar(label, total) as advance:
                yield advance
        else:
            with _plain_bar(label, total) as advance:
                yield advance

    @contextmanager
    def long_progress(self, label: str, total: int) -> Iterator[Advance]:
        """Show a bar, or now and then a line where there is no terminal for one."""
        with self.progress(label, total) as bar:
            if sys.stderr.isatty():
                yield bar
                return
            last = time.monotonic()

            def advance(done: int, text: str) -> None:
                nonlocal last
                if time.monotonic() - last > NEWS:
                    last = time.monotonic()
                    self.note(text)

            yield advance

    def _drawn(self, stream: Any) -> bool:
        return self._rich and bool(stream.isatty())


@contextmanager
def _rich_bar(label: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", style="dim"),
    )
    # Drawn by our own calls: a thread that redraws ten times a second would disturb what is measured.
    with Progress(
        *columns, console=Console(stderr=True), transient=True, auto_refresh=False
    ) as bar:
        task = bar.add_task(label, total=total, now="")
        yield lambda done, text: bar.update(task, advance=done, now=text, refresh=True)


@contextmanager
def _plain_bar(label: str, total: int) -> Iterator[Advance]:
    so_far = 0

    def advance(done: int, text: str) -> None:
        nonlocal so_far
        so_far += done
        share = 100 * so_far // max(total, 1)
        print(f"\r\x1b[K{label} {share:3d}% {text}", end="", file=sys.stderr, flush=True)

    try:
        yield advance
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def lists_in_lines(text: str) -> str:
    """Put lists of numbers into one line each; JSON's own indentation gives every number one.

    >>> print(lists_in_lines(json.dumps({"shape": [8, 28], "name": "[ 1"}, indent=2)))
    {
      "shape": [8, 28],
      "name": "[ 1"
    }
    """
    # A line break inside a string would be escaped, so what follows it here is never part of one.
    return re.sub(
        r"\[\n[-+.\deE,\s]+\]", lambda found: f"[{' '.join(found[0][1:-1].split())}]", text
    )
