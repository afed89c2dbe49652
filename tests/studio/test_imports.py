"""Pages of enuSpace, dropped on the studio: read as from a folder, with their .dat beside them."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.pages.page import Page
from pages_files.writing import block, save, wire

LARGE = np.arange(400, dtype=np.float32).reshape(20, 20)


def sample() -> Page:
    """Return a page whose constant is large enough to lie in the .dat file."""
    return Page(
        "sample",
        [
            block("ID_A", "Const", val=LARGE),
            block("ID_B", "Square"),
            block("ID_S", "ClientSession"),
        ],
        [wire("ID_A.output > ID_B.x"), wire("ID_B.y > ID_S.fetch_outputs")],
    )


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("form", [3, 4, "json"])
def test_an_enuspace_page_is_imported_and_runs(studio, tmp_path, form):
    path = save(sample(), tmp_path, form)
    answer = studio.post(
        "/api/import", name=path.name, data=encoded(path), dat=encoded(path.with_suffix(".dat"))
    )
    document = answer["page"]
    assert document["dialect"].startswith("enuspace") and document["name"] == "sample"
    assert {each["id"]: each["type"] for each in document["blocks"]} == {
        "ID_A": "Const",
        "ID_B": "Square",
        "ID_S": "ClientSession",
    }
    checked = studio.post("/api/check", page=document)
    assert checked["blocks"]["ID_B"]["tensors"]["y"]["shape"] == [20, 20]
    if form == 3:
        results = studio.ended(studio.run(document))["results"]
        assert results["ID_B"]["y"]["values"] == np.square(LARGE).ravel()[:64].tolist()


def test_without_its_dat_a_page_says_what_is_missing(studio, tmp_path):
    path = save(sample(), tmp_path, 3)
    answer = studio.post("/api/import", name=path.name, data=encoded(path), dat=None)
    checked = studio.post("/api/check", page=answer["page"])
    assert ".dat" in checked["blocks"]["ID_A"]["problem"]
    assert str(tmp_path.parent) not in str(answer) and "convgrad-" not in str(answer["notes"])


def test_a_file_that_is_no_page_is_named(studio):
    data = base64.b64encode(b"<svg><broken").decode()
    status, error = studio.refused("/api/import", name="mine.svg", data=data)
    assert status == 400 and error.startswith("'mine.svg'") and "convgrad-" not in error
