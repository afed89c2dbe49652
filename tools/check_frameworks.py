"""Check TensorFlow, PyTorch and JAX, all six operations each, and write docs/reports/*.md.

Usage: python tools/check_frameworks.py [--problems N] [tensorflow torch jax]

Takes about a minute per framework and operation. The reports come from `convgrad check`'s own code; only the heads of
the pages are written here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from convgrad import __version__
from convgrad._apps.cli import info
from convgrad._bridges.peers import FRAMEWORKS
from convgrad._compiler import jit
from convgrad.testing import Report, check_op

ROOT = Path(__file__).resolve().parent.parent
OPS = tuple(
    f"{prefix}conv2d{suffix}"
    for prefix in ("", "depthwise_")
    for suffix in ("", "_backprop_input", "_backprop_filter")
)
TITLES = {name: row.title for name, row in FRAMEWORKS.items()}
PAGES = {"tensorflow": "tensorflow.md", "torch": "pytorch.md", "jax": "jax.md"}
CALLED = {
    "tensorflow": "Eager, on the CPU: `tf.nn.conv2d`, `tf.nn.depthwise_conv2d`, `tf.nn.depthwise_conv2d_backprop_*` "
    "and, for the dense gradients, `tf.compat.v1.nn.conv2d_backprop_*`. A `UserWarning` that a combination is not "
    "supported counts as refused.",
    "torch": "On the CPU: `torch.nn.functional.conv2d`, its input padded beforehand where the pads of the two sides "
    "differ, and for the gradients `torch.ops.aten.convolution_backward`, which `backward()` calls. NHWC is a "
    "`channels_last` tensor. Depthwise is `groups=channels`.",
    "jax": "On the CPU, 64-bit types enabled: `jax.lax.conv_general_dilated` with `rhs_dilation` and "
    "`feature_group_count` under `jax.jit`, and `jax.linear_transpose` of it for the gradients. Depthwise is "
    "`feature_group_count=channels`.",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", default=list(TITLES), metavar="FRAMEWORK")
    parser.add_argument("--problems", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.frameworks:
        reports = []
        for op in OPS:
            report = check_op(name, op, problems=given.problems, seed=given.seed, isolate=True)
            print(f"{report.title}: {report.summary()} ({report.seconds:.0f} s)", flush=True)
            for finding in report.findings:
                print(f"  {finding.guess or finding.what} ({finding.evidence})", flush=True)
            reports.append(report)
        path = ROOT / "docs" / "reports" / PAGES[name]
        path.write_text(page(name, reports, given), encoding="utf-8")
    return 0


def page(name: str, reports: list[Report], given: argparse.Namespace) -> str:
    """Return a page: head, summary, one part per operation."""
    lines = [
        f"# {TITLES[name]} {reports[0].version}, checked",
        "",
        f"Written by `python tools/check_frameworks.py --problems {given.problems} --seed {given.seed} {name}` "
        f"with convgrad {__version__} on {info.cpu_name()}, row {jit.host_target().name}; sums of a framework "
        "may differ by CPU. What the properties and the words mean: "
        "[Checking your kernel](../checking-your-kernel.md).",
        "",
        CALLED[name],
        "",
        "| operation | problems | pass | fail | died | refused, in part | findings |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for report in reports:
        counts = [sum(row.status in words for row in report.rows) for words in STATUSES]
        found = "; ".join(finding.guess or finding.what for finding in report.findings) or "none"
        numbers = " | ".join(map(str, (report.problems, *counts)))
        lines.append(f"| `{report.op}` | {numbers} | {found} |")
    lines += ["", "The columns pass to refused count properties.", ""]
    return "\n".join(lines) + "\n" + "\n".join(report.markdown(level=2) for report in reports)


STATUSES = (("pass",), ("FAIL",), ("died",), ("refused", "partly refused"))

if __name__ == "__main__":
    sys.exit(main())
