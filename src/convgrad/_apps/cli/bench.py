"""Time the operations on this machine, beside the frameworks that are installed.

SUITE is a table of problems (depthwise, dense, all) or a question of its own: winograd (fast algorithms against our
direct kernels, with errors), busy (beside a process that spins on a core), step (the first training step of a
network: kernels and time), train (whole training steps in a framework; it has arguments of its own, see
`convgrad bench train --help`); or problems. Without SUITE, --model or --shape, twenty problems of the tables are run.

In the process of each framework it and convgrad take turns call by call; everybody calls twice, the second call is
timed, and results are checked first: 0.25 s for each in 5 rounds, unless said otherwise. Before that the frameworks
are started, all at once, and the speed of this machine's arithmetic and memory is measured, again at the end if that
is more than 10 s later. One problem takes 7 s without peers, 12 with PyTorch and 36 with all three frameworks on two
cores, most of it to import them. Problems are written
[batch x]height x width x channels, then letters: k window (k3 or k1x7), s stride, d dilation, m multiplier
(depthwise), o output channels and g groups (dense), v for VALID padding, p pads, b batch; s2x1 and d1x2 are rows
and columns, p1x1x0x2 top, bottom, left, right. A problem in one line (`conv2d 8x28x28x64 3x3x64x64 strides=2`) says
its operation, dtype and layout itself; @FILE has several.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import problem_lines
from .bench_arguments import OPS, PANELS, QUESTIONS, add_arguments, check_arguments, is_line, words
from .screen import Cell, Screen
from .verb import DONE, INTERRUPTED, NO, Refusal

if TYPE_CHECKING:
    from ..bench.compare import Comparison
    from ..bench.contests import Contest
    from ..bench.layers import Layer
    from ..bench.runner import RunSettings

__all__ = ["EXAMPLES", "NAME", "SUMMARY", "add_arguments", "run"]

NAME = "bench"
SUMMARY = "time suites, networks or your own shapes against other frameworks"
EXAMPLES = """
convgrad bench
convgrad bench 8x56x56x64k3s1o64
convgrad bench 'conv2d_backprop_filter 8x56x56x64 3x3x64x64 strides=2,1 dtype=bfloat16' --peers torch
convgrad bench @recorded.txt
convgrad bench --model mobilenet_v2 --plot mobilenet.svg
convgrad bench --shape 8x56x56x144k3s2 --shape 8x14x14x256k3o256 --peers torch
convgrad bench depthwise --quick --ops dx,dw --save before.json
convgrad bench --compare before.json after.json
convgrad bench --from before.json --plot before.html
convgrad bench dense --filter 'rn50|vgg' --layout NCHW --dtype bfloat16 --threads 1
convgrad bench dense --layout both --peers torch,tf-onednn --rounds 3 --seconds 0.08
convgrad bench --model resnet50 --batch 1,8,32 --layout both
convgrad bench --model list
"""

STEP = ("resnet50", "mobilenet_v2")
"""The networks of `step` unless others are named."""


def run(given: Namespace, screen: Screen) -> int:
    """Measure, or take a saved run; then print, save, compare and draw."""
    check_arguments(given)
    with _switched(given):
        return _run(given, screen)


@contextmanager
def _switched(given: Namespace) -> Iterator[None]:
    """Set the threads and the switch of this process, and the switch of its children."""
    from ..._base.config import SWITCHES
    from ..._base.options import options
    from ..._runtime.threads import threads

    variable = SWITCHES["winograd"].variable
    before = os.environ.get(variable)
    os.environ[variable] = given.winograd
    try:
        with threads(given.threads), options(winograd=given.winograd):
            yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _run(given: Namespace, screen: Screen) -> int:
    from ..bench import saved

    try:
        if given.list or "list" in given.model:
            return _list(given, screen)
        if given.suite in QUESTIONS:
            return _question(given, screen)
        runs = [saved.load_race(path) for path in given.compare or ()]  # before measuring
        if len(runs) < 2:
            runs.append(_results(given, screen))
        _draw(given, runs[-1], screen)
    except ValueError as error:
        raise Refusal(str(error)) from None
    if given.compare:
        _show_changes(screen, *runs)
    else:
        _show(given, screen, runs[-1])
    return _status(runs[-1])


def _problems(given: Namespace) -> list[Layer]:
    """Return what a suite, a filter or shapes name."""
    from ..bench import tables, winograd
    from ..bench.layers import parse

    if given.shape:
        return [parse(text) for text in given.shape]
    if given.suite == "step":
        return []
    suite, quick = given.suite or "all", given.quick or given.suite in (None, "busy")
    if given.suite == "winograd":
        plain = filter(winograd.is_candidate, tables.find_layers("dense", pattern=given.filter))
        problems = list(plain)[: 10 if given.quick else None]
    else:
        problems = tables.find_layers(
            "all" if suite == "busy" else suite, quick=quick, pattern=given.filter
        )
    if not problems:
        raise ValueError(f"no problem matches --filter {given.filter!r}; --list shows them")
    return problems


def _contests(given: Namespace) -> list[Contest]:
    """Return what lines name, and layers beside them; the settings of the run are what they have in common."""
    from ..bench.contests import of_line
    from ..bench.runner import MIXED

    lines = problem_lines.read(given.shape)
    problem_lines.check_memory(lines)
    contests = [of_line(line) for line in lines]
    for name, several in MIXED.items():
        found = {getattr(each, name) for each in contests}
        setattr(given, name, found.pop() if len(found) == 1 else several)
    given.ops = ",".join(dict.fromkeys(each.op for each in contests))
    if given.plot and given.dtype == MIXED["dtype"]:
        raise ValueError("--plot draws problems of one dtype, got several")
    return contests


def _cases(given: Namespace) -> tuple[list[tuple[Layer, str] | Contest], dict[str, Any]]:
    """Return problems with operations, and the layers of networks if there are any."""
    import re

    from ..bench import networks

    if any(map(is_line, given.shape)):
        return [*_contests(given)], {}
    ops = words("ops", given.ops, OPS)
    if not given.model:
        return [(problem, op) for problem in _problems(given) for op in ops], {}
    names = dict.fromkeys(map(networks.find, given.model))
    cases, layers = networks.contests_of(names, given.batch, ops)
    pattern = re.compile(given.filter)
    found = [case for case in cases if pattern.search(case[0].name)]
    if not found:
        raise ValueError(f"no layer matches --filter {given.filter!r}; --list shows them")
    return [*found], layers


def _settings(given: Namespace) -> RunSettings:
    from ..bench.runner import RunSettings

    names = ("dtype", "layout", "threads", "rounds", "seconds", "keep", "warm_malloc")
    more = ("memory", "timeout", "winograd", "below")
    values = {name: getattr(given, name) for name in (*names, *more)}
    return RunSettings(ops=words("ops", given.ops, OPS), **values)


def _results(given: Namespace, screen: Screen) -> dict[str, Any]:
    """Return a saved run, or measure one and save it."""
    from ..bench import peers, report, saved
    from ..bench.runner import measure_all as race

    if given.source:
        return saved.load_race(given.source)
    cases, layers = _cases(given)
    chosen, settings = peers.select(given.peers), _settings(given)
    with screen.long_progress("cases", len(cases)) as advance:
        results = race(cases, chosen, settings, advance)
    results["networks"] = layers
    results["summary"] = report.summarise(results["rows"])
    if given.save:
        saved.save(results, given.save)
    return results


def _show(given: Namespace, screen: Screen, results: dict[str, Any]) -> None:
    from ..bench import report

    if given.suite == "all":
        screen.line(report.page(results))
    else:
        columns, lines = report.table(results["rows"])
        shown = [
            at for at in range(len(columns)) if any(line[at] not in ("-", "") for line in lines)
        ]
        mood = [_mood(row) for row in results["rows"]]
        screen.table(
            [columns[at] for at in shown],
            [
                [Cell(line[at], mood[n]) if columns[at] == "ratio" else line[at] for at in shown]
                for n, line in enumerate(lines)
            ],
            left=sum(at < report.WORDS for at in shown),
        )
        screen.line(f"\n{report.render(results)}")
    screen.document(results)


def _status(results: dict[str, Any]) -> int:
    wrong = any(row["ours"]["status"] != "ok" for row in results["rows"])
    if wrong or results["errors"]:
        return NO
    return DONE if results["complete"] else INTERRUPTED


def _mood(row: dict[str, Any]) -> Any:
    if not row["ratio"] or 0.97 <= row["ratio"] < 1:
        return "plain"
    return "good" if row["ratio"] >= 1 else "bad"


def _question(given: Namespace, screen: Screen) -> int:
    """Answer one of `QUESTIONS`."""
    from ..bench import busy, networks, peers, saved, step, winograd

    problems, settings = _problems(given), _settings(given)
    chosen = peers.select(given.peers)
    names = [networks.find(name) for name in given.model] or list(STEP)
    total = 2 * len(names) if given.suite == "step" else len(problems) * len(settings.ops)
    with screen.long_progress(given.suite, total) as advance:
        if given.suite == "step":
            where = (given.threads, given.dtype, given.layout)
            results = step.measure_all(names, given.batch[0], *where, advance)
            text = step.render(results)
        elif given.suite == "busy":
            results = busy.measure_all(problems, chosen, settings, advance)
            text = busy.render(results)
        else:
            results = winograd.measure_all(problems, settings, advance)
            text = winograd.render(results)
    about = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    how = f"{given.threads} threads, {given.dtype} {given.layout}"
    screen.line(f"{text}\n\n{about['cpu']}, {how}; {versions}")
    results = {"settings": vars(settings), **results}
    if given.save:
        saved.save(results, given.save)
    screen.document(results)
    return DONE


def _draw(given: Namespace, results: dict[str, Any], screen: Screen) -> None:
    if not given.plot:
        return
    from ..bench import plot

    for path in given.plot:
        plot.draw(results, path, words("panels", given.panels, PANELS))
        screen.note(f"wrote {path}")


def _show_changes(screen: Screen, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Print two runs row by row."""
    from ..bench.compare import compare

    found = compare(old, new)
    if not found.changes:
        raise Refusal("the two runs have no row in common")
    screen.table(
        ("problem", "op", "change", "old ms", "new ms", "old / new", "noise", "peers"),
        _changes(found),
        left=3,
    )
    for line in _conclusions(found):
        screen.line(line)
    screen.document(found.to_dict())


