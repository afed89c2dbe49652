"""Run, check or export a page: blocks and wires in a file.

PAGE is a page of ours (.json) or of enuSpace (.svg with its .dat, or .json). Nothing in it is executed but what its
blocks compute, and no file is read that it names.

run    advances the page by --steps and prints, or writes, what its blocks hold then. A step runs every ClientSession
       of the page; a page of ours without one runs all of its blocks. Variables keep their values from step to step.
check  builds the page without running it: blocks, wires, shape and dtype of every tensor, and what is not computed.
       The exit status is 1 if a block has a problem.
export writes the page as a Python program, a C++ program, or a picture.

A tensor is named by its block, `block.pin` or `block.pin[2]`; `block.result_pin` is the same. Placeholders are fed from
files: --feed x=images.npy, or x=data.npz:images.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import said
from ..._base.files import open_regular
from ..graph.spec import Spec, shape_spelled
from ..pages import exports
from ..pages.build import build
from ..pages.built import Built
from ..pages.files import read_page
from ..pages.page import Page
from ..pages.run import PageRun, Results, why_not
from . import archives, operation, sink, sources
from .screen import Cell, Screen
from .verb import DONE, NO, Refusal

NAME = "graph"
SUMMARY = "run, check or export a page of blocks: ours or enuSpace's"
EXAMPLES = """
convgrad graph check page.json
convgrad graph run page.json --json
convgrad graph run training.svg --steps 100 --fetch loss -o out.npz
convgrad graph run page.json --feed x=images.npy --fetch df.output
convgrad graph export page.svg --python -o page.py
convgrad graph export page.json --svg -o page.svg
"""

ACTIONS = ("run", "check", "export")
_MOST_PRINTED = 10_000
"""Elements of a tensor that the JSON document holds; larger ones are for --output."""
_ONLY = {
    "run": ("steps", "fetch", "feed", "output", "force", "threads"),
    "check": (),
    "export": ("python", "cpp", "svg", "output", "force", "fetch"),
}
"""Which options belong to which action."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action, the page, and what each action takes."""
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help="run, check or export")
    parser.add_argument("page", metavar="PAGE", help="the page file")
    run = parser.add_argument_group("run")
    run.add_argument(
        "--steps", type=operation.count, metavar="N", help="how often to step; default 1"
    )
    run.add_argument(
        "--fetch",
        action="append",
        metavar="NAME",
        help="keep only this tensor (may be repeated); also what an exported program computes",
    )
    run.add_argument(
        "--feed",
        action="append",
        metavar="BLOCK=FILE",
        help="an .npy or .npz file for a placeholder",
    )
    operation.add_threads(run)
    language = parser.add_argument_group("export").add_mutually_exclusive_group()
    for name, what in exports.LANGUAGES.items():
        language.add_argument(f"--{name}", action="store_true", help=f"write {what}")
    rest = parser.add_argument_group("output")
    rest.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="run: an .npz file of `block.pin`; export: the program",
    )
    rest.add_argument("--force", action="store_true", help="replace an existing output")


def run(given: Namespace, screen: Screen) -> int:
    """Do what the action says."""
    for option in (option for options in _ONLY.values() for option in options):
        if option not in _ONLY[given.action] and getattr(given, option, None):
            raise Refusal(f"--{option} is not an option of `graph {given.action}`")
    page = read_page(given.page)
    built = build(page)
    if given.action == "check":
        return _check(page, built, screen)
    if given.action == "export":
        return _export(given, page, built, screen)
    return _run(given, page, built, screen)


def _run(given: Namespace, page: Page, built: Built, screen: Screen) -> int:
    target = None
    if given.output:
        if Path(given.output).suffix.lower() != ".npz":
            raise Refusal(f"the output {given.output!r} must end in .npz: it holds several arrays")
        target = sink.check(Path(given.output), force=given.force)
    steps = given.steps or 1
    results: Results = {}
    with operation.threads(given):
        running = PageRun(built, _feeds(given.feed or ()), given.fetch or ())
        with screen.progress("steps", steps) as advance:
            for step in range(1, steps + 1):
                results = running.step()
                advance(1, f"{step} of {steps}")
    if target is not None:
        arrays = {
            f"{id}.{pin}": array for id, pins in results.items() for pin, array in pins.items()
        }
        sink.write_archive(target, arrays, force=given.force)
    _notes(built, screen)
    if built.problems:
        screen.note(f"not computed: {why_not(built)}")
    screen.table(
        ("block", "pin", "tensor", "least", "mean", "largest", "values"),
        [
            (id, pin, str(Spec(array.dtype, array.shape)), *_summary(array))
            for id, pins in results.items()
            for pin, array in pins.items()
        ],
        left=3,
    )
    screen.document(
        {
            "page": page.name,
            "dialect": page.dialect,
            "steps": steps,
            "results": {
                id: {pin: _document(array) for pin, array in pins.items()}
                for id, pins in results.items()
            },
            "not_computed": built.problems,
            "notes": [str(note) for note in built.notes],
            "output": given.output,
        }
    )
    return DONE


