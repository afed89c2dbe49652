"""Fold the news fragments of `changelog.d` into CHANGELOG.md: `python tools/changelog.py 0.2.0 2031-05-17`.

A section has a heading per kind of change and, below it, one per subject. Fragments that come after it was written are
folded into it: run the same command again. Sentences that stand there, also those edited by hand, stay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "fixed", "removed")
OTHER = "Operations"
# A fragment belongs to the subject of the first word of its name that is found here, else to the operations.
SUBJECTS = {
    OTHER: (),
    "PyTorch": ("torch", "accelerate", "fuse"),
    "JAX": ("jax",),
    "TensorFlow": ("tensorflow",),
    "Keras": ("keras",),
    "Dask": ("dask", "chunks"),
    "Graphs, pages and the studio": ("graph", "graphs", "page", "studio"),
    "C++ and packs": ("cc", "cpp", "pack", "packs"),
    "Command line": ("bench", "cache", "check", "command", "explain", "info", "run"),
    "Speed and memory": ("speed", "memory", "winograd"),
    "Examples and pages": ("example", "examples", "docs"),
    "Building": ("build", "dist", "wheel"),
}

Section = dict[str, dict[str, list[str]]]
"""Kind, subject, entries."""


def subject_of(topic: str) -> str:
    """Return the heading a fragment goes under.

    >>> subject_of("jax-examples"), subject_of("half")
    ('JAX', 'Operations')
    """
    for word in topic.split("-"):
        for subject, words in SUBJECTS.items():
            if word in words:
                return subject
    return OTHER


def parse(body: str) -> Section:
    """Return what a section says; a line that is neither heading nor entry belongs to the entry above it.

    >>> parse("### Added\\n\\n- NCHW.\\n\\n#### JAX\\n\\n- All of it,\\n  and more.\\n")
    {'Added': {'Operations': ['NCHW.'], 'JAX': ['All of it,\\n  and more.']}}
    """
    found: Section = {}
    kind, subject = "", OTHER
    for line in filter(str.strip, body.splitlines()):
        if line.startswith("### "):
            kind, subject = line.removeprefix("### "), OTHER
        elif line.startswith("#### "):
            subject = line.removeprefix("#### ")
        elif line.startswith("- "):
            found.setdefault(kind, {}).setdefault(subject, []).append(line.removeprefix("- "))
        else:
            found[kind][subject][-1] += "\n" + line
    return found


def folded(section: Section, fragments: dict[str, str]) -> Section:
    """Return a section with the sentences of fragments, file name to text, at the ends of their subjects."""
    more: Section = {
        kind: {subject: [*entries] for subject, entries in subjects.items()}
        for kind, subjects in section.items()
    }
    for name, text in sorted(fragments.items()):
        topic, kind, _ = name.rsplit(".", 2)
        subjects = more.setdefault(kind.capitalize(), {})
        entries, sentence = subjects.setdefault(subject_of(topic), []), " ".join(text.split())
        if sentence not in entries:
            entries.append(sentence)
    return more


def text_of(version: str, date: str, section: Section, words: str = "") -> str:
    """Return the text of one version, after what it says first. Where operations are all there is they need no heading.

    >>> print(text_of("0.2.0", "2031-05-17", folded({}, {"layout.added.md": "NCHW is quick."})))
    ## 0.2.0 (2031-05-17)
    <BLANKLINE>
    ### Added
    <BLANKLINE>
    - NCHW is quick.
    <BLANKLINE>
    """
    lines = [f"## {version} ({date})", "", *([words, ""] if words else [])]
    for kind in in_order(section, [kind.capitalize() for kind in KINDS]):
        lines += [f"### {kind}", ""]
        for subject in in_order(section[kind], SUBJECTS):
            if list(section[kind]) != [OTHER]:
                lines += [f"#### {subject}", ""]
            lines += [*(f"- {entry}" for entry in section[kind][subject]), ""]
    return "\n".join(lines)


def in_order(names: Iterable[str], order: Iterable[str]) -> Iterator[str]:
    """Yield names in a known order, those it does not know at the end."""
    known, here = list(order), list(names)
    yield from (name for name in known if name in here)
    yield from (name for name in here if name not in known)


def with_news(page: str, version: str, date: str, fragments: dict[str, str]) -> str:
    """Return the changelog with fragments in the section of a version, which is made if it is not there."""
    heading = re.compile(rf"^## {re.escape(version)} \(.*\)\n", re.MULTILINE)
    found = heading.search(page)
    head, mark, rest = page.partition("\n## ")
    if not found:
        return f"{head}\n{text_of(version, date, folded({}, fragments))}{mark}{rest}"
    after = page.find("\n## ", found.end())
    end = after if after >= 0 else len(page)
    words, first, changes = page[found.end() : end].partition("### ")
    news = text_of(version, date, folded(parse(first + changes), fragments), words.strip())
    return page[: found.start()] + news + page[end:]


def fold(root: Path, version: str, date: str) -> None:
    """Fold the fragments of a clone into its changelog, and delete them."""
    paths = [path for path in (root / "changelog.d").glob("*.md") if path.name != "README.md"]
    unknown = [path.name for path in paths if path.name.split(".")[-2] not in KINDS]
    if unknown:
        sys.exit(
            f"the last part of the name before .md must be one of {', '.join(KINDS)}: {unknown}"
        )
    page = root / "CHANGELOG.md"
    fragments = {path.name: path.read_text(encoding="utf-8") for path in paths}
    news = with_news(page.read_text(encoding="utf-8"), version, date, fragments)
    page.write_text(news, encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) != 3 or not all(sys.argv):
        sys.exit(__doc__)
    fold(ROOT, *sys.argv[1:])
