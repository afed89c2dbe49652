"""Results for people: the table, the means, the losses, the machine. Works from what `runner.measure_all` returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._base.text import aligned
from .layers import parse
from .totals import by_network, times_beside

FLAGS = {
    "W": "our result is WRONG",
    "f": "page faults are over 10% of our time",
    "F": "page faults are over 10% of the best peer's time: its kernel is faster than this (try --warm-malloc)",
    "p": "the best peer had something arranged before the clock started, such as padding its input",
    "n": "median over 1.5x the minimum, for us or the best peer: noisy",
    "x": "a peer gave a wrong result and does not count",
    "r": "a peer refused the case",
    "d": "a peer crashed or did not answer",
}

WORDS = 5
WORST = 8
LIMITS = (0.97, 1.0)
"""Rows below these are counted."""

Row = dict[str, Any]


def render(results: dict[str, Any]) -> str:
    """Return what follows the table, as text."""
    rows: list[Row] = results["rows"]
    parts = [legend(rows), by_network(results)]
    if any(row["ratio"] for row in rows):
        parts += [means(rows, results["settings"]["ops"]), by_part(rows), by_label(rows)]
        parts += [by_peer(rows), losses(rows, results["settings"]["below"])]
    parts += [layouts(rows), faults(rows), most_memory(rows), machine(results), *_ending(results)]
    return "\n\n".join(filter(None, parts))


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """One line per contest, below the titles of the columns; the first `WORDS` columns are words."""
    mixed, dtypes = (len({row[key] for row in rows}) > 1 for key in ("layout", "dtype"))
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("problem", lambda row: row["problem"]),
        ("op", lambda row: row["op"]),
        ("layout", lambda row: row["layout"] if mixed else ""),
        ("dtype", lambda row: row["dtype"] if dtypes else ""),
        ("best peer", lambda row: row["best_peer"] or "-"),
        ("ours ms", lambda row: ms(row["ours"]["min_ms"])),
        ("median", lambda row: ms(row["ours"]["median_ms"])),
        (
            "peer ms",
            lambda row: ms(row["peers"][row["best_peer"]]["min_ms"]) if row["best_peer"] else "-",
        ),
        (
            "median",
            lambda row: (
                ms(row["peers"][row["best_peer"]]["median_ms"]) if row["best_peer"] else "-"
            ),
        ),
        ("ratio", lambda row: f"{row['ratio']:.2f}" if row["ratio"] else "-"),
        ("medians", lambda row: f"{row['median_ratio']:.2f}" if row["ratio"] else "-"),
        ("GF/s", lambda row: f"{row['gflops']:.1f}"),
        ("roof", lambda row: f"{100 * row['roofline_share']:.0f}%"),
        ("first ms", lambda row: ms(row["ours"]["first_ms"])),
        ("extra MB", _extra),
        ("notes", lambda row: row["flags"]),
    ]
    lines = [[show(row) for _, show in columns] for row in rows]
    return [title for title, _ in columns], lines


def legend(rows: Sequence[Row]) -> str:
    """Explain the columns and the flags in use."""
    used = [letter for letter in FLAGS if any(letter in row["flags"] for row in rows)]
    lines = [
        "Everybody calls twice in turn, the second call is timed; we call in the process of each peer. Per row the",
        "lowest of all peers / ours: ratio is of minima, medians of medians; above 1 we are faster.",
        "GF/s and roof leave out padding taps; roof = share of the speed this machine's arithmetic or memory allows.",
        "first ms includes code generation. extra MB = growth of a fresh process by a call, beyond its result.",
        "Peers use the layout they like best.",
    ]
    return "\n".join([*lines, *(f"  {letter}  {FLAGS[letter]}" for letter in used)])


def means(rows: Sequence[Row], ops: Sequence[str]) -> str:
    """Geometric means of the ratio, rows below the limits, and the mean of rows where no peer fought page faults."""
    header = ["geometric mean of ratio", "rows", "minima", *_below_titles(), "medians"]
    lines = [[*header, *_below_titles(), "without F"]]
    found = list(dict.fromkeys(row["layout"] for row in rows))
    for layout in found:
        for op in (*ops, "all"):
            mine = [
                row
                for row in rows
                if row["ratio"] and op in (row["op"], "all") and row["layout"] == layout
            ]
            name = f"{op} {layout}" if len(found) > 1 else op
            lines.append([name, str(len(mine)), *_figures(mine)])
            clean = [row["ratio"] for row in mine if "F" not in row["flags"]]
            lines[-1].append(_number(geometric_mean(clean)))
    return aligned(lines, left=(0,))


def _below_titles() -> list[str]:
    return [f"< {limit:g}" for limit in LIMITS]


def _figures(rows: Sequence[Row]) -> list[str]:
    """The mean and the counts below the limits, of minima, then of medians."""
    shown = []
    for key in ("ratio", "median_ratio"):
        values = [row[key] for row in rows]
        shown.append(_number(geometric_mean(values)))
        shown += [str(sum(value < limit for value in values)) for limit in LIMITS]
    return shown


def part_of(row: Row) -> tuple[str, str]:
    """Return the suite of a row and the part of it that has a figure of its own.

    >>> part_of({"text": "56x56x64k3s1o64b8"}), part_of({"text": "56x56x64k3s2o64b8"})
    (('dense', '3x3 stride 1'), ('dense', 'others'))
    >>> part_of({"text": "56x56x128k3s1o128g32b8"}), part_of({"text": "56x56x64k3s1b8"})
    (('dense', 'groups'), ('depthwise', ''))
    """
    layer = parse(row["text"])
    if not layer.is_dense:
        return "depthwise", ""
    if layer.groups > 1:
        return "dense", "groups"
    plain = (layer.kernel_h, layer.kernel_w, layer.stride, layer.dilation) == (3, 3, 1, 1)
    return "dense", "3x3 stride 1" if plain else "others"


def summarise(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one record per suite, part, layout and operation: means, the lowest row, how many lie below the limits."""
    found: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        if row["ratio"]:
            suite, part = part_of(row)
            for name in filter(None, dict.fromkeys((part, "all"))):
                found.setdefault((suite, name, row["layout"], row["op"]), []).append(row)
    records = []
    for (suite, part, layout, op), mine in found.items():
        lowest = min(mine, key=lambda row: row["ratio"])
        lowest_median = min(mine, key=lambda row: row["median_ratio"])
        records.append(
            {
                "suite": suite,
                "part": part,
                "layout": layout,
                "op": op,
                "rows": len(mine),
                "ratio": geometric_mean([row["ratio"] for row in mine]),
                "median_ratio": geometric_mean([row["median_ratio"] for row in mine]),
                "lowest": lowest["ratio"],
                "lowest_row": lowest["problem"],
                "lowest_median": lowest_median["median_ratio"],
                "lowest_median_row": lowest_median["problem"],
                "below": _below(mine, "ratio"),
                "median_below": _below(mine, "median_ratio"),
            }
        )
    places = {"NHWC": 0, "NCHW": 1, "all": 0, "3x3 stride 1": 1, "others": 2, "groups": 3}
    return sorted(records, key=lambda r: (r["suite"], places[r["layout"]], places[r["part"]]))


