"""Each example runs as a reader runs it, in a process of its own, and its check can fail."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import convgrad

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = [
    "dask_digits.py",
    "dask_sharpen.py",
    "deconvolution.py",
    "demo.py",
    "digits.py",
    "digits_graph.py",
    "gradient_check.py",
    "moving_from_tf1.py",
    "same_bits.py",
]
PYTORCH = ["torch_digits.py", "torch_finetune.py"]  # run by tests/pytorch/test_examples.py
JAX = ["jax_digits.py"]  # run by tests/jax_bridge/test_examples.py
TENSORFLOW = ["tensorflow_digits.py"]  # run by tests/tensorflow_bridge/test_examples.py
KERAS = ["keras_digits.py"]  # run by tests/keras_bridge/test_examples.py


def run(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(EXAMPLES / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(convgrad.__file__).parents[1]),  # the one under test
            "CONVGRAD_OPT_LEVEL": "2",  # trainings, as users run them: kernels compute for longer than they compile
        },
    )


def imported(example: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import an example, where a process of its own would cost seconds of imports."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(example)


def picture_size(file: Path) -> tuple[int, int]:
    """Width and height out of a PNG's header, which also proves that it is one."""
    head = file.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR"
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_every_script_is_known() -> None:
    """A new example must be added to these tests."""
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(
        [*SCRIPTS, *PYTORCH, *JAX, *TENSORFLOW, *KERAS, "layers.py"]
    )


@pytest.mark.parametrize("script", [*SCRIPTS, *PYTORCH, *JAX, *TENSORFLOW, *KERAS, "layers.py"])
def test_docstring_and_imports(script: str) -> None:
    """The docstring says how to run it; extras and frameworks are imported where they are used, not at the top."""
    tree = ast.parse((EXAMPLES / script).read_text(encoding="utf-8"))
    text = ast.get_docstring(tree) or ""
    assert "python examples/" in text
    top = {
        name.split(".")[0]
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
    }
    examples = {"layers", "digits", "deconvolution"}
    assert top <= {*sys.stdlib_module_names, "numpy", "convgrad", *examples}


@pytest.mark.long
def test_digits_are_learnt_and_drawn(tmp_path: Path) -> None:
    """Piped, there is no bar and no escape sequence."""
    for extra in ("sklearn", "matplotlib"):
        pytest.importorskip(extra)
    done = run("digits.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" and "\x1b" not in done.stdout and "\r" not in done.stdout
    rows = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+)% +([\d.]+)% ", done.stdout, re.MULTILINE)
    assert [int(row[0]) for row in rows] == list(range(1, 21))
    assert float(rows[-1][1]) < 0.1 < 1 < float(rows[0][1])  # the loss fell
    assert float(rows[-1][3]) >= 97
    assert f"verdict: ok, {rows[-1][3]}% of the test images" in done.stdout
    assert picture_size(tmp_path / "digits.png") == (1080, 456)


