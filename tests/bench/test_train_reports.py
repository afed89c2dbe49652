"""Reports, tables of layers, pictures and saved runs of `convgrad bench train`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import fake_trainer
from bench.fake_training import SHORT
from bench.train_runs import a_row, a_run, usual
from benchmarks.train import configurations as rows_of
from benchmarks.train import picture, report, stored
from convgrad._apps.cli.main import main


def test_report_of_a_saved_run(tmp_path: Path, capsys: Any) -> None:
    rows = usual()
    rows[4].update(status="failed", reason="no answer within 300 s", turns=[])
    for row in rows:
        del row["configuration"]["variables"]  # as it was when there was nobody but PyTorch
    (tmp_path / "run.json").write_text(json.dumps(a_run(*rows)), encoding="utf-8")
    assert main(["bench", "train", "--from", str(tmp_path / "run.json")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("MobileNetV2, 160x160, batch 8, 3,504,872 parameters\nconfiguration ")
    for line in (
        r"native_cl_memory +200 +200 300 +100 +50.0 +50.0 +10 +800 +1% +reference$",
        r"ours_memory +100 +100 150 +50.0 +25.0 +25.0 +10 +800 +1% +2.00 +2.00 2.00$",
        r"native_cl_memory / native_cl_memory#2, which are equal: 0.95 \(0.95 to 0.95\); that much is noise$",
        r"ours_memory: 1.90 \(1.90 to 1.90\) times as fast as the best native, native_memory$",
        r"compile_cl_memory failed and is left out: no answer within 300 s$",
        r"load average 0.2 before, 0.5 after$",
    ):
        assert re.search(f"^{line}", shown, re.MULTILINE), line


def test_layers_that_are_slower_are_listed(fake: None, capsys: Any) -> None:
    asked = ["--configurations", "native_cl_memory,ours_memory", *SHORT, "--layers"]
    assert main(["bench", "train", *asked]) == 0
    shown = capsys.readouterr().out
    found = re.findall(r"^(32².*?)  +(forward|backward) +(\d) .* (\S+)$", shown, re.MULTILINE)
    assert found == [
        ("32² 16→24 1x1", "forward", "2", "2.00"),
        ("32² 16 dw 3x3", "forward", "3", "1.50"),
        ("32² 16 dw 3x3", "backward", "3", "1.50"),
    ]  # 4.1 ms beside 4.0 ms is noise
    whole = fake_trainer.STEP["ours"] * 2 / 3 * 5 / 6 * 1e3
    assert (
        f"3 of 6 parts of 3 distinct convolutions are slower than native by more than 3%: 5.00 ms per step, "
        f"{100 * 5 / whole:.1f}% of the step of ours_memory\n"
    ) in shown
    assert "all convolutions, forward: native 7.00 ms, ours 9.50 ms, ratio 0.74\n" in shown


def test_layers_that_cannot_be_timed_are_said_to_be(fake: None, capsys: Any) -> None:
    asked = ["--model", "resnet50", "--configurations", "native", *SHORT, "--layers", "--json"]
    assert main(["bench", "train", *asked]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["layers"] == [
        {
            "model": "resnet50",
            "status": "failed",
            "reason": "RuntimeError: no layers of this",
            "rows": [],
        }
    ]
    assert report.layer_conclusions(printed, printed["layers"][0]) == [
        "the convolutions of resnet50 were not timed: RuntimeError: no layers of this"
    ]


def test_a_wrong_layer_is_named_as_bench_takes_it() -> None:
    wrong = fake_trainer.layer((8, 16, 9, 9), (16, 1, 3, 3), 1, (1.0, 1.0), (1.0, 1.0), 16)
    wrong.update(error=float("nan"), stride=(2, 2))
    found = {"model": "mobilenet_v2", "status": "ok", "reason": "", "rows": [wrong]}
    lines = report.layer_conclusions(a_run(*usual()), found)
    assert lines[-1] == "9x9x16k3s2b8: WRONG, it differs from native by nan"
    assert lines[0].startswith("0 of 2 parts of 1 distinct convolutions are slower")
    grouped = fake_trainer.layer((8, 16, 9, 9), (32, 4, 3, 3), 1, (1.0, 1.0), (1.0, 1.0), 4, pad=0)
    assert report.as_layer(grouped).text == "9x9x16k3s1o32g4vb8"
    uneven = {**grouped, "padding": [[0, 1], [0, 1]]}  # what SAME comes to with stride 2
    assert report.as_layer(uneven).padding == ((0, 1), (0, 1))


def test_pictures_from_saved_rows(tmp_path: Path, capsys: Any) -> None:
    for model in ("mobilenet_v2", "resnet50"):
        text = json.dumps(a_run(*usual(model)))
        (tmp_path / f"{model}.json").write_text(text, encoding="utf-8")
    sources = [
        word
        for each in ("mobilenet_v2", "resnet50")
        for word in ("--from", str(tmp_path / f"{each}.json"))
    ]
    names = ("a.svg", "b.svg", "a.png")
    asked = [word for name in names for word in ("--plot", str(tmp_path / name))]
    assert main(["bench", "train", *sources, *asked]) == 0
    assert "ResNet-50" in capsys.readouterr().out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    drawing = ElementTree.parse(tmp_path / "a.svg").getroot()
    words = [
        "".join(each.itertext()).strip() for each in drawing.iter() if each.tag.endswith("text")
    ]
    for word in ("MobileNetV2", "ResNet-50", "PyTorch", "PyTorch with the memory setting"):
        assert word in words, word
    assert words.count("1.90x") == 2  # against the best native with the memory setting
    assert words.count("280 ms") == words.count("190 ms") == words.count("100 ms") == 2
    assert "300 ms" not in words  # the other layout
    assert any("160x160, batch 8" in word and "2026-01-31" in word for word in words)


def test_a_picture_of_keras(tmp_path: Path) -> None:
    """Four bars, and ours too short for its ratio, which then stands above it."""
    times = {"native": 300.0, "native_memory": 250.0, "installed_memory": 125.0, "ours_memory": 10}
    run = a_run(
        *(a_row(name, ms, rows=rows_of.KERAS) for name, ms in times.items()), framework="keras"
    )
    run["machine"]["versions"] = {"keras": "3.15.1", "tensorflow": "2.21.0"}
    picture.draw(run, tmp_path / "keras.svg")
    drawing = ElementTree.parse(tmp_path / "keras.svg").getroot()
    texts = [each for each in drawing.iter() if each.tag.endswith("text")]
    words = ["".join(each.itertext()).strip() for each in texts]
    for word in ("Keras on TensorFlow", "2.00x", "25.0x", "model unchanged, convgrad installed"):
        assert word in words, word
    assert any("Keras 3.15.1, TensorFlow 2.21.0" in word for word in words)
    assert not any("layout" in word for word in words)  # there is only one
    assert "fill: #ffffff" in str(texts[words.index("2.00x")].attrib)
    assert "fill: #ffffff" not in str(texts[words.index("25.0x")].attrib)


def test_a_picture_of_what_there_is(tmp_path: Path, capsys: Any) -> None:
    alone = a_run(a_row("ours_memory", 10.0))
    picture.draw(alone, tmp_path / "alone.svg")
    text = (tmp_path / "alone.svg").read_text(encoding="utf-8")
    assert "10.0 ms" in text and "PyTorch with" not in text and "1.00x" not in text
    nothing = a_run(a_row("compile_cl_memory", 10.0))
    with pytest.raises(ValueError, match="there is no bar to draw"):
        picture.draw(nothing, tmp_path / "nothing.svg")


def test_runs_that_cannot_stand_in_one_report() -> None:
    one, two = a_run(*usual()), a_run(*usual("resnet50"), image=224)
    with pytest.raises(ValueError, match="the runs differ in --image: 160 and 224"):
        stored.joined([one, two])
    with pytest.raises(ValueError, match="two runs have mobilenet_v2; ratios hold inside one run"):
        stored.joined([one, one])
    third = {**a_run(*usual("convnext_t")), "complete": False}
    both = stored.joined([one, third])
    assert both["settings"]["models"] == ["mobilenet_v2", "convnext_t"]
    assert len(both["rows"]) == 16 and not both["complete"]


def test_files_that_are_no_runs(tmp_path: Path, capsys: Any) -> None:
    for content, says in (
        ("{", "cannot read"),
        ("[]", "is not a saved run of `convgrad bench train`"),
        ('{"rows": []}', "is not a saved run of `convgrad bench train`"),
        ('{"kind": "train", "rows": []}', "it has no settings"),
    ):
        (tmp_path / "bad.json").write_text(content)
        assert main(["bench", "train", "--from", str(tmp_path / "bad.json")]) == 2
        assert says in capsys.readouterr().err