def _below(rows: Sequence[Row], key: str) -> dict[str, int]:
    return {str(limit): sum(row[key] < limit for row in rows) for limit in LIMITS}


def by_part(rows: Sequence[Row]) -> str:
    """The records of `summarise` as a table; the lowest of medians stands last."""
    mixed = len({row["layout"] for row in rows}) > 1
    header = ["suite", "part", *(["layout"] if mixed else []), "op", "rows"]
    titles = ["minima", *_below_titles(), "medians", *_below_titles(), "lowest", "where"]
    lines = [
        [
            *(record["suite"], record["part"], *([record["layout"]] if mixed else [])),
            *(record["op"], str(record["rows"])),
            *(_number(record["ratio"]), *map(str, record["below"].values())),
            *(_number(record["median_ratio"]), *map(str, record["median_below"].values())),
            *(_number(record["lowest_median"]), record["lowest_median_row"]),
        ]
        for record in summarise(rows)
    ]
    last = len(header) + len(titles) - 1
    return aligned([[*header, *titles], *lines], left=(*range(len(header) - 1), last))


def by_label(rows: Sequence[Row]) -> str:
    """Geometric means of every network; a layer that several share counts for each."""
    ops = list(dict.fromkeys(row["op"] for row in rows))
    lines = [["network", "rows", *ops, "lowest", "where"]]
    for label in dict.fromkeys(label for row in rows for label in row["labels"]):
        mine = [row for row in rows if row["ratio"] and label in row["labels"]]
        if not mine:
            continue
        lowest = min(mine, key=lambda row: row["ratio"])
        means = (geometric_mean([r["ratio"] for r in mine if r["op"] == op]) for op in ops)
        where = f"{lowest['problem']} {lowest['op']}"
        lines.append([label, str(len(mine)), *map(_number, means), _number(lowest["ratio"]), where])
    return aligned(lines, left=(0, len(lines[0]) - 1)) if len(lines) > 1 else ""