def test_digits_fail_where_too_little_is_learnt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One epoch is too few, and the exit status says so. The same seed gives the same numbers, another one others."""
    pytest.importorskip("sklearn")
    digits = imported("digits", monkeypatch)
    monkeypatch.setattr(digits, "draw", lambda curve, file: None)
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1"])
    assert digits.main() == 1
    verdict = capsys.readouterr().out.splitlines()[-1]
    first, second, other = (digits.train(1, 0.02, seed)[0] for seed in (0, 0, 1))
    assert verdict.startswith(f"verdict: NOT LEARNT, {first[2]:.2%} of the test images")
    assert first == second != other


@pytest.mark.long
def test_digits_are_learnt_as_a_graph(tmp_path: Path) -> None:
    """Through symbolic gradients, to the accuracy of the training whose gradients are written by hand."""
    pytest.importorskip("sklearn")
    done = run("digits_graph.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+)% ", done.stdout, re.MULTILINE)
    assert len(rows) == 20
    assert float(rows[-1][1]) < 0.1 and float(rows[-1][2]) >= 97


def test_a_graph_fails_where_too_little_is_learnt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    example = imported("digits_graph", monkeypatch)
    monkeypatch.setattr(sys, "argv", ["digits_graph.py", "--epochs", "1"])
    assert example.main() == 1
    assert "verdict: NOT LEARNT" in capsys.readouterr().out


def test_weights_have_the_published_digest(tmp_path: Path) -> None:
    """The one of the contract of sums, which docs/sums.md tells; it was computed without kernels."""
    done = run("same_bits.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    digest = done.stdout.split()[-1]
    assert digest in (EXAMPLES.parent / "docs" / "sums.md").read_text(encoding="utf-8")


def test_gradients_agree(tmp_path: Path) -> None:
    done = run("gradient_check.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("   ok\n") == 4 and "verdict: ok" in done.stdout


def test_a_wrong_gradient_is_found(tmp_path: Path) -> None:
    """The forgotten dilation is detected, and only what it spoils is blamed."""
    done = run("gradient_check.py", "--break", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith("verdict: WRONG, depthwise\n")


def test_every_mistake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    check = imported("gradient_check", monkeypatch)
    spoilt = {
        "dilation": ["depthwise"],
        "padding": ["x"],
        "slope": ["bias", "pointwise", "depthwise", "x"],
        "bias": ["bias"],
    }
    assert {mistake: check.check(mistake, 1) for mistake in check.MISTAKES} == spoilt


def test_the_tf1_snippet_is_moved(tmp_path: Path) -> None:
    done = run("moving_from_tf1.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as documented") == 6 and "verdict: ok" in done.stdout


@pytest.mark.peers
def test_the_tf1_snippet_against_tensorflow(tmp_path: Path) -> None:
    """The original runs where TensorFlow is; only its dilated gradients differ."""
    pytest.importorskip("tensorflow")
    done = run("moving_from_tf1.py", "--compare", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as documented") == 10
    assert done.stdout.count("WRONG: dilations ignored") == 2


@pytest.mark.long
def test_the_photograph_is_sharpened(tmp_path: Path) -> None:
    for extra in ("sklearn", "PIL", "matplotlib"):
        pytest.importorskip(extra)
    done = run("deconvolution.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    gained = re.search(r"sharpened .* ([+-][\d.]+) dB", done.stdout)
    assert gained and float(gained.group(1)) >= 5
    assert picture_size(tmp_path / "deconvolution.png") == (1300, 410)


def test_a_photograph_left_blurred_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for extra in ("sklearn", "PIL"):
        pytest.importorskip(extra)
    deconvolution = imported("deconvolution", monkeypatch)
    monkeypatch.setattr(deconvolution, "draw", lambda images, kernel, file: None)
    monkeypatch.setattr(sys, "argv", ["deconvolution.py", "--steps", "2"])
    assert deconvolution.main() == 1
    assert "NOT GOOD ENOUGH" in capsys.readouterr().out


@pytest.mark.long
def test_an_image_in_chunks_is_sharpened(tmp_path: Path) -> None:
    """A small one, in chunks along rows and columns. No store is left behind."""
    for extra in ("sklearn", "PIL", "matplotlib", "dask", "zarr"):
        pytest.importorskip(extra)
    done = run(
        "dask_sharpen.py",
        *("--megapixels", "1.26", "--width", "4200", "--folder", ".", "--plot", "a.png"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 x 4200 pixels in 3 colours, 15 MB, 12 chunks" in done.stdout
    gained = re.search(r"sharpened .* ([+-][\d.]+) dB", done.stdout)
    assert gained and float(gained.group(1)) >= 2.5
    assert re.search(r"memory +\d+ MB at most in this process", done.stdout)
    assert picture_size(tmp_path / "a.png") == (1300, 410)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_an_image_in_chunks_is_what_numpy_gives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Chunks that meet anywhere leave no seam: the same numbers as without chunks."""
    for extra in ("sklearn", "PIL", "dask", "zarr"):
        pytest.importorskip(extra)
    example = imported("dask_sharpen", monkeypatch)
    monkeypatch.setattr(example, "CHUNK", (2, 37, 50, 1))
    sharp, kernel = example.scene(90, 101), example.motion(7)
    assert sharp.numblocks == (2, 3, 3, 1)
    y = np.asarray(example.blur(sharp, kernel))
    np.testing.assert_allclose(y, example.blur(np.asarray(sharp), kernel), rtol=1e-6)
    found = example.sharpen(example.blur(sharp, kernel), kernel, 3, example.Stores(tmp_path))
    x = y
    for length in example.step_lengths(3):
        x = x - np.float32(length) * example.blur_adjoint(example.blur(x, kernel) - y, kernel)
    np.testing.assert_allclose(np.asarray(found), x.clip(0, 1), atol=2e-6)


