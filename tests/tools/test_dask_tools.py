"""The tools that measure Dask: what they compute is right, and what they conclude follows from the rows."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import dask_bits  # noqa: E402
import dask_overhead  # noqa: E402
import dask_table  # noqa: E402
import dask_work  # noqa: E402

SMALL = [
    replace(case, side=8, rows=case.rows * 8 // case.side, images=2, inputs=4, outputs=4)
    for case in dask_work.CASES
]


def test_parts_of_images_are_parts_of_the_same_images() -> None:
    whole = dask_work.made(8, 3, 1, (0, 6), (0, 8))
    np.testing.assert_array_equal(dask_work.made(8, 3, 1, (2, 5), (4, 8)), whole[2:5, 4:8])
    assert len({image.tobytes() for image in whole}) == 6


@pytest.mark.parametrize("operation", dask_work.OPERATIONS)
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_graph_and_loop_compute_the_same(case: Any, operation: str) -> None:
    # Rows of 2 would be sampled at other places in the graph than in the loop.
    case = replace(case, rows=max(case.rows, dask_work.SAMPLED))
    found = dask_work.graph(case, operation, 6).compute(scheduler="sync")
    _, expected = dask_work.loop(case, operation, 6)
    assert dask_work.agree(found, expected, dask_work.terms(case, 6))
    assert not dask_work.agree(np.asarray(found) * 1.01 + 1, expected, dask_work.terms(case, 6))


def test_sizes_are_as_asked() -> None:
    for case in dask_work.CASES:
        assert 102e6 < case.chunk_bytes < 104e6 and case.rows % dask_work.SAMPLED == 0
        assert case.slab * case.image_bytes == case.chunk_bytes
        assert case.count(16) * case.image_bytes == pytest.approx(16e9, rel=0.01)
        assert case.with_chunks(51.5).images * 2 == pytest.approx(case.images, abs=2)


def test_a_row_of_the_table() -> None:
    """In this process: starting three others takes longer than all the rest."""
    case = replace(SMALL[0], images=4)
    with (
        LocalCluster(1, 1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        ThreadPoolExecutor(1) as loops,
    ):
        table = dask_table.Table(client, loops, best=2)
        row = table.row(case, "filter gradient", 20 * case.image_bytes / 1e9)
    assert row.ratio == row.cluster_seconds / row.loop_seconds > 0
    assert row.gigabytes == pytest.approx(2 * 20 * case.image_bytes / 1e9)
    assert row.tasks == 5 + 1 and row.restarts == 0 and row.moved_megabytes < 0.001
    assert row.peak_megabytes is None or row.peak_megabytes > 10
    assert len(dask_table.printed(row)) == len(dask_table.HEAD)


@pytest.mark.dask_long
def test_the_table(tmp_path: Path, capsys: Any) -> None:
    target = tmp_path / "rows.json"
    words = ["--gigabytes", "0.02", "--chunks", "4", "--best", "1", "--only", "depthwise 3x3"]
    assert dask_table.main([*words, "--json", str(target)]) == 0
    rows = json.loads(target.read_text())
    assert [row["operation"] for row in rows] == list(dask_work.OPERATIONS)
    for row in rows:
        assert row["ratio"] == pytest.approx(row["cluster_seconds"] / row["loop_seconds"])
        assert row["tasks"] > 3 and row["restarts"] == 0
        assert row["peak_megabytes"] is None or 50 < row["peak_megabytes"] < 1500
    assert rows[2]["gigabytes"] == 2 * rows[0]["gigabytes"]
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split()[:4] == ["operation", "GB", "loop", "s"]
    assert "The cluster took at most" in printed
    with pytest.raises(SystemExit):
        dask_table.main(["--only", "no such case"])
    assert "--only must be part of one of" in capsys.readouterr().err


def overhead_row(size: int, loop: float, threads: float) -> dask_overhead.Row:
    return dask_overhead.Row("dense", size, 100, 200, loop, threads, 2 * threads)


def test_overhead_is_little_from_where_it_stays_little() -> None:
    rows = [
        overhead_row(*each) for each in ((1, 10, 110), (2, 100, 104), (4, 200, 220), (8, 400, 410))
    ]
    assert dask_overhead.from_where(rows, "threads") == 8
    assert dask_overhead.from_where(rows, "cluster") is None
    assert dask_overhead.per_task(rows[0], "threads") == 50
    assert dask_overhead.verdicts(rows)[0].startswith("dense, threads: 50 us per task;")


def test_other_bits_are_noticed() -> None:
    found = [dask_bits.Row("dense", "half", where, "a1") for where in ("threads", "1 process")]
    assert dask_bits.different(found) == []
    found.append(dask_bits.Row("dense", "half", "2 processes", "a2"))
    assert dask_bits.different(found) == [("dense", "half")]
    assert "2 processes" in dask_bits.table(found)


@pytest.mark.dask_long
def test_bits_and_overhead_on_clusters(tmp_path: Path, capsys: Any) -> None:
    assert dask_bits.main(["--images", "16", "--kills", "1"]) == 0
    assert "The same bits everywhere." in capsys.readouterr().out
    target = tmp_path / "rows.json"
    words = ["--sides", "8,32", "--seconds", "0.01", "--best", "1", "--json", str(target)]
    assert dask_overhead.main(words) == 0
    assert len(json.loads(target.read_text())) == 4
    assert "us per task" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        dask_overhead.main(["--sides", "large"])
