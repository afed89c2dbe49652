"""The examples that need PyTorch, with tiny settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NO_PYTORCH = """
import runpy, sys
sys.modules["torch"] = None
sys.path.insert(0, {folder!r})
runpy.run_path({script!r})
"""


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: a memory setting must not stay in ours."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(convgrad.__file__).parents[1]),
            "OMP_NUM_THREADS": "1",  # tests run side by side, and OpenMP's threads wait in loops
        },
    )


def script(name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch")
    return run("-W", "error::RuntimeWarning", str(EXAMPLES / name), *arguments, folder=folder)


def test_digits_are_learnt_by_both(tmp_path: Path) -> None:
    """The whole training: both reach the accuracy, and begin with the same loss up to rounding."""
    pytest.importorskip("sklearn")
    done = script("torch_digits.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" and "\x1b" not in done.stdout and "\r" not in done.stdout
    assert "8 of 8 layers are computed by convgrad." in done.stdout
    rows = re.findall(r"^ +(\d+) +([\d.]+) +[\d.]+ +([\d.]+) +[\d.]+$", done.stdout, re.MULTILINE)
    assert [int(row[0]) for row in rows] == list(range(1, 21))
    assert abs(float(rows[0][1]) - float(rows[0][2])) < 0.05
    assert max(float(rows[-1][1]), float(rows[-1][2])) < 0.1
    shares = re.findall(r"^(PyTorch|convgrad) +([\d.]+)% of the test images", done.stdout, re.M)
    assert [name for name, _ in shares] == ["PyTorch", "convgrad"]
    assert min(float(share) for _, share in shares) >= 97
    assert done.stdout.endswith("verdict: ok\n")


def test_digits_fail_where_too_little_is_learnt(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    done = script("torch_digits.py", "--epochs", "1", "--rate", "1e-6", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "verdict: NOT LEARNT, 97% are required" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "53 layers are computed by convgrad. Memory: freed memory is kept"),
        (("--no-memory",), "53 layers are computed by convgrad. Memory: None."),
        (("--native",), "All layers are computed by PyTorch. Memory: freed memory is kept"),
    ],
    ids=["ours", "no-memory", "native"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the memory setting is glibc's")
def test_finetuning_runs_in_both_parts(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """An epoch each on a few images: too little to learn, and the exit status says so."""
    tiny = ("--epochs", "1", "--images", "32", "--size", "32")
    done = script("torch_finetune.py", *tiny, *options, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert words in done.stdout
    assert done.stdout.count("epoch     loss   seconds") == 2
    assert "NOT LEARNT, 90% are required" in done.stdout


def test_finetuning_begins_with_a_checkpoint_and_freezes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The head is exchanged for one of another size; frozen parts keep their numbers, the others do not."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import torch_finetune as example

    before = example.MobileNetV2(1000)
    assert sum(each.numel() for each in before.parameters()) == 3_504_872
    file = tmp_path / "checkpoint.pt"
    torch.save(before.state_dict(), file)
    trained = []
    inner = example.train
    monkeypatch.setattr(
        example, "train", lambda model, *rest: (trained.append(model), inner(model, *rest))[1]
    )
    tiny = ["--epochs", "1", "--images", "16", "--size", "32", "--no-memory"]
    monkeypatch.setattr(sys, "argv", ["torch_finetune.py", "--weights", str(file), *tiny])
    assert example.main() == 1
    assert "Learning disc" not in capsys.readouterr().out
    (model,) = trained
    assert type(model.features[0][0]) is convgrad.torch.Conv2d
    assert model.classifier[1].out_features == len(example.NEW)
    now = dict(model.named_parameters())
    was = {name: value for name, value in before.named_parameters() if name.startswith("features")}
    changed = {int(name.split(".")[1]) for name in was if not torch.equal(was[name], now[name])}
    assert changed == set(range(example.FROZEN, len(model.features)))


@pytest.mark.parametrize("name", ["torch_digits.py", "torch_finetune.py"])
def test_without_pytorch_it_says_so(name: str, tmp_path: Path) -> None:
    source = NO_PYTORCH.format(folder=str(EXAMPLES), script=str(EXAMPLES / name))
    done = run("-c", source, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"{name}: PyTorch is not installed: pip install torch\n"


@pytest.mark.parametrize("name", ["torch_digits.py", "torch_finetune.py"])
def test_help(name: str, tmp_path: Path) -> None:
    done = script(name, "--help", folder=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith(f"usage: {name}")
    assert "--epochs" in done.stdout


def test_weights_have_the_published_digest(tmp_path: Path) -> None:
    """The same as with NumPy's arrays: the example exits with 1 where it is another one."""
    done = script("same_bits.py", "--torch", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("torch: ")