def test_an_image_in_chunks_left_blurred_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for extra in ("sklearn", "PIL", "dask", "zarr"):
        pytest.importorskip(extra)
    example = imported("dask_sharpen", monkeypatch)
    arguments = ["dask_sharpen.py", "--megapixels", "0.2", "--steps", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert example.main() == 1
    assert "NOT GOOD ENOUGH" in capsys.readouterr().out


def tiny_training(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The digits on workers, with a network of one block: what is left of a step is mostly Dask's own time."""
    for extra in ("sklearn", "distributed"):
        pytest.importorskip(extra)
    example, layers = imported("dask_digits", monkeypatch), imported("layers", monkeypatch)
    monkeypatch.setattr(
        example,
        "build",
        lambda random: [
            layers.Conv(random, 3, 1, 8),
            layers.Normalize(8),
            layers.Relu(),
            layers.DepthwiseConv(random, 8, 2),
            layers.PoolAndClassify(random, 8),
        ],
    )
    return example


@pytest.mark.long
def test_digits_on_workers_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    example = tiny_training(monkeypatch)
    (first, before, after), (second, *_) = (example.train(workers, 3) for workers in (1, 2))
    assert first == second and after < before


def test_digits_in_chunks_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients and averages of one step, on threads, against the layers on arrays of NumPy."""
    import dask

    example = tiny_training(monkeypatch)
    random = np.random.default_rng(5)
    x, y = random.random((240, 8, 8, 1), np.float32), random.integers(0, 10, 240)
    ours, plain = (example.build(np.random.default_rng(6)) for _ in range(2))
    with dask.config.set(scheduler="threads"):
        scores = example.gradients(ours, x, y)
    digits = imported("digits", monkeypatch)
    expected = digits.predict(plain, x, training=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    _, g = digits.cross_entropy(expected, y)
    for layer in reversed(plain):
        g = layer.backward(g)
    assert example.digest(ours) == example.digest(plain)
    for here, there in zip(ours, plain, strict=True):
        for a, b in zip(here.gradients, there.gradients, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ours[1].variance, plain[1].variance, rtol=1e-5)


def test_other_bits_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = tiny_training(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["dask_digits.py", "--compare"])
    for last, found, verdict in ((1.0, str, "OTHER BITS"), (3.0, lambda _: "a", "NOT LEARNT")):
        runs = lambda workers, steps, a=found, b=last: (a(workers), 2.0, b)  # noqa: E731
        monkeypatch.setattr(example, "train", runs)
        assert example.main() == 1
        assert verdict in capsys.readouterr().out


@pytest.mark.dask_long
def test_digits_on_one_two_and_three_workers(tmp_path: Path) -> None:
    """The whole network, ten steps."""
    pytest.importorskip("sklearn")
    done = run("dask_digits.py", "--compare", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(set(re.findall(r"weights (\w{32})", done.stdout))) == 1
    assert done.stdout.count("10 steps") == 3


@pytest.mark.parametrize(
    "name", ["conv", "pointwise", "depthwise", "strided", "normalize", "relu", "classify"]
)
def test_the_layers_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network with a slightly wrong gradient still learns: only finite differences tell."""
    layers = imported("layers", monkeypatch)
    random = np.random.default_rng(3)
    layer: Any = {
        "conv": lambda: layers.Conv(random, 3, 2, 3),
        "pointwise": lambda: layers.Conv(random, 1, 2, 3),
        "depthwise": lambda: layers.DepthwiseConv(random, 2, 1),
        "strided": lambda: layers.DepthwiseConv(random, 2, 2),
        "normalize": lambda: layers.Normalize(2),
        "relu": layers.Relu,
        "classify": lambda: layers.PoolAndClassify(random, 2),
    }[name]()
    names = [n for n, v in vars(layer).items() if any(v is p for p in layer.parameters)]
    for attribute in names:  # float64, and no number that is 0 or 1 by its first value
        value = getattr(layer, attribute)
        setattr(layer, attribute, value + random.uniform(0.1, 0.9, value.shape))

    x = random.standard_normal((2, 4, 5, 2))
    g = random.standard_normal(layer.forward(x, True).shape)
    found = [layer.backward(g), *layer.gradients]
    assert len(found) == 1 + len(names)
    for gradient, array in zip(found, [x, *(getattr(layer, n) for n in names)], strict=True):
        slopes = np.empty_like(array)
        for index in np.ndindex(array.shape):
            value, losses = array[index], []
            for step in (1e-5, -1e-5):
                array[index] = value + step
                losses.append(np.sum(g * layer.forward(x, True)))
            array[index] = value
            slopes[index] = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)