def _changes(found: Comparison) -> list[list[str | Cell]]:
    from ..bench.report import ms

    moods: dict[str, Any] = {"faster": "good", "slower": "bad", "": "plain"}
    return [
        [
            *(each.problem, each.op, Cell(each.verdict, moods[each.verdict])),
            *(ms(each.old_ms), ms(each.new_ms), f"{each.ratio:.2f}", f"{100 * each.noise:.0f}%"),
            "-" if each.peers_ratio is None else f"{each.peers_ratio:.2f}",
        ]
        for each in found.changes
    ]


def _conclusions(found: Comparison) -> list[str]:
    """Say in words what a comparison found."""
    count = {
        verdict: sum(each.verdict == verdict for each in found.changes)
        for verdict in ("faster", "slower")
    }
    lines = [
        "",
        f"geometric mean of old / new: {found.ratio:.3f} over {len(found.changes)} rows; above 1 the new run is faster",
        f"beyond the noise: {count['faster']} faster, {count['slower']} slower",
    ]
    if found.peers_ratio == found.peers_ratio:
        lines.append(f"the peers, unchanged: {found.peers_ratio:.3f}; that much is the machine's")
    for which, names in (("old", found.only_old), ("new", found.only_new)):
        if names:
            more = ", ..." if len(names) > 3 else ""
            lines.append(
                f"only in the {which} run: {len(names)} rows, {', '.join(names[:3])}{more}"
            )
    if found.differs:
        lines.append(f"not the same: {'; '.join(found.differs)}")
    return lines