def _check(page: Page, built: Built, screen: Screen) -> int:
    specs = built.specs()
    rows = []
    for block in page.blocks:
        if block.id in built.problems:
            rows.append((block.id, block.symbol, Cell(built.problems[block.id], "bad")))
        else:
            tensors = (f"{pin} {spec}" for pin, spec in specs.get(block.id, {}).items())
            rows.append((block.id, block.symbol, Cell(", ".join(tensors) or "-")))
    screen.table(("block", "op", "tensors"), rows, left=3)
    _notes(built, screen)
    count = len(built.problems)
    words = "everything is computed" if not count else f"{count} not computed"
    screen.line(
        f"\n{len(page.blocks)} blocks, {len(page.wires)} wires, {len(built.sessions)} sessions: {words}",
        "bad" if count else "good",
    )
    screen.document(
        {
            "page": page.name,
            "dialect": page.dialect,
            "blocks": [
                {
                    "id": block.id,
                    "type": block.symbol,
                    "at": [block.x, block.y],
                    "computed": block.id in built.outputs,
                    "problem": built.problems.get(block.id),
                    "tensors": {
                        pin: {"dtype": spec.dtype.name, "shape": spec.shape}
                        for pin, spec in specs.get(block.id, {}).items()
                    },
                }
                for block in page.blocks
            ],
            "wires": [
                {
                    "from": [wire.source, wire.source_pin]
                    + ([] if wire.source_index is None else [wire.source_index]),
                    "to": [wire.target, wire.target_pin],
                    "tensor": _wire_text(specs, wire.source, wire.source_pin, wire.source_index),
                }
                for wire in page.wires
            ],
            "not_computed": built.problems,
            "notes": [str(note) for note in built.notes],
        }
    )
    return NO if count else DONE


def _wire_text(
    specs: dict[str, dict[str, Spec]], id: str, pin: str, index: int | None
) -> str | None:
    name = pin if index is None else f"{pin}[{index}]"
    spec = specs.get(id, {}).get(name)
    return None if spec is None else f"{spec.dtype.name}{shape_spelled(spec.shape)}"


def _export(given: Namespace, page: Page, built: Built, screen: Screen) -> int:
    chosen = next((name for name in exports.LANGUAGES if getattr(given, name)), None)
    if chosen is None:
        raise Refusal(f"say what to write: {', '.join(f'--{name}' for name in exports.LANGUAGES)}")
    target = sink.check_text(Path(given.output), force=given.force) if given.output else None
    if chosen != "svg" and built.problems:
        raise Refusal(f"the page cannot be exported: {why_not(built)}")
    source = exports.export(chosen, built, given.fetch or ())
    if target is not None:
        sink.write_text(target, source, force=given.force)
        screen.line(f"{given.output}: {len(source.splitlines()):,} lines")
    else:
        screen.line(source.rstrip("\n"))
    screen.document(
        {"page": page.name, "language": chosen, "source": source, "output": given.output}
    )
    return DONE


def _feeds(given: Any) -> dict[str, AnyArray]:
    found = {}
    for word in given:
        id, equals, file = word.partition("=")
        if not equals or not id or not file:
            raise Refusal(f"--feed takes BLOCK=FILE, got {word!r}")
        found[id] = _array(file)
    return found


def _array(name: str) -> AnyArray:
    """Return an array from an .npy file, or one of an .npz file; nothing in it is unpickled."""
    path, member = sources.split(name)
    try:
        with open_regular(path) as file:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                array: AnyArray = loaded
                return array
            members = loaded.files
            if member is None and len(members) == 1:
                member = members[0]
            if member not in members:
                raise Refusal(f"{path} holds {', '.join(members)}: write {path}:{members[0]}")
            assert loaded.zip is not None  # it is open
            info = loaded.zip.infolist()[members.index(member)]  # in the order of `files`
            return archives.member(f"{path}:{member}", loaded.zip, info).unpacked()
    except FileNotFoundError:
        raise Refusal(f"there is no file {path}") from None
    except (ValueError, EOFError, OSError, MemoryError) as error:
        raise Refusal(f"{path} cannot be read as an array: {said(error)}") from None


def _notes(built: Built, screen: Screen) -> None:
    for note in dict.fromkeys(str(note) for note in built.notes):
        screen.note(f"note: {note}")


def _summary(array: AnyArray) -> tuple[str, str, str, str]:
    values = " ".join(f"{each:.6g}" for each in array.reshape(-1)[:6].astype(np.float64))
    values += " ..." if array.size > 6 else ""
    if not array.size:
        return "-", "-", "-", "none"
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        return f"{wide.min():.6g}", f"{wide.mean():.6g}", f"{wide.max():.6g}", values


def _document(array: AnyArray) -> dict[str, Any]:
    """Return a tensor for a JSON document: all values in C order if there are not too many."""
    wide = array.astype(np.float64) if array.dtype.kind not in "iub" else array
    few = array.size <= _MOST_PRINTED
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "values": wide.reshape(-1).tolist() if few else None,
    }
