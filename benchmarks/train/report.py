"""A run that trained, as tables and sentences for people."""

from __future__ import annotations

from typing import Any

from convgrad._apps.bench.layers import Layer
from convgrad._apps.bench.panels import layer_name
from convgrad._apps.bench.report import ms

from . import ratios
from .configurations import AGAIN
from .frameworks import TITLES, TRAININGS
from .ratios import Row

LAYER_COLUMNS = ("layer", "part", "times", "native ms", "ours ms", "ratio", "lost ms per step")
WRONG = 1e-4
"""Relative difference between a layer of ours and the native one from which it is called wrong."""


def heading(results: dict[str, Any], model: str) -> str:
    """Name the model and what it was trained on."""
    how = results["settings"]
    counts = {row.get("parameters") for row in results["rows"] if row["model"] == model}
    counts.discard(None)
    size = f", {counts.pop():,} parameters" if counts else ""
    return f"{TITLES.get(model, model)}, {how['image']}x{how['image']}, batch {how['batch']}{size}"


def columns(results: dict[str, Any], model: str) -> list[str]:
    """Return the heads of `table`; parts of a step have columns where somebody could time them."""
    parts = _parts(ratios.timed(results["rows"], model))
    measured = ("faults", "peak MB", "others", "ratio", "quartiles")
    return ["configuration", "step ms", "quartiles", *parts, *measured]


def table(results: dict[str, Any], model: str) -> list[list[str]]:
    """Return the cells of `columns` for each configuration of a model that was timed."""
    rows = ratios.timed(results["rows"], model)
    wanted = TRAININGS[results["settings"]["framework"]].reference
    reference = ratios.find(rows, wanted) or next(iter(rows), None)
    return [_cells(row, reference, _parts(rows)) for row in rows]


def _parts(rows: list[Row]) -> tuple[str, ...]:
    return ratios.PARTS if any(ratios.has_parts(row) for row in rows) else ()


def _cells(row: Row, reference: Row | None, parts: tuple[str, ...]) -> list[str]:
    step = ratios.spread(ratios.steps(row))
    assert step is not None  # rows without turns were left out
    faults, others = ratios.middle(row, "faults"), ratios.middle(row, "others")
    peak = row["peak_bytes"]
    cells = [row["label"], ms(step.median), f"{ms(step.low)} {ms(step.high)}"]
    cells += [ms(ratios.part(row, name)) if ratios.has_parts(row) else "-" for name in parts]
    cells.append("-" if faults is None else f"{faults:,.0f}")
    cells.append("-" if peak is None else f"{peak / 1e6:,.0f}")
    cells.append("-" if others is None else f"{100 * others:.0f}%")
    if row is reference:
        return [*cells, "reference", ""]
    ratio = None if reference is None else ratios.spread(ratios.paired(reference, row))
    if ratio is None:  # no round had both
        return [*cells, "-", ""]
    return [*cells, f"{ratio.median:.2f}", f"{ratio.low:.2f} {ratio.high:.2f}"]


def conclusions(results: dict[str, Any], model: str) -> list[str]:
    """Say in words what the table of a model shows, and who is missing in it and why."""
    rows = ratios.timed(results["rows"], model)
    lines = []
    share = ratios.disturbed(rows)
    if share is not None:
        lines.append(
            f"DISTURBED: other programs had up to {100 * share:.0f}% of the processors; believe no ratio of this run"
        )
    for each in results["comparisons"]:
        if each["model"] != model:
            continue
        spread = f"{each['median']:.2f} ({each['low']:.2f} to {each['high']:.2f})"
        if each["what"] == "control":
            lines.append(
                f"{each['base']} / {each['other']}, which are equal: {spread}; that much is noise"
            )
        else:
            lines.append(
                f"{each['other']}: {spread} times as fast as the best native, {each['base']}"
            )
    lines += [
        f"{row['label']}: WRONG, its first loss is {row['losses'][0]:.6g}"
        for row in ratios.odd_losses(rows)
    ]
    for row in results["rows"]:
        if row["model"] == model and row["status"] != "ok":
            after = f" after {len(row['turns'])} rounds" if row["turns"] else ""
            lines.append(f"{row['label']} failed{after} and is left out: {row['reason']}")
    return lines