def _list(given: Namespace, screen: Screen) -> int:
    """Print the networks, or the problems a run would take."""
    from ..._problem.text import write

    if "list" in given.model:
        from ..bench.networks import NETWORKS

        models = {
            name: {
                "title": row.title,
                "layers": len(row.layers(1)),
                "distinct": len(row.counted(1)),
                "depthwise": sum(not problem.is_dense for problem in row.layers(1)),
                "gmacs": sum(p.flops(effective=False) for p in row.layers(1)) / 2e9,
            }
            for name, row in NETWORKS.items()
        }
        columns = ("model", "network", "layers", "distinct", "depthwise", "GMAC per image")
        lines = [
            [name, *(str(row[key]) for key in ("title", "layers", "distinct", "depthwise"))]
            for name, row in models.items()
        ]
        numbers = [f"{row['gmacs']:.2f}" for row in models.values()]
        screen.table(columns, [[*a, b] for a, b in zip(lines, numbers, strict=True)], left=2)
        screen.document(models)
        return DONE
    cases = _cases(given)[0]
    named = [write(case.problem) for case in cases if not isinstance(case, tuple)]
    if named:
        screen.table(("problem",), [(line,) for line in named], left=1)
        screen.document([{"problem": line, "networks": []} for line in named])
        return DONE
    problems = list(dict.fromkeys(case[0] for case in cases if isinstance(case, tuple)))
    screen.table(("problem", "networks"), [(p.name, " ".join(p.labels)) for p in problems], left=2)
    screen.document([{"problem": p.text, "networks": p.labels} for p in problems])
    return DONE
