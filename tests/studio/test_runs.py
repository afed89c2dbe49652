"""Runs: live, cancelled, too long, too large, killed; the studio survives all of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from convgrad._apps.pages.build import build
from convgrad._apps.pages.document import from_json
from convgrad._apps.pages.run import PageRun
from convgrad._apps.studio import child, gallery
from convgrad._apps.studio.runs import MOST_KEPT, MOST_RUNNING, Limits
from studio_pages import SQUARE, endless, page

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")


def pid_of(studio, run: str) -> int:
    return studio.server.studio.runs.find(run).process.child.pid


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_long_run_tells_how_far_it_is_and_is_cancelled(studio):
    run = studio.run(endless())
    since, seen = 0, []
    while len(seen) < 3 or not seen[-1]["curves"]:
        seen.append(studio.get(f"/api/run/{run}?since={since}"))
        assert seen[-1]["state"] == "running", seen[-1]
        since = seen[-1]["version"]
    assert seen[-1]["step"] > 0 and seen[-1]["steps"] == 1_000_000
    assert len(seen[-1]["curves"]["loop"]) >= 1
    pid = pid_of(studio, run)
    start = time.monotonic()
    assert studio.post(f"/api/run/{run}/cancel") == {"state": "cancelled"}
    assert time.monotonic() - start < 5
    status = studio.ended(run)
    assert status["state"] == "cancelled" and status["problem"] is None
    assert has_ended(pid)
    assert studio.raw("GET", f"/api/run/{run}/tensor?block=x&pin=output")[0] == 404


def test_a_gradient_is_traced_through_tensors_no_block_shows(studio):
    document = page(
        ("x", "RandomNormal", {"shape": "1,4,4,1", "dtype": "DT_FLOAT", "attrs": "seed_ = 1"}),
        ("f", "Variable", {"shape": "{3,3,1,1}", "dtype": "DT_FLOAT", "initvalues": "0.5"}),
        ("c", "Conv2D", {"strides": "1,1,1,1", "padding": "SAME"}),
        ("s", "Square"),
        ("l", "L2Loss"),
        ("g", "AddSymbolicGradients"),
        ("u", "ApplyGradientDescent", {"alpha": "0.01"}),
        ("check", "GradientCheck"),
        wires="x.output > c.input; f.ref > c.filter; c.output > s.x; s.y > l.t; l.output > g.outputs; f.ref > g.inputs;"
        "f.ref > u.var; g.grad_outputs.0 > u.delta; l.output > check.y; f.ref > check.x",
    )
    run = studio.run(document, steps=2)
    assert studio.ended(run)["state"] == "done"
    ask = f"/api/run/{run}/trace"
    found = studio.post(ask, block="g", pin="grad_outputs[0]", index=[1, 2, 0, 0])
    assert found["total"] == 16 and found["sum"] == pytest.approx(found["value"], rel=1e-4)
    assert found["terms"][0]["parts"][0]["block"] == "x"
    assert found["terms"][0]["parts"][1]["block"] is None  # a node inside the gradients
    found = studio.post(ask, block="u", pin="out", index=[0, 0, 0, 0])
    assert found["sum"] == pytest.approx(found["value"], rel=1e-5)
    found = studio.post(ask, block="check", pin="numeric", index=[0, 0, 0, 0])
    assert found["terms"] == [] and "GradientCheck" in found["formula"]


def test_a_poll_waits_for_news(studio):
    run = studio.run(SQUARE)
    status = studio.ended(run)
    start = time.monotonic()
    assert studio.get(f"/api/run/{run}?since={status['version']}")["state"] == "done"
    assert time.monotonic() - start < 1  # there will be no more news


def test_two_runs_at_once_and_not_more_than_four(studio):
    runs = [studio.run(endless()) for _ in range(MOST_RUNNING)]
    try:
        status, error = studio.refused("/api/run", page=SQUARE, steps=1)
        assert status == 429 and "under way" in error
    finally:
        for run in runs:
            studio.post(f"/api/run/{run}/cancel")
    assert studio.ended(studio.run(SQUARE))["state"] == "done"


@POSIX
def test_a_killed_process_is_a_failed_run(studio):
    run = studio.run(endless())
    while studio.get(f"/api/run/{run}?since=0")["step"] == 0:
        time.sleep(0.05)
    os.kill(pid_of(studio, run), signal.SIGKILL)
    status = studio.ended(run)
    assert status["state"] == "failed" and "SIGKILL" in status["problem"]


def test_a_run_that_takes_too_long_is_ended(brief_studio):
    start = time.monotonic()
    status = brief_studio.ended(brief_studio.run(endless()))
    assert status["state"] == "failed" and "longer than 2 s" in status["problem"]
    assert time.monotonic() - start < 10


@POSIX
@pytest.mark.parametrize("shape", ["20000,20000", "100000,100000,1000"])
def test_a_page_that_takes_all_memory_fails_alone(small_studio, shape):
    document = page(
        ("x", "RandomNormal", {"shape": shape, "dtype": "DT_DOUBLE"}),
        ("v", "Variable", {"shape": f"{{{shape}}}", "initvalues": "1"}),
    )
    for until in ("x", "v"):
        status = small_studio.ended(small_studio.run(document, until=until))
        assert status["state"] == "failed", status
        assert "memory" in status["problem"].lower(), status["problem"]
    assert small_studio.get("/api/health")["ok"] is True


def test_old_runs_give_their_processes_back(studio):
    runs = []
    for _ in range(MOST_KEPT + 2):
        runs.append(studio.run(SQUARE))
        studio.ended(runs[-1])
    assert studio.raw("GET", f"/api/run/{runs[-1]}/tensor?block=y&pin=y")[0] == 200
    assert studio.raw("GET", f"/api/run/{runs[0]}/tensor?block=y&pin=y")[0] == 404
    assert studio.get(f"/api/run/{runs[0]}?since=0")["results"]["y"]["y"]["values"] == [1, 4, 9]


def test_a_problem_of_one_block_does_not_stop_the_others(studio):
    document = page(
        ("x", "Const", {"val": "{4.0f}"}), ("y", "Square"), ("r", "Relu"), wires="x.output > y.x"
    )
    status = studio.ended(studio.run(document))
    assert status["state"] == "done" and status["results"]["y"]["y"]["values"] == [16]
    assert status["problem"].startswith("not computed: r:")


def test_an_empty_page_cannot_run(studio):
    status = studio.ended(studio.run(page()))
    assert status["state"] == "failed" and "no blocks" in status["problem"]


def test_the_digits_learn_on_the_page(studio):
    status = studio.ended(studio.run(studio.get("/api/gallery/digits")))
    assert status["state"] == "done" and status["problem"] is None, status["problem"]
    curve = status["curves"]["training"]
    assert len(curve) == 100 and curve[0] > 2 and curve[-1] < 0.1
    assert status["results"]["accuracy"]["output"]["values"][0] > 0.95


@pytest.mark.parametrize(
    "name", [entry.name for entry in gallery.ENTRIES if entry.name != "digits"]
)
def test_the_gallery_runs(name):
    document = gallery.page(name)
    results = PageRun(build(from_json(document, name))).step()
    silent = ("Loop", "ClientSession")
    assert set(results) == {each["id"] for each in document["blocks"] if each["type"] not in silent}
    if name == "dilated-gradient":
        assert results["ours"]["output"].ravel().tolist() == [3, 10, 9]
        assert results["tensorflow"]["output"].ravel().tolist() == [6, 10, 10]
        assert results["difference"]["z"].ravel().tolist() == [3, 0, 1]
    if name == "gradient-check":
        assert results["to_filter"]["largest_difference"] < 1e-4
        assert results["to_image"]["largest_difference"] < 1e-4


def test_a_limit_longer_than_clocks_count(studio, monkeypatch):
    """It was a traceback on the terminal, and no limit."""
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setattr(studio.server.studio.runs, "limits", Limits(1e11))
    assert studio.ended(studio.run(endless(3)))["state"] == "done"
    assert raised == []


@POSIX
def test_a_system_that_refuses_the_limit_of_memory_still_runs_pages(monkeypatch):
    import resource

    def refuse(*_):
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    child._limit_memory(4 << 30)
