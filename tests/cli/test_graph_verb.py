"""`convgrad graph`: run, check and export pages, for people and machines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.pages.files import read_page, write_page
from convgrad._apps.pages.page import Page, Value
from pages_files.writing import block, save, wire

EXAMPLE = Path(__file__).parents[2] / "examples" / "pages" / "filter_gradient.json"


def test_run_for_people_and_machines(convgrad_command, folder):
    plain = convgrad_command("graph", "run", EXAMPLE)
    assert plain.status == 0 and "filter_gradient  output  float32[3, 3, 2, 1]" in plain.out
    done = convgrad_command("graph", "run", EXAMPLE, "--steps", 3, "-o", "out.npz", "--json")
    assert done.status == 0
    results = done.document["results"]
    assert set(results) == {"images", "sizes", "gradient", "filter_gradient"}
    assert results["sizes"]["output"] == {"dtype": "int32", "shape": [4], "values": [3, 3, 2, 1]}
    with np.load(folder / "out.npz") as saved:
        assert sorted(saved.files) == sorted(f"{id}.output" for id in results)
        found = saved["filter_gradient.output"]
    assert found.reshape(-1).tolist() == results["filter_gradient"]["output"]["values"]
    again = convgrad_command("graph", "run", EXAMPLE, "-o", "out.npz")
    assert again.status == 2 and "exists; --force replaces it" in again.err


def test_fetch_keeps_what_is_named(convgrad_command):
    done = convgrad_command("graph", "run", EXAMPLE, "--fetch", "filter_gradient", "--json")
    assert set(done.document["results"]) == {"filter_gradient"}
    wrong = convgrad_command("graph", "run", EXAMPLE, "--fetch", "filter_gradeint")
    assert wrong.status == 2 and "there is no block 'filter_gradeint'" in wrong.err


def test_feed(convgrad_command, folder):
    page = read_page(EXAMPLE)
    images = page.block("images")
    images.symbol, images.pins = "Placeholder", {"dtype": Value("DT_FLOAT")}
    write_page(page, folder / "page.json")
    missing = convgrad_command("graph", "run", "page.json")
    assert missing.status == 2 and "placeholder 'images'" in missing.err
    data = np.ones((1, 8, 8, 2), np.float32)
    np.save(folder / "x.npy", data)
    np.savez(folder / "x.npz", a=data, b=data)
    (folder / "broken.npy").write_bytes(b"no array")
    for file in ("x.npy", "x.npz:a"):
        done = convgrad_command("graph", "run", "page.json", "--feed", f"images={file}", "--json")
        assert done.status == 0, done.err
    for word, words in (
        ("images", "--feed takes BLOCK=FILE"),
        ("images=none.npy", "there is no file none.npy"),
        ("images=x.npz", "holds a, b"),
        ("images=broken.npy", "cannot be read as an array"),
        ("imagse=x.npy", "there is no block 'imagse'"),
    ):
        wrong = convgrad_command("graph", "run", "page.json", "--feed", word)
        assert wrong.status == 2 and words in wrong.err and wrong.err.count("\n") == 1, wrong.err


def test_check(convgrad_command, folder):
    good = convgrad_command("graph", "check", EXAMPLE)
    assert good.status == 0 and "5 blocks, 4 wires, 1 sessions: everything is computed" in good.out
    page = read_page(EXAMPLE)
    page.block("filter_gradient").pins["strides"] = Value("1,3,3,1")
    write_page(page, folder / "page.json")
    bad = convgrad_command("graph", "check", "page.json", "--json")
    assert bad.status == 1
    found = {block["id"]: block for block in bad.document["blocks"]}
    assert "`out_backprop` must have 3 rows" in found["filter_gradient"]["problem"]
    assert found["images"]["tensors"] == {"output": {"dtype": "float32", "shape": [1, 8, 8, 2]}}
    assert bad.document["wires"][0]["tensor"] == "float32[1, 8, 8, 2]"
    assert set(bad.document["not_computed"]) == {"filter_gradient", "session"}
    refused = convgrad_command("graph", "run", "page.json")
    assert refused.status == 2 and "`out_backprop` must have 3 rows" in refused.err


def test_export(convgrad_command, folder):
    done = convgrad_command("graph", "export", EXAMPLE, "--python", "-o", "page.py")
    assert done.status == 0
    ran = subprocess.run(
        [sys.executable, "page.py"], capture_output=True, text=True, cwd=folder, check=True
    )
    assert ran.stdout.startswith("filter_gradient:0 float32 [3, 3, 2, 1]")
    cpp = convgrad_command("graph", "export", EXAMPLE, "--cpp")
    assert "ops::DepthwiseConv2dNativeBackpropFilter(" in cpp.out
    picture = convgrad_command("graph", "export", EXAMPLE, "--svg", "--json")
    assert picture.document["source"].startswith("<svg")
    assert convgrad_command("graph", "export", EXAMPLE).status == 2


@pytest.mark.parametrize("form", [3, 4, "json"])
def test_pages_of_enuspace(convgrad_command, folder, form):
    """Run and checked like ours; a block nobody computes refuses by name."""
    page = _enuspace_page()
    path = save(page, folder, form)
    done = convgrad_command("graph", "run", path, "--json")
    assert done.status == 0, done.err
    assert done.document["results"]["ID_MUL"]["product"]["values"] == [19, -3]
    page.blocks.append(block("ID_S", "Switch"))
    page.wires.append(wire("ID_S.output_true > ID_SESSION.fetch_outputs"))
    path = save(page, folder, form)
    refused = convgrad_command("graph", "run", path)
    assert refused.status == 2 and "ID_S: Switch is not computed here" in refused.err
    checked = convgrad_command("graph", "check", path, "--json")
    assert checked.status == 1 and "ID_S" in checked.document["not_computed"]


def _enuspace_page():
    from convgrad._apps.pages.page import Page

    return Page(
        "basic",
        [
            block("ID_A", "Const", val=np.array([[3.0, 2.0], [-1.0, 0.0]])),
            block("ID_B", "Const", val=np.array([[3.0, 5.0]])),
            block("ID_MUL", "MatMul", attrs="transpose_a_ = false;transpose_b_ = true;"),
            block("ID_SESSION", "ClientSession"),
        ],
        [
            wire("ID_A.output > ID_MUL.a"),
            wire("ID_B.output > ID_MUL.b"),
            wire("ID_MUL.product > ID_SESSION.fetch_outputs"),
        ],
    )


def test_options_of_other_actions_are_refused(convgrad_command):
    wrong = convgrad_command("graph", "check", EXAMPLE, "--steps", 2)
    assert wrong.status == 2 and "--steps is not an option of `graph check`" in wrong.err
    assert convgrad_command("graph", "walk", EXAMPLE).status == 2
    missing = convgrad_command("graph", "check", "nowhere.json", "--json")
    assert missing.status == 2 and "there is no such file" in json.loads(missing.out)["error"]


def test_blocks_whose_names_an_archive_cannot_have_keep_their_numbers(convgrad_command, folder):
    """Two ids that were written as one name: the archive had both and NumPy read the last."""
    blocks = [("a_b", "1.0"), ("a:b", "2.0"), ("a\\b", "3.0"), ("..", "4.0"), ("a:b_2", "5.0")]
    page = Page(
        "p", [block(id, "Const", val=text) for id, text in blocks], [], 0, 0, "convgrad", []
    )
    write_page(page, folder / "page.json")
    done = convgrad_command("graph", "run", "page.json", "-o", "out.npz")
    assert done.status == 0 and "Duplicate" not in done.err, done.err
    with np.load(folder / "out.npz") as saved:
        found = {name: float(saved[name]) for name in saved.files}
    assert found["a_b.output"] == 1 and sorted(found.values()) == [1, 2, 3, 4, 5], found
