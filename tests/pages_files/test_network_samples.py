"""enuSpace's pages on MNIST, without their readers, against NumPy; and those with readers, refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.pages.build import build
from convgrad._apps.pages.files import read_page
from convgrad._apps.pages.page import Page
from convgrad._apps.pages.run import PageRun, Results
from convgrad._base.errors import ArgumentError
from pages_files import network_samples as samples
from pages_files.sample_parts import FORMS, store


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> int | str:
    return request.param


def first_run(page: Page, folder: Path, form: int | str) -> Results:
    """Write a page, read it, and run it once."""
    built = build(read_page(store(page, folder, form)))
    assert built.problems == {}
    return PageRun(built).step()


def padded(x: np.ndarray, stride: int) -> np.ndarray:
    """Pad cells for a window of 3 and SAME."""
    total = max((-(-x.shape[1] // stride) - 1) * stride + 3 - x.shape[1], 0)
    sides = (total // 2, total - total // 2)
    return np.pad(x, ((0, 0), sides, sides, (0, 0)))


def windows(x: np.ndarray, stride: int) -> np.ndarray:
    """Return all 3 by 3 windows: image, row, column, row and column in the window, channel."""
    found = np.lib.stride_tricks.sliding_window_view(padded(x, stride), (3, 3), (1, 2))
    return found[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)


def convolved(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    return np.einsum("nhwabc,abck->nhwk", windows(x, 1), f)


def filter_gradient(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    return np.einsum("nhwabc,nhwk->abck", windows(x, 2), g)


def input_gradient(shape: tuple[int, ...], f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return what each input adds to the sum of products with g, by the definition: windows of ones put back."""
    whole = padded(np.zeros(shape), 2)
    for row in range(g.shape[1]):
        for column in range(g.shape[2]):
            part = np.einsum("nk,abck->nabc", g[:, row, column], f)
            whole[:, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += part
    return whole[:, : shape[1], : shape[2]]  # SAME with an even size and stride 2 pads behind only


def pooled(x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def forward() -> dict[str, np.ndarray]:
    """Compute the two layers in float64."""
    x = samples.IMAGES.astype(np.float64).reshape(-1, samples.SIZE, samples.SIZE, 1)
    c1 = convolved(x, samples.F1)
    p1 = pooled(np.maximum(c1, 0))
    c2 = convolved(p1, samples.F2)
    flat = pooled(np.maximum(c2, 0)).reshape(samples.BATCH, -1)
    return {"x": x, "c1": c1, "p1": p1, "c2": c2, "flat": flat, "logits": flat @ samples.W.T + samples.B}  # fmt: skip


def close(got: np.ndarray, wanted: np.ndarray) -> None:
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())


def slope(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True) - np.eye(10)[samples.LABELS]


def test_evaluation(tmp_path: Path, form: int | str) -> None:
    results, wanted = first_run(samples.evaluation(), tmp_path, form), forward()
    close(results["ID_C1"]["output"], wanted["c1"])
    close(results["ID_P1"]["output"], wanted["p1"])
    close(results["ID_C2"]["output"], wanted["c2"])
    close(results["ID_FLAT"]["output"], wanted["flat"])
    close(results["ID_LOGITS"]["z"], wanted["logits"])
    digit = results["ID_DIGIT"]["output"]
    assert digit.dtype == np.int64
    assert digit.tolist() == wanted["logits"].argmax(1).tolist()


def test_training_runs_as_drawn(tmp_path: Path, form: int | str) -> None:
    """The gradients have strides of 2 where the convolutions have 1: no gradient, and what the page says."""
    results, wanted = first_run(samples.training(), tmp_path, form), forward()
    g = slope(wanted["logits"])
    close(results["ID_LOSS"]["backprop"], g)
    close(results["ID_GW"]["product"], g.T @ wanted["flat"])
    half = samples.SIZE // 2
    g2 = (g @ samples.W).reshape(samples.BATCH, half // 2, half // 2, samples.SECOND)
    close(results["ID_DF2"]["output"], filter_gradient(wanted["p1"], g2))
    dp1 = input_gradient(wanted["p1"].shape, samples.F2, g2)
    close(results["ID_DP1"]["output"], dp1)
    df1 = filter_gradient(wanted["x"], dp1)
    close(results["ID_DF1"]["output"], df1)
    close(results["ID_NEW_F1"]["out"], samples.F1 - 0.001 * df1)
    assert results["ID_F1"]["ref"].tobytes() == samples.F1.tobytes()


def test_softmax(tmp_path: Path, form: int | str) -> None:
    results = first_run(samples.softmax(), tmp_path, form)
    w = samples.numbers(6, samples.SIZE**2, 10).astype(np.float64)
    logits = samples.IMAGES @ w + samples.B
    g = slope(logits)
    close(results["ID_LOSS"]["backprop"], g)
    shares = g + np.eye(10)[samples.LABELS]
    # Both outputs are fresh here; on enuSpace's pages the loss is that of an older run.
    close(results["ID_LOSS"]["loss"], -np.log(shares[[0, 1], samples.LABELS]))
    close(results["ID_NEW_W"]["out"], w - 0.001 * (samples.IMAGES.T @ g))


def test_large_values_need_their_dat(tmp_path: Path) -> None:
    path = store(samples.softmax(), tmp_path, 3)
    path.with_suffix(".dat").unlink()
    built = build(read_page(path))
    assert "the numbers of `initvalues` are missing" in built.problems["ID_IMAGE"]
    with pytest.raises(ArgumentError, match=r"cannot run: ID_IMAGE: the numbers of"):
        PageRun(built)


def test_readers_are_refused_by_name(tmp_path: Path, form: int | str) -> None:
    page = samples.reader()
    read = read_page(store(page, tmp_path, form))
    assert [each.symbol for each in read.blocks] == [each.symbol for each in page.blocks]
    assert len(read.wires) == len(page.wires)
    built = build(read)
    for id, symbol in (("ID_QUEUE", "FIFOQueue"), ("ID_READER", "FixedLengthRecordReader")):
        assert built.problems[id] == f"{symbol} is not computed here"
    assert built.problems["ID_NAME"].startswith("`val` is a text")
    assert "ID_IMAGE" in built.problems and "ID_SESSION" in built.problems
    with pytest.raises(ArgumentError, match="FIFOQueue is not computed here"):
        PageRun(built)
