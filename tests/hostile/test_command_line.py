"""Command lines nobody means: every verb with words spoiled, dropped, doubled and swapped.

Whatever is typed ends with a status that --help names, at most a few lines on standard error, and no traceback. A file
that stands there stays as it is, and no half-written one is left.
"""

from __future__ import annotations

import json
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.cli.main import main

BASES = [
    "run conv2d --input x.npy --filter f.npy --strides 2 -o y.npy",
    "run depthwise_conv2d_backprop_filter --input x.npy --out-backprop x.npy --filter-sizes 3,3,4,1 -o d.npz",
    "run conv2d_backprop_input --input-sizes 1,6,5,4 --filter f.npy --out-backprop y0.npz:g --padding 0,0:1,1:1,1:0,0",
    "run conv2d --random 1,6,5,4 --filter-sizes 2,2,4,3 --dtype bfloat16 --seed 3 --json",
    "explain depthwise_conv2d 1x8x8x4 3x3x4x1 --strides 2 --threads 1",
    "explain conv2d 1,8,8,4 1,1,4,4 --padding VALID --data-format NHWC --json",
    "bench --from saved.json --compare saved.json --json",
    "bench --model list",
    "bench --shape 1x4x4x8k3 --list",
    "check nobody:nothing conv2d --problems 5 --property stride --dtype half",
    "check ./absent.so:symbol depthwise_conv2d --seconds 1 --json",
    "info --json",
    "cache stats --json",
    "cache warm --shape 1x4x4x8k3 --batch 1",
    "completion bash",
]
WORDS = [
    *("", " ", "-", "--", "---", "=", ":", ",", "x", "0", "-1", "1.5", "1e3", "nan", "inf", "None", "True"),
    *("9" * 30, "9" * 5000, "1,2", "1,2,3,4,5", "0,0,0,0", "-1,6,5,4", "1,,2", "1x", "SAME", "0,0:1", "é😀", "\udc80"),
    *("absent.npy", "x.npy", "broken.npy", "objects.npy", "empty.npy", ".", "/", "/dev/null", "a/b/c.npy", "x.npy:x"),
    *("conv2d", "--json", "--help=1", "--strides", "--padding=", "--nothing", "-o", "float8", "%s%n", "$(x)", "..."),
]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONVGRAD_CACHE_DIR", str(tmp_path / "cache"))
    np.save("x.npy", np.ones((1, 6, 5, 4), np.float32))
    np.save("f.npy", np.ones((3, 3, 4, 4), np.float32))
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    np.savez("y0.npz", g=np.ones((1, 6, 5, 4), np.float32))
    Path("broken.npy").write_bytes(Path("x.npy").read_bytes()[:90])
    Path("empty.npy").write_bytes(b"")
    Path("saved.json").write_text("{}")
    return tmp_path


def spoiled(pick: random.Random, words: list[str]) -> list[str]:
    words = list(words)
    for _ in range(pick.randrange(1, 4)):
        at = pick.randrange(1, len(words) + 1)
        how = pick.randrange(4)
        if how == 0:
            words.insert(at, pick.choice(WORDS))
        elif at < len(words) and how == 1:
            words[at] = pick.choice(WORDS)
        elif at < len(words) and how == 2:
            del words[at]
        elif at < len(words):
            words.insert(at, pick.choice(words))
    return words


def test_any_words(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pick, endings = random.Random(5), set()
    kept = {path.name: path.read_bytes() for path in files.iterdir() if path.is_file()}
    for number in range(250):
        words = spoiled(pick, BASES[number % len(BASES)].split())
        if "tensorflow" in words or (
            words[:1] == ["bench"] and not {"--from", "--list", "list"} & {*words}
        ):
            continue  # measuring takes long
        try:
            status = main(words)
        except SystemExit as end:  # --help and --version
            status = end.code if isinstance(end.code, int) else 2
        out, err = capsys.readouterr()
        assert status in (0, 1, 2), (words, status)
        assert "Traceback" not in err and err.count("\n") <= 3, (words, err)
        assert bool(err) or status != 2, words
        if "--json" in words and out and "--help" not in words:
            json.loads(out)
        endings.add((words[0], status))
        for name, content in kept.items():
            assert (files / name).read_bytes() == content or "--force" in words, (words, name)
        for path in files.iterdir():
            assert "partial" not in path.name, (words, path.name)
            if path.name in ("y.npy", "d.npz"):
                path.unlink()
    assert {verb for verb, status in endings if status == 0} >= {"run", "explain", "info", "cache"}
    assert {verb for verb, status in endings if status == 2} >= {
        "run",
        "explain",
        "bench",
        "check",
        "cache",
    }


def npy(shape: str, data: bytes) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def test_true_is_no_size(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """True equals 1 and is none: a problem remembered with it broke all later ones of that shape."""
    Path("true.npy").write_bytes(npy("(True, 6, 5, 4)", bytes(480)))
    assert main(["run", "conv2d", "--input", "true.npy", "--filter", "f.npy", "--json"]) == 2
    assert "true.npy is damaged: its shape is [True, 6, 5, 4]" in capsys.readouterr().err
    assert main(["run", "conv2d", "--input", "x.npy", "--filter", "f.npy", "--json"]) == 0


def test_a_packed_file_that_is_too_short(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile("short.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy("(1, 6, 5, 4)", bytes(400)))
    assert main(["run", "conv2d", "--input", "short.npz", "--filter", "f.npy"]) == 2
    assert capsys.readouterr().err.startswith("convgrad run: short.npz:x is truncated")
