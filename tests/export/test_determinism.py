"""Equal calls write equal bytes: in any process, with any hash seed, in any order, into any folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad

LINES = [
    "conv2d 2x14x14x16 3x3x16x24",
    "conv2d_backprop_input 2x14x14x16 3x3x16x24 dtype=float16",
    "conv2d_backprop_filter 2x14x14x16 3x3x16x24",
    "depthwise_conv2d 2x12x12x8 3x3x8x2 strides=2",
    "depthwise_conv2d_backprop_filter 2x8x12x12 3x3x8x2 data_format=NCHW",
    "1x10x10x8k3s2",
    "conv2d 0x4x4x2 1x1x2x3",
    "conv2d 2x14x14x16 3x3x16x24 bias=output",
    "batch_norm_act.forward 2x81x12 NHWC float32 relu given=weight,bias epsilon=0.001",
    "conv2d 2x9x9x8 3x3x8x12 | batch_norm_act.forward relu given=weight,bias epsilon=0.001",
]
PROGRAM = (
    "import convgrad, sys; convgrad.export(sys.argv[2:], sys.argv[1], name='same', target='avx2')"
)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("first") / "pack"
    convgrad.export(LINES, folder, name="same", target="avx2")
    return contents(folder)


@pytest.mark.parametrize("seed", [pytest.param("0", marks=pytest.mark.cc_long), "4711"])
def test_another_process_writes_the_same(tmp_path, written, seed):
    shuffled = [LINES[at] for at in (8, 3, 6, 1, 9, 5, 0, 4, 2, 7)]
    source = str(Path(convgrad.__file__).parents[1])
    subprocess.run(
        [sys.executable, "-c", PROGRAM, "elsewhere/pack", *shuffled, *shuffled[:2]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source},
        check=True,
    )
    assert contents(tmp_path / "elsewhere" / "pack") == written


@pytest.mark.cc_long
def test_another_way_to_name_the_problems_writes_the_same(tmp_path, written):
    """As one text, with pads in numbers, and from the list that a pack has with it."""
    convgrad.export("\n".join(LINES), tmp_path / "text", name="same", target="avx2")
    assert contents(tmp_path / "text") == written
    listed = tmp_path / "same.txt"
    listed.write_bytes(written["same.txt"])
    convgrad.export(listed, tmp_path / "listed", name="same", target="avx2")
    assert contents(tmp_path / "listed") == written


def test_nothing_of_this_machine_is_in_a_pack(written):
    here = [str(Path.home()), str(Path(convgrad.__file__).parent), os.uname().nodename]
    for name, data in written.items():
        for word in here:
            assert len(word) < 6 or word.encode() not in data, (name, word)


def test_the_target_and_the_caches_are_written_down(tmp_path, written):
    convgrad.export(LINES[0], tmp_path / "small", name="same", target="avx2", l1=8192, l2=65536)
    header = (tmp_path / "small/same.h").read_text()
    assert "caches of 8192 65536 8388608 bytes" in header
    assert "8192, 65536, 8388608," in (tmp_path / "small/same.c").read_text()
    assert b"caches of 32768 524288 8388608 bytes" in written["same.h"]
