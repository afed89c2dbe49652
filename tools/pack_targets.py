"""Export networks for every target: sizes, seconds, and whether the bytes are the same again.

Usage: python tools/pack_targets.py [--targets ROW ...] [--markdown FILE]

Each pack is written twice, by processes of their own with different hash seeds, the second time with its problems in
another order. Printed are bytes of code, tables and scratch, seconds of the first export without its self-test, and
whether all files were equal. The exit status is 1 if some were not, or if tables are larger than code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from convgrad._compiler import targets
from convgrad._problem import networks
from convgrad._problem import text as _problem_text

DIGITS = (
    "60x8x8x1k3o16",
    *("60x8x8x16k3", "60x8x8x16k1o32", "60x8x8x32k3s2"),
    *("60x4x4x32k1o64", "60x4x4x64k3", "60x4x4x64k1o64"),
)
"""Layers of examples/digits.py."""
COLUMNS = ("target", "network", "kernels", "code", "tables", "scratch", "seconds", "same bytes")


def lines(network: str) -> list[str]:
    """Return the problems of a network as lines, each once."""
    texts = DIGITS if network == "digits" else networks.NETWORKS[network].texts()
    found = dict.fromkeys(_problem_text.read_lines("\n".join(texts), network))
    return [_problem_text.write(problem) for problem in found]


def export(problems: list[str], out: Path, target: str, seed: str) -> dict[str, Any]:
    """Export in a process of its own and return what it reports."""
    command = [sys.executable, "-m", "convgrad", "export", "-", "-o", str(out)]
    command += ["--name", "net", "--target", target, "--no-self-test", "--json"]
    ended = subprocess.run(
        command,
        input="\n".join(problems),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    if ended.returncode:
        raise SystemExit(f"{target}: {ended.stderr}")
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def digest(folder: Path) -> str:
    """Return a hash of all files of a folder."""
    parts = [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def measure(target: str, network: str) -> tuple[tuple[str, ...], bool]:
    """Return a row of the table, and whether all is well."""
    problems = lines(network)
    shuffled = random.Random(1).sample(problems, len(problems))
    with tempfile.TemporaryDirectory() as place:
        first, second = Path(place, "a"), Path(place, "b")
        report = export(problems, first, target, "1")
        export(shuffled, second, target, "2")
        same = digest(first) == digest(second)
    code, tables = report["code_bytes"], report["table_bytes"]
    sizes = (f"{report['kernels']}", f"{code:,}", f"{tables:,}", f"{report['scratch_bytes']:,}")
    row = (target, network, *sizes, f"{report['seconds']:.1f}", "yes" if same else "NO")
    return row, same and tables <= code


def main() -> int:
    names = [row.name for row in targets.ALL]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--targets", nargs="+", choices=names, default=names)
    parser.add_argument("--networks", nargs="+", default=["mobilenet_v2", "digits"])
    parser.add_argument("--markdown", type=Path, help="write the table there, too")
    given = parser.parse_args()
    page = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    print("\n".join(page))
    well = True
    for network in given.networks:
        for target in given.targets:
            row, fine = measure(target, network)
            well &= fine
            page.append(f"| {' | '.join(row)} |")
            print(page[-1], flush=True)
    if given.markdown is not None:
        given.markdown.write_text("\n".join(page) + "\n")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
