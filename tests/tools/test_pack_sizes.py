"""`tools/pack_sizes.py`, and what it is for: the tables of a network are no larger than its code."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from convgrad._apps.bench.layers import OPS, parse
from convgrad._apps.bench.networks import training_step
from convgrad._compiler.targets import find

TOOL = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "pack_sizes.py"))
DIGITS = (
    "8x8x1k3o16",
    "8x8x16k3",
    "8x8x16k1o32",
    "8x8x32k3s2",
    "4x4x32k1o64",
    "4x4x64k3",
    "4x4x64k1o64",
)
"""The layers of `examples/digits.py`."""


@pytest.mark.long
@pytest.mark.parametrize("row", ["avx2", "neon"])
@pytest.mark.parametrize("network", ["digits", "mobilenet_v2", "resnet50"])
def test_tables_are_no_larger_than_code(network, row):
    """Those of ResNet-50 were 7% larger than its code."""
    if network == "digits":
        wanted = [(parse(f"{text}b32"), op) for text in DIGITS for op in OPS]
    else:
        wanted = [*training_step(network, 1)]
    sizes = TOOL["Sizes"](find(row))
    plans = [each.plan for each in sizes.find(wanted, "NHWC")]
    assert 0 < TOOL["tables"](plans) <= sizes.code(plans)


def test_lines_of_layers_and_their_worst_problems(capsys):
    asked = ["--layers", "1x9x9x8k3o16", "--rows", "avx2", "--layouts", "NHWC", "--worst", "2"]
    assert TOOL["main"](asked) == 0
    head, line, _, story, *rest = capsys.readouterr().out.splitlines()
    assert tuple(head.split()) == TOOL["COLUMNS"] and line.split()[:4] == [
        "layers",
        "avx2",
        "NHWC",
        "-",
    ]
    assert story.endswith("0 have more table than code.") and len(rest) <= 3


def test_an_unknown_network_is_named(capsys):
    with pytest.raises(SystemExit):
        TOOL["main"](["alexnot"])
    assert "NETWORK must be one of" in capsys.readouterr().err
