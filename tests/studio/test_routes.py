"""Every question the browser may ask, answered as the contract says."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import numpy as np
import pytest

import convgrad
from convgrad._apps.pages.blocks import OURS
from convgrad._apps.studio import api, gallery
from studio_pages import SQUARE, constant, convolution, page


def test_every_route_is_tried_here():
    source = Path(__file__).read_text("utf-8")
    for _, path, _ in api.ROUTES:
        assert path.partition("(")[0].rstrip("/") in source, path


def test_start_tells_blocks_gallery_and_dtypes(studio):
    start = studio.get("/api/start")
    assert start["version"] == convgrad.__version__
    assert start["page"] is None and start["file"] is None
    assert {block["type"] for block in start["blocks"]} == set(OURS)
    assert "DT_BFLOAT16" in start["dtypes"]
    (conv,) = (block for block in start["blocks"] if block["type"] == "Conv2D")
    assert conv["group"] == "convolutions"
    assert conv["inputs"][0] == {"name": "input", "list": False, "literal": True}
    settings = {each["name"]: each for each in conv["settings"]}
    assert settings["padding"]["choices"] == ["SAME", "VALID", "EXPLICIT"]
    assert settings["strides"] == {
        "name": "strides",
        "kind": "ints",
        "default": "1,1,1,1",
        "choices": None,
    }
    attributes = {each["name"]: each for each in conv["attributes"]}
    assert attributes["data_format_"]["choices"] == ["NHWC", "NCHW"]
    assert attributes["dilations_"]["default"] == "{1,1,1,1}"
    assert attributes["use_cudnn_on_gpu_"]["choices"] == ["true", "false"]


def test_health_has_one_boot(studio):
    assert studio.get("/api/health") == studio.get("/api/health")
    assert studio.get("/api/health")["ok"] is True


def test_check_tells_shapes_and_problems(studio):
    document = convolution(strides="1,2,2,1", padding="SAME")
    document["blocks"].append({"id": "r", "type": "Relu"})
    answer = studio.post("/api/check", page=document)
    assert answer["blocks"]["c"]["tensors"] == {
        "output": {"dtype": "DT_FLOAT", "shape": [1, 3, 3, 2]}
    }
    assert answer["blocks"]["c"]["problem"] is None
    assert "features" in answer["blocks"]["r"]["problem"]
    assert answer["ms"] >= 0 and answer["notes"] == []


def test_check_of_500_blocks_is_quick(studio):
    blocks, wires = [("b0", "Const", {"val": "{1.0f,2.0f}"})], []
    for at in range(1, 500):
        blocks.append((f"b{at}", "Square"))
        wires.append(f"b{at - 1}.{'output' if at == 1 else 'y'} > b{at}.x")
    document = page(*blocks, wires=";".join(wires))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        answer = studio.post("/api/check", page=document)
        times.append(time.perf_counter() - start)
    assert answer["blocks"]["b499"]["tensors"]["y"]["shape"] == [2]
    assert min(times) < 0.1, times  # 20 ms on a quiet machine


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        ((["x", "output"], ["c", "input"]), None),  # the filter is open still
        ((["v", "output"], ["c", "input"]), "4-dimensional"),
        ((["n", "output"], ["c", "input_"]), "no input pin"),
        ((["x", "nothing"], ["c", "input"]), "no output pin"),
        ((["b", "output"], ["c", "input"]), "bool"),
        ((["c", "output"], ["c", "input"]), "circle"),
        ((["x", "output"], ["full", "filter"]), "`filter`"),
        ((["f", "output"], ["full", "filter"]), None),  # takes the place of the wire there
    ],
)
def test_fits(studio, wire, why):
    document = page(
        ("x", "Const", constant(range(16), [1, 4, 4, 1])),
        ("f", "Const", constant(range(4), [2, 2, 1, 1])),
        ("v", "Const", constant([1, 2], [2])),
        ("n", "Const", constant([1, 2], [2], "DT_INT32")),
        ("b", "Const", constant([True], [1, 1, 1, 1], "DT_BOOL")),
        ("c", "Conv2D", {"strides": "1,1,1,1", "padding": "VALID"}),
        ("full", "Conv2D", {"strides": "1,1,1,1", "padding": "VALID"}),
        wires="x.output > full.input; f.output > full.filter",
    )
    answer = studio.post("/api/fits", page=document, wire={"from": wire[0], "to": wire[1]})
    assert answer["fits"] is (why is None), answer
    assert why is None or why in answer["why"]


def test_a_run_gives_summaries_tensors_and_traces(studio):
    run = studio.run(SQUARE)
    status = studio.ended(run)
    assert status["state"] == "done" and status["problem"] is None, status
    assert status["step"] == status["steps"] == 1
    assert set(status["ms"]) >= {"y"}
    summary = status["results"]["y"]["y"]
    assert summary["values"] == [1.0, 4.0, 9.0]
    assert (summary["min"], summary["max"]) == (1, 9)
    assert summary["mean"] == pytest.approx(14 / 3)
    assert sum(summary["histogram"]["counts"]) == 3
    assert len(summary["histogram"]["edges"]) == len(summary["histogram"]["counts"]) + 1
    code, content, headers = studio.raw("GET", f"/api/run/{run}/tensor?block=y&pin=y")
    assert code == 200 and headers["X-Shape"] == "3" and headers["X-Dtype"] == "DT_FLOAT"
    assert np.frombuffer(content, "<f4").tolist() == [1, 4, 9]
    trace = studio.post(f"/api/run/{run}/trace", block="y", pin="y", index=[2])
    assert trace["value"] == trace["sum"] == 9
    assert trace["terms"][0]["parts"] == [
        {"pin": "x", "block": "x", "source_pin": "output", "index": [2], "value": 3.0}
    ]
    assert studio.post(f"/api/run/{run}/cancel") == {"state": "done"}


def test_until_runs_a_block_and_what_is_before_it(studio):
    document = page(
        ("x", "Const", {"val": "{1.0f}"}),
        ("y", "Square"),
        ("z", "Square"),
        ("broken", "Relu"),
        wires="x.output > y.x; y.y > z.x",
    )
    status = studio.ended(studio.run(document, until="y"))
    assert set(status["results"]) == {"x", "y"} and status["problem"] is None
    status = studio.ended(studio.run(document, until="broken"))
    assert status["state"] == "failed" and "features" in status["problem"]
    assert studio.refused("/api/run", page=document, until="nobody")[0] == 400


def test_values_given_with_a_run(studio):
    document = page(
        ("x", "Placeholder", {"dtype": "DT_FLOAT"}), ("y", "Square"), wires="x.output > y.x"
    )
    status = studio.ended(studio.run(document))
    assert status["state"] == "failed" and "placeholder 'x'" in status["problem"]
    value = {"dtype": "DT_FLOAT", "shape": [2], "data": [3, 4]}
    status = studio.ended(studio.run(document, seed_values={"x": value}))
    assert status["results"]["y"]["y"]["values"] == [9, 16]
    assert studio.refused("/api/run", page=document, seed_values={"y": value})[0] == 400


def test_explain(studio):
    document = convolution(strides="1,1,1,1", padding="SAME")
    answer = studio.post("/api/explain", page=document, block="c")
    assert answer["document"]["operation"] == "conv2d"
    assert answer["document"]["output_shape"] == [1, 6, 6, 2]
    assert answer["text"].startswith("conv2d, float32")
    assert studio.refused("/api/explain", page=document, block="x")[0] == 400
    assert studio.refused("/api/explain", page=document, block="q")[0] == 400


@pytest.mark.parametrize(
    ("language", "suffix"), [("python", ".py"), ("cpp", ".cpp"), ("svg", ".svg")]
)
def test_export(studio, language, suffix):
    answer = studio.post("/api/export", page=SQUARE, language=language)
    assert answer["name"] == f"test{suffix}" and "Square" in answer["source"]


def test_export_refuses_what_cannot_be_exported(studio):
    assert studio.refused("/api/export", page=SQUARE, language="rust")[0] == 400
    broken = page(("r", "Relu"))
    assert "features" in studio.refused("/api/export", page=broken, language="python")[1]
    huge = page(("v", "Variable", {"shape": "{100000,100000}", "initvalues": "1"}))
    assert "too many" in studio.refused("/api/export", page=huge, language="python")[1]


def test_import_of_our_own_page(studio):
    data = base64.b64encode(json.dumps(SQUARE).encode()).decode()
    answer = studio.post("/api/import", name="a/b.json", data=data, dat=None)
    assert answer["page"] == {**SQUARE, "blocks": answer["page"]["blocks"]}
    assert answer["notes"] == []


@pytest.mark.parametrize("entry", gallery.ENTRIES, ids=lambda entry: entry.name)
def test_the_gallery_builds(studio, entry):
    document = studio.get(f"/api/gallery/{entry.name}")
    answer = studio.post("/api/check", page=document)
    assert not [each for each in answer["blocks"].values() if each["problem"]], answer
    assert document["name"]
    corners = [tuple(block["at"]) for block in document["blocks"]]
    assert len(set(corners)) == len(corners)


def test_save_needs_a_file(studio):
    status, error = studio.refused("/api/save", page=SQUARE)
    assert status == 409 and "without a file" in error


def test_save_goes_to_the_file(file_studio):
    assert file_studio.post("/api/save", page=SQUARE) == {"saved": "page.json"}
    written = file_studio.server.studio.file
    assert json.loads(written.read_text("utf-8"))["blocks"][1]["type"] == "Square"
    assert [path.name for path in written.parent.iterdir()] == ["page.json"]
    assert file_studio.get("/api/start")["page"] == SQUARE
    assert file_studio.refused("/api/save", page={"format": "other"})[0] == 400
    assert json.loads(written.read_text("utf-8"))["name"] == "test"


def test_feed(studio):
    import io

    stream = io.BytesIO()
    np.save(stream, np.arange(3, dtype=np.int32))
    data = base64.b64encode(stream.getvalue()).decode()
    tensor = studio.post("/api/feed", name="x.npy", data=data)["tensor"]
    assert tensor["dtype"] == "DT_INT32" and tensor["shape"] == [3]
    document = page(("x", "Const", {"val": tensor}))
    assert studio.ended(studio.run(document))["results"]["x"]["output"]["values"] == [0, 1, 2]


def test_files_of_the_built_page(studio):
    for path in ("/", "/index.html", "/?token=abc"):
        status, content, headers = studio.raw("GET", path)
        assert status == 200 and content == b"<!doctype html>studio"
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; img-src")
    status, _, headers = studio.raw("GET", "/assets/app.js")
    assert status == 200 and headers["Content-Type"].startswith("text/javascript")


def test_without_a_built_page_the_address_says_how_to_get_one(file_studio):
    if file_studio.server.static:
        pytest.skip("the page is built here")
    status, content, _ = file_studio.raw("GET", "/")
    assert status == 503 and b"make studio" in content