def page(results: dict[str, Any]) -> str:
    """The one-page summary: suites and parts by operation, the worst rows, what was compared on what."""
    rows: list[Row] = results["rows"]
    wrong = [f"{row['problem']} {row['op']}" for row in rows if row["ours"]["status"] != "ok"]
    parts = [
        "Ratio = best peer / convgrad, geometric means of minima and of medians; above 1 we are faster.",
        by_part(rows) if any(row["ratio"] for row in rows) else "No peer was timed.",
    ]
    if any(row["ratio"] for row in rows):
        parts += [by_peer(rows), losses(rows, results["settings"]["below"]), layouts(rows)]
    parts.append(f"Wrong results of ours: {', '.join(wrong) or 'none'} of {len(rows)}")
    parts += [most_memory(rows), machine(results), *_ending(results)]
    return "\n\n".join(filter(None, parts))


def _ending(results: dict[str, Any]) -> list[str]:
    parts = []
    if results["errors"]:
        parts.append("\n  ".join(["Cases convgrad could not do:", *results["errors"]]))
    if not results["complete"]:
        parts.append("Interrupted: the cases after the last row were not measured.")
    return parts


def by_peer(rows: Sequence[Row]) -> str:
    """Each peer alone, and how often it could not be compared."""
    names = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    lines = [
        ["peer", "minima", "medians", "best in", "timed", "wrong", "refused", "failed", "cores"]
    ]
    for name in names:
        mine = [(row, row["peers"][name]) for row in rows if name in row["peers"]]
        timed = [(r, p) for r, p in mine if p["status"] == "ok" and "min_ms" in p]
        ratios = [(p, times_beside(r, p)) for r, p in timed]
        mean = geometric_mean([p["min_ms"] / ours["min_ms"] for p, ours in ratios])
        middle_mean = geometric_mean([p["median_ms"] / ours["median_ms"] for p, ours in ratios])
        cores = sorted(p["cores"] for _, p in timed)
        count = {
            s: str(sum(p["status"] == s for _, p in mine)) for s in ("wrong", "refused", "failed")
        }
        best = sum(row["best_peer"] == name for row, _ in mine)
        middle = f"{cores[len(cores) // 2]:.1f}" if cores else "-"
        means = [_number(mean), _number(middle_mean)]
        lines.append([name, *means, str(best), str(len(timed)), *count.values(), middle])
    return aligned(lines, left=(0,))


def losses(rows: Sequence[Row], below_what: float = 1.0) -> str:
    """The worst rows, and everything below a limit in minima or medians."""
    ranked = sorted((row for row in rows if row["ratio"]), key=_lower)
    mixed = len({row["layout"] for row in rows}) > 1
    below = sum(_lower(row) < below_what for row in ranked)
    lines = [_short(row, mixed) for row in ranked[:WORST]]
    text = "Worst rows, minima (medians):\n" + "\n".join(lines)
    if below > WORST:
        more = "\n".join(_short(row, mixed) for row in ranked[WORST:below])
        text += f"\nOther rows below {below_what:g} in either:\n{more}"
    for key, words in (("ratio", "minima"), ("median_ratio", "medians")):
        counts = ", ".join(f"{sum(r[key] < x for r in ranked)} below {x:g}" for x in LIMITS)
        text += f"\nOf {len(ranked)} rows, {words}: {counts}"
    return text


def _lower(row: Row) -> float:
    return float(min(row["ratio"], row["median_ratio"]))