def layer_table(found: dict[str, Any]) -> list[list[str]]:
    """Return the cells of `LAYER_COLUMNS` for what is still slower than native."""
    return [
        [
            layer_name(as_layer(each.layer)),
            each.part,
            str(each.layer["count"]),
            ms(each.native_ms),
            ms(each.ours_ms),
            f"{each.ratio:.2f}",
            ms(each.lost_ms),
        ]
        for each in ratios.slower(found["rows"])
    ]


def layer_conclusions(results: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Say what the slower layers cost a step, and what all convolutions take."""
    if found["status"] != "ok":
        return [f"the convolutions of {found['model']} were not timed: {found['reason']}"]
    rows, lost = found["rows"], ratios.slower(found["rows"])
    sum_ms = sum(each.lost_ms for each in lost)
    step = ratios.best(ratios.timed(results["rows"], found["model"]), "ours", memory=True)
    share = ""
    if step is not None:
        spread = ratios.spread(ratios.steps(step))
        assert spread is not None
        share = f", {100 * sum_ms / spread.median:.1f}% of the step of {step['label']}"
    lines = [
        f"{len(lost)} of {2 * len(rows)} parts of {len(rows)} distinct convolutions are slower than native by more "
        f"than {100 * (ratios.SLOWER - 1):.0f}%: {ms(sum_ms)} ms per step{share}"
    ]
    for name, (native, ours) in ratios.layer_sums(rows).items():
        lines.append(
            f"all convolutions, {name}: native {ms(native)} ms, ours {ms(ours)} ms, ratio {native / ours:.2f}"
        )
    wrong = [row for row in rows if not row["error"] <= WRONG]  # NaN too
    lines += [
        f"{as_layer(row).text}: WRONG, it differs from native by {row['error']:.1e}"
        for row in wrong
    ]
    return lines


def as_layer(row: Row) -> Layer:
    """Return a timed convolution as a layer, whose text `convgrad bench` takes."""
    batch, channels, height, width = row["input"]
    outputs, inputs, kernel_h, kernel_w = row["filter"]
    groups = row["groups"]
    is_depthwise = groups == channels and inputs == 1 and groups > 1
    return Layer(
        batch,
        height,
        width,
        channels,
        kernel_h,
        kernel_w,
        stride=tuple(row["stride"]),
        dilation=tuple(row["dilation"]),
        multiplier=outputs // channels if is_depthwise else 1,
        outputs=0 if is_depthwise else outputs,
        groups=1 if is_depthwise else groups,
        padding=(_both(row["padding"][0]), _both(row["padding"][1])),
    )


def _both(pads: Any) -> tuple[int, int]:
    """Return the cells before and after; one number stands for both."""
    before, after = (pads, pads) if isinstance(pads, int) else pads
    return before, after


def footer(results: dict[str, Any]) -> str:
    """Say how to read the tables, and what they were measured on."""
    how, about = results["settings"], results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    load = [f"{(each or [0.0])[0]:.1f}" for each in (about["load_before"], about["load"])]
    return (
        f"One process per configuration; {how['rounds']} rounds of turns in random order, {how['steps']} timed steps "
        "each after one that is not.\n"
        "step ms: median and quartiles over all steps. faults: page faults per step. peak MB: of the process.\n"
        "others: share of the processors that other programs had during its turns.\n"
        "ratio: the reference / this one, round by round; above 1 it is faster than the reference.\n"
        f"memory: with glibc's settings that keep freed blocks. {AGAIN}: a second process, to see the noise.\n\n"
        f"{about['cpu']}, {about['cpus']} CPUs, {how['threads']} threads; {about['system']}\n"
        f"{versions}\n"
        f"load average {load[0]} before, {load[1]} after"
    )