def layouts(rows: Sequence[Row]) -> str:
    """What our NCHW calls take beside our NHWC calls of the same problem: the same process, in turns."""
    known = [row for row in rows if row.get("to_other_layout")]
    if not known:
        return ""
    lines = [["ours, NCHW / NHWC", "op", "rows", "minima", "medians", "> 1.1", "highest", "where"]]
    found: dict[tuple[str, str], list[Row]] = {}
    for row in known:
        for op in (row["op"], "all"):
            found.setdefault((part_of(row)[0], op), []).append(row)
    for (suite, op), mine in sorted(
        found.items(), key=lambda pair: (pair[0][0], pair[0][1] == "all")
    ):
        pairs = {
            key: [row["to_other_layout"][key] for row in mine] for key in ("min_ms", "median_ms")
        }
        worst = max(mine, key=lambda row: row["to_other_layout"]["median_ms"])
        means = [_number(geometric_mean(values)) for values in pairs.values()]
        above = str(sum(value > 1.1 for value in pairs["median_ms"]))
        highest = _number(worst["to_other_layout"]["median_ms"])
        where = f"{worst['problem']} {worst['op']}"
        lines.append([suite, op, str(len(mine)), *means, above, highest, where])
    return aligned(lines, left=(0, 1, 7))


def faults(rows: Sequence[Row]) -> str:
    """The sentences behind the flags that change how a row should be read, each once."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        for letter, note in zip(row["flags"], row["notes"], strict=True):
            if letter in "WFfx":
                lines.setdefault(note, []).append(f"{row['problem']} {row['op']}")
    listed = [
        f"  {', '.join(where[:3])}{' ...' if len(where) > 3 else ''}: {note}"
        for note, where in lines.items()
    ]
    return "\n".join(["Read with care:", *listed]) if listed else ""


def most_memory(rows: Sequence[Row]) -> str:
    """The call that takes the most memory."""
    known = [row for row in rows if "extra" in row["memory"]]
    if not known:
        reasons = {row["memory"]["reason"] for row in rows if "reason" in row["memory"]}
        return f"Memory was not measured: {'; '.join(sorted(reasons))}" if reasons else ""
    most = max(known, key=lambda row: row["memory"]["extra"])
    extra, result = (most["memory"][key] / 2**20 for key in ("extra", "result"))
    where = f"{most['problem']} {most['op']}"
    return f"Most extra memory: {extra:.1f} MB beside a result of {result:.1f} MB, {where}"


def machine(results: dict[str, Any]) -> str:
    """What it ran on."""
    about, speed, settings = results["machine"], results["speed"], results["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    copy = speed["streams"]["copy"]
    lines = [
        f"{about['cpu']}, {about['cpus']} CPUs, {' '.join(about['features'])}; {about['system']}",
        f"{versions}",
        f"{settings['dtype']} {settings['layout']}, {settings['threads']} threads, {settings['rounds']} rounds, "
        f"{settings['seconds']:g} s each, keep {settings['keep']}, "
        f"peers' malloc {'keeps big blocks' if settings['warm_malloc'] else 'as it is'}, "
        f"winograd {settings['winograd']}",
        f"peak {speed['peak'] / 1e9:.0f} GF/s; copy {copy[0] / 1e9:.0f} GB/s in cache, {copy[-1] / 1e9:.0f} beyond; "
        f"page fault {speed['fault_seconds'] * 1e6:.1f} us; huge pages {about['huge_pages'] or '?'}",
    ]
    pools = {room: pool for row in results["rows"] for room, pool in row.get("pools", {}).items()}
    if pools:
        said = ", ".join(f"beside {room} {pool}" for room, pool in pools.items() if pool)
        lines.append(f"our threads: {said}")
    if about["load"]:
        lines.append(
            f"load average {about['load_before'][0]:.1f} before, {about['load'][0]:.1f} after"
        )
    if results["absent_peers"]:
        lines.append(f"not installed: {', '.join(results['absent_peers'])}")
    return "\n".join(lines)


def geometric_mean(values: Sequence[float]) -> float:
    """NaN of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ms(value: float) -> str:
    """Three figures that matter.

    >>> ms(0.01234), ms(1.234), ms(12.34), ms(1234.5)
    ('0.0123', '1.23', '12.3', '1234')
    """
    if value >= 1000:
        return f"{value:.0f}"
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{min(max(digits, 0), 4)}f}"


def _extra(row: Row) -> str:
    extra = row["memory"].get("extra")
    return "-" if extra is None else f"{extra / 2**20:.1f}"


def _short(row: Row, mixed: bool) -> str:
    peer = row["peers"][row["best_peer"]]
    names = f"{row['problem']} {row['op']}" + (f" {row['layout']}" if mixed else "")
    times = f"{ms(row['ours']['min_ms'])} ms, {row['best_peer']} {ms(peer['min_ms'])}"
    ratios = f"{row['ratio']:.2f} ({row['median_ratio']:.2f})"
    return f"  {ratios}  {names}: {times} {row['flags']}".rstrip()


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
