"""`convgrad bench`: arguments, networks, saved runs, comparisons, pictures, exit statuses, and one tiny real run."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import convgrad
from bench.rows import flat, judged, row
from convgrad._apps.bench import (
    contests,
    layers,
    networks,
    peers,
    plot,
    report,
    runner,
    saved,
    tables,
    totals,
)
from convgrad._apps.bench.compare import compare
from convgrad._apps.bench.layers import parse
from convgrad._apps.bench.panels import layer_name
from convgrad._apps.cli import bench_arguments
from convgrad._apps.cli.main import main
from convgrad._problem import networks as _networks

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--peers", "none", "--rounds", "2", "--seconds", "0.002", "--threads", "1"]


@pytest.fixture
def quick_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring the machine takes seconds."""
    monkeypatch.setattr(runner, "probe", lambda threads, dtype, wanted: flat())


def a_run(**times: float) -> dict[str, Any]:
    """Return a race over a network of two layers, the second of which runs three times."""
    first, second = "8x14x14x8k3o16", "8x14x14x16k3"
    results = judged(
        row(first, "fwd", 1.0, {"torch-cl": 2.0, "torch-nchw": 5.0, "jax-jit": 9.0}),
        row(
            second,
            "fwd",
            times.get("ours", 2.0),
            {"torch-cl": times.get("torch", 1.5), "jax-jit": 900.0},
        ),
        row(second, "dx", 2.0, {"tf-eager": 4.0, "torch-cl": 3.0, "jax-jit": 40.0}),
    )
    results["networks"] = {"mobilenet_v2": [(parse(first).text, 1), (parse(second).text, 3)]}
    results["settings"]["ops"] = ["fwd", "dx"]
    return results


def stored(folder: Path, name: str, results: dict[str, Any]) -> str:
    saved.save(results, folder / name)
    return str(folder / name)


def test_words_of_the_arguments_are_those_of_the_package() -> None:
    """They are repeated there so that `--help` imports nothing."""
    assert (*tables.SUITES, "all") == bench_arguments.RACES
    assert tuple(peers.BY_NAME) == bench_arguments.PEERS
    assert tuple(layers.DTYPES) == bench_arguments.DTYPES


@pytest.mark.parametrize(
    ("name", "count", "gmacs"),
    [
        ("mobilenet_v1", 27, 0.568),
        ("mobilenet_v2", 52, 0.299),
        ("mobilenet_v3_large", 62, 0.214),
        ("mobilenet_v3_small", 52, 0.055),
        ("efficientnet_b0", 81, 0.385),
        ("convnext_tiny", 58, 4.455),
        ("resnet18", 20, 1.814),
        ("resnet50", 53, 4.087),
        ("resnext50", 53, 4.228),
        ("densenet121", 120, 2.833),
        ("vgg16", 13, 15.347),
        ("unet", 23, 12.073),
    ],
)
def test_networks_do_the_published_work(name: str, count: int, gmacs: float) -> None:
    """Multiply-adds per image, as the papers and model zoos count them without the classifier."""
    layers = networks.NETWORKS[name].layers(2)
    assert len(layers) == count
    assert sum(p.flops(effective=False) for p in layers) / 4e9 == pytest.approx(gmacs, abs=5e-4)


def test_every_network_is_tested() -> None:
    tested = test_networks_do_the_published_work.pytestmark[0].args[1]
    assert [name for name, _, _ in tested] == list(networks.NETWORKS)


def test_cases_of_a_network_skip_the_gradient_of_the_image() -> None:
    found, layers = networks.contests_of(["vgg16", "resnet18"], [4], ("fwd", "dx"))
    assert (parse("4x224x224x3k3o64"), "fwd") in found
    assert (parse("4x224x224x3k3o64"), "dx") not in found
    assert (parse("4x224x224x3k7s2o64"), "dx") not in found
    assert (parse("4x56x56x64k3o64"), "dx") in found
    assert dict(layers["resnet18"])["56x56x64k3s1o64b4"] == 4


def test_totals_count_repeats_and_take_the_best_of_a_family() -> None:
    forward, gradient, step = totals.totals(a_run())
    assert (forward.op, forward.layers, forward.ours) == ("fwd", 4, 1.0 + 3 * 2.0)
    assert forward.families == {"PyTorch": 2.0 + 3 * 1.5, "JAX": 9.0 + 3 * 900.0}
    assert gradient.families == {"PyTorch": 9.0, "TensorFlow": 12.0, "JAX": 120.0}
    assert (step.op, step.layers, step.ours) == ("step", 7, 7.0 + 6.0)
    assert step.peers["torch-cl"].ratio == pytest.approx((6.5 + 9.0) / 13.0)
    assert "torch-nchw" not in forward.peers  # it lacks a layer
    assert re.search(
        r"^MobileNetV2 +8 +NHWC +fwd +4 +7.00 +7.00 +0.93 \(0.93\) +387.00 \(387.00\) +- +0.93 \(0.93\)$",
        report.render(a_run()),
        re.MULTILINE,
    )


def test_totals_of_batches_and_layouts_stand_apart() -> None:
    texts = ["6x6x8k3o8b1", "6x6x8k3o8b4"]
    rows = [row(text, "fwd", 1.0, {"torch-cl": 2.0}) for text in texts for _ in range(2)]
    for number, each in enumerate(rows):
        each["layout"] = ("NHWC", "NCHW")[number % 2]
    results = judged(*rows)
    results["networks"] = {"vgg16": [(parse(text).text, 2) for text in texts]}
    results["settings"]["ops"] = ["fwd"]
    found = totals.totals(results)
    assert [(each.batch, each.layout, each.ours) for each in found] == [
        (batch, layout, 2.0) for batch in (1, 4) for layout in ("NHWC", "NCHW")
    ]
    titles = [group.title for group in plot.groups(results)]
    assert titles[:2] == ["VGG-16 batch 1 NHWC", "VGG-16 batch 1 NCHW"]


def test_a_peer_is_compared_with_ours_in_its_own_process() -> None:
    """Of two peers, the one with the longer time may be the better one: ours took longer beside it too."""
    each = row("8x14x14x8k3o16", "fwd", 1.0, {"torch-cl": 2.0, "tf-onednn": 3.0})
    for name, room in (("torch-cl", "torch"), ("tf-onednn", "tf")):
        each["peers"][name]["room"] = room
    timed = {key: each["ours"][key] for key in ("min_ms", "median_ms", "faults", "cores")}
    each["rooms"] = {"torch": timed, "tf": {**timed, "min_ms": 2.0, "median_ms": 3.0}}
    judged(each)
    assert (each["best_peer"], each["ratio"], each["median_ratio"]) == ("tf-onednn", 1.5, 1.0)
    assert each["ours"]["min_ms"] == 2.0
    assert totals.family_ratios(each) == {"PyTorch": 2.0, "TensorFlow": 1.5}


def test_half_a_network_has_no_total(tmp_path: Path) -> None:
    results = a_run()
    del results["rows"][0]
    assert [total.op for total in totals.totals(results)] == ["dx"]  # and no step
    plot.draw(results, tmp_path / "half.svg", ("totals", "layers"))


def test_an_interrupted_run_is_shown_and_ends_with_130(
    tmp_path: Path, quick_machine: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    measured = runner._measure

    def interrupted(contest: Any, *more: Any) -> Any:
        if contest.op == "dx":
            raise KeyboardInterrupt
        return measured(contest, *more)

    monkeypatch.setattr(runner, "_measure", interrupted)
    target = tmp_path / "part.json"
    assert main(["bench", "--shape", "1x4x4x3k3", *TINY, "--save", str(target)]) == 130
    assert "Interrupted" in capsys.readouterr().out
    assert [row["op"] for row in saved.load_race(target)["rows"]] == ["fwd"]


def test_what_is_not_a_saved_race_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"rows": []}')
    with pytest.raises(
        ValueError, match=r"other\.json is not a saved race of `convgrad bench`: it has no "
    ):
        saved.load_race(path)


def test_a_wrong_peer_is_no_member_of_its_family() -> None:
    wrong = {"status": "wrong", "reason": "wrong", "min_ms": 0.1}
    assert totals.family_times(
        row("8x7x7x8k3", "dx", 1.0, {"torch-cl": 3.0}, **{"tf-eager": wrong})
    ) == {"PyTorch": 3.0}


def test_compare_tells_changes_from_noise() -> None:
    old, new = a_run(), a_run(ours=1.0, torch=1.5)
    new["rows"][0]["ours"].update(min_ms=1.03)
    found = compare(old, new)
    assert [change.verdict for change in found.changes] == ["", "faster", ""]
    assert found.changes[1].ratio == 2.0
    assert found.ratio == pytest.approx((2.0 / 1.03) ** (1 / 3))
    assert found.peers_ratio == pytest.approx(1.0)
    assert compare(new, old).changes[1].verdict == "slower"
    noisy = a_run(ours=1.0)
    noisy["rows"][1]["ours"]["rounds_min_ms"] = [1.0, 2.5, 2.6]
    assert compare(old, noisy).changes[1].verdict == ""
    noisy["rows"][1]["ours"]["rounds_min_ms"] = [1.0, 1.01, 2.6]  # one round that was disturbed
    assert compare(old, noisy).changes[1].verdict == "faster"
    new["rows"].pop()
    new["settings"]["threads"] = 8
    assert compare(old, new).only_old == ["14x14x16k3s1b8 dx"]
    assert compare(old, new).differs == ["threads: 1 then 8"]


def test_compare_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    old, new = stored(tmp_path, "old.json", a_run()), stored(tmp_path, "new.json", a_run(ours=4.0))
    assert main(["bench", "--compare", old, new]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^14x14x16k3s1b8 +fwd +slower +2.00 +4.00 +0.50 ", printed, re.MULTILINE)
    assert "0 faster, 1 slower" in printed
    assert main(["bench", "--compare", old, new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][1]["verdict"] == "slower"


def test_pictures_are_what_their_names_say(tmp_path: Path, capsys: Any) -> None:
    source = stored(tmp_path, "run.json", a_run())
    names = ("a.png", "a.svg", "a.html")
    asked = [word for name in names for word in ("--plot", str(tmp_path / name))]
    assert main(["bench", "--from", source, *asked]) == 0
    assert "MobileNetV2" in capsys.readouterr().out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    drawing = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert drawing.tag.endswith("svg")
    words = " ".join(
        "".join(each.itertext()) for each in drawing.iter() if each.tag.endswith("text")
    )
    for word in ("PyTorch", "TensorFlow", "JAX", "MobileNetV2", "3 x 14² 16 dw 3x3", "Roofline"):
        assert word in words, word
    assert "2026-01-31" in words and "1 thread" in words and "float32" in words
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<svg" in page and "<td>14x14x16k3s1b8</td>" in page
    assert not re.search(r"(src|href)=\"https?:", page)
    assert sorted(p.name for p in tmp_path.iterdir()) == [*sorted(names), "run.json"]


def test_pictures_without_peers_networks_or_with_many_problems(tmp_path: Path) -> None:
    alone = judged(row("8x7x7x64k3", "fwd", 1.0, {}))
    plot.draw(alone, tmp_path / "alone.svg", ("totals", "layers", "roofline"))
    assert "Roofline" in (tmp_path / "alone.svg").read_text(encoding="utf-8")
    many = judged(*(row(f"8x7x7x{c}k3", "dw", 1.0, {"torch-cl": 2.0}) for c in range(1, 60)))
    assert [len(group.columns) for group in plot.groups(many)] == [plot.MOST, 59 - plot.MOST]
    plot.draw(many, tmp_path / "many.svg", ("layers",))
    text = (tmp_path / "many.svg").read_text(encoding="utf-8")
    assert "problems 45 to 59" in text and "Roofline" not in text


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        plot.draw(a_run(), tmp_path / name, ("layers",))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_layers_have_readable_names() -> None:
    assert layer_name(parse("33x33x256k3d2o256b2")) == "33² 256→256 3x3 d2"
    assert layer_name(parse("28x28x64k1x7m2")) == "28² 64x2 dw 1x7"


def test_a_tiny_run(tmp_path: Path, quick_machine: None, capsys: Any) -> None:
    how = ["--shape", "1x4x4x3k3s2", "--ops", "fwd,dw", "--keep", "1", "--memory", *TINY]
    target = tmp_path / "out.json"
    assert main(["bench", *how, "--save", str(target), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    kept = json.loads(target.read_text(encoding="utf-8"))
    assert kept.keys() == printed.keys()
    for one, two in zip(kept["rows"], printed["rows"], strict=True):
        assert one["ours"]["min_ms"] == pytest.approx(two["ours"]["min_ms"], rel=1e-5)
    assert [(r["op"], r["best_peer"]) for r in printed["rows"]] == [("fwd", None), ("dw", None)]
    assert all(r["ours"]["min_ms"] > 0 and r["ours"]["error"] < 1e-6 for r in printed["rows"])
    assert printed["rows"][0]["memory"].keys() & {"extra", "reason"}
    assert main(["bench", "--from", str(target)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^problem +op +ours ms ", shown, re.MULTILINE)  # no column for absent peers
    assert "1 threads" in shown


def test_a_problem_in_the_place_of_a_suite(quick_machine: None, capsys: Any) -> None:
    assert (
        main(["bench", "1x4x4x3k3s2", "--ops", "fwd", "--shape", "1x5x5x3k3", *TINY, "--json"]) == 0
    )
    printed = json.loads(capsys.readouterr().out)
    assert [row["text"] for row in printed["rows"]] == [
        parse(text).text for text in ("1x4x4x3k3s2", "1x5x5x3k3")
    ]
    both = ["1x4x4x3k3s2", "1x5x5x3k3"]
    assert main(["bench", *both, "--ops", "fwd", *TINY, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["text"] for row in printed["rows"]] == [parse(text).text for text in both]
    assert main(["bench", "8x8", *TINY]) == 2
    assert "8x8" in capsys.readouterr().err


def test_a_short_run_probes_the_machine_once(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for after, times in ((1e9, 1), (-1.0, 2)):
        probes: list[Any] = []
        monkeypatch.setattr(runner, "probe", lambda *how, to=probes: to.append(how) or flat())
        monkeypatch.setattr(runner, "AGAIN", after)
        assert main(["bench", "1x4x4x3k3s2", *TINY, "--ops", "fwd"]) == 0
        assert len(probes) == times


@pytest.mark.long
def test_it_runs_from_a_zip_file(tmp_path: Path) -> None:
    """Children were started in the folder that holds the package, which is then a file."""
    packed = tmp_path / "packed.zip"
    source = Path(convgrad.__file__).resolve().parents[1]
    with zipfile.PyZipFile(packed, "w") as archive:
        archive.writepy(
            str(source / "convgrad")
        )  # compiled, or each child would compile it once more
        for path in sorted(source.glob("convgrad/**/*.py")):
            archive.write(path, path.relative_to(source))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "json.py").write_text("raise SystemExit('the caller's own module')")
    program = "import runpy, sys; sys.path[0] = '../packed.zip'; runpy.run_module('convgrad', run_name='__main__')"
    arguments = ["bench", "1x4x4x3k3s2", "--ops", "fwd", "--memory", "--json", *TINY]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=tmp_path / "elsewhere",
        env={name: each for name, each in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert rows and "reason" not in rows[0].get("memory", {})


def test_a_model_is_measured_once_per_layer(
    quick_machine: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    small = networks.Network("Small", lambda: ["6x6x3k3o4", "6x6x4k3", "6x6x4k3"])
    monkeypatch.setitem(networks.NETWORKS, "small", small)
    monkeypatch.setitem(_networks.NETWORKS, "small", _networks.Network("Small", small.texts))
    assert main(["bench", "--model", "Small", "--batch", "2", *TINY]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^(6x6\S+) +(\w+)", shown, re.MULTILINE) == [
        ("6x6x3k3s1o4b2", "fwd"),
        ("6x6x3k3s1o4b2", "dw"),
        *(("6x6x4k3s1b2", op) for op in ("fwd", "dx", "dw")),
    ]
    assert re.search(r"^Small +2 +NHWC +fwd +3 ", shown, re.MULTILINE)
    assert re.search(r"^Small +2 +NHWC +step +8 ", shown, re.MULTILINE)


def test_batches_and_layouts_of_a_model_in_one_report(
    tmp_path: Path, quick_machine: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    small = networks.Network("Small", lambda: ["6x6x3k3o4", "6x6x4k3"])
    monkeypatch.setitem(networks.NETWORKS, "small", small)
    monkeypatch.setitem(_networks.NETWORKS, "small", _networks.Network("Small", small.texts))
    target, picture = tmp_path / "out.json", tmp_path / "out.svg"
    how = ["--model", "small", "--batch", "1,2", "--layout", "both", "--ops", "fwd", *TINY]
    assert main(["bench", *how, "--save", str(target), "--plot", str(picture)]) == 0
    shown = capsys.readouterr().out
    found = re.findall(r"^Small +(\d) +(\w+) +fwd +2 ", shown, re.MULTILINE)
    assert found == [("1", "NHWC"), ("1", "NCHW"), ("2", "NHWC"), ("2", "NCHW")]
    assert "ours, NCHW / NHWC" in shown
    rows = saved.load_race(target)["rows"]
    assert [row["layout"] for row in rows] == ["NHWC", "NCHW"] * 4
    assert all(row["ours"]["error"] < 1e-6 for row in rows)
    assert "batch 2 NCHW" in picture.read_text(encoding="utf-8")


def test_a_wrong_result_of_ours_ends_with_1(
    quick_machine: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(contests.WRONG, "float32", -1.0)
    monkeypatch.setitem(runner.WRONG, "float32", -1.0)
    assert main(["bench", "--shape", "1x4x4x3k3", "--ops", "fwd", *TINY]) == 1
    assert "our result is WRONG" in capsys.readouterr().out


def test_compare_with_what_is_measured_now(
    tmp_path: Path, quick_machine: None, capsys: Any
) -> None:
    old = stored(tmp_path, "old.json", judged(row("1x4x4x3k3", "fwd", 1e4, {})))
    how = ["--shape", "1x4x4x3k3", "--ops", "fwd,dw", *TINY, "--compare", old]
    assert main(["bench", *how, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [change["verdict"] for change in found["changes"]] == ["faster"]
    assert found["only_new"] == ["4x4x3k3s1b1 dw"]
    other = stored(tmp_path, "other.json", judged(row("1x5x5x3k3", "fwd", 1.0, {})))
    assert main(["bench", "--compare", old, other]) == 2
    assert "no row in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--model", "resnet51"],
            "no model 'resnet51', did you mean resnet50? there are mobilenet",
        ),
        (["--model", "caffe"], "no model 'caffe'; there are mobilenet_v1, "),
        (["--model", "vgg16", "--shape", "4x4x3k3"], "--model stands alone, got --shape too"),
        (["--shape", "8x56x56"], "cannot read the problem '8x56x56': it has no window"),
        (["--peers", "caffe"], "no peer 'caffe'"),
        (["--ops", "fwd,up"], "--ops must be among fwd, dx, dw, got fwd,up"),
        (["--filter", "nothing-like-this"], "no problem matches --filter 'nothing-like-this'"),
        (["--filter", "("], "--filter '(' is not a regular expression"),
        (["--seconds", "0"], "--seconds must be positive, got 0"),
        (["--plot", "out.pdf"], "--plot writes .png, .svg, .html, got 'out.pdf'"),
        (["--plot", "nowhere/out.svg"], "no such folder: nowhere"),
        (["--from", "nowhere.json"], "no such file: nowhere.json"),
        (["--compare", "a", "b", "c"], "--compare takes one or two files, got 3"),
        (["step", "--plot", "out.svg"], "are for races, not for step"),
        (["busy", "--layout", "both"], "--layout both is for races, busy takes one layout"),
        (["step", "--batch", "1,8"], "step takes one --batch, got 2"),
        (["dense", "1x4x4x3k3"], "dense stands alone, got 2 words"),
    ],
)
def test_refusals_in_one_line(arguments: list[str], says: str, capsys: Any) -> None:
    assert main(["bench", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("convgrad bench: ") and says in told.err
    assert told.err.count("\n") == 1


def test_files_that_are_no_runs(tmp_path: Path, capsys: Any) -> None:
    for content, says in (
        ("{", "cannot read"),
        ("[]", "no settings"),
        ('{"rows": []}', "no settings"),
    ):
        (tmp_path / "bad.json").write_text(content)
        assert main(["bench", "--from", str(tmp_path / "bad.json")]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--from", "--compare"])
def test_a_pipe_is_no_run(option: str, tmp_path: Path, capsys: Any) -> None:
    os.mkfifo(tmp_path / "run.json")
    assert main(["bench", option, str(tmp_path / "run.json")]) == 2
    assert "it is a pipe, not a regular file" in capsys.readouterr().err


def test_pictures_without_matplotlib(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(bench_arguments, "find_spec", lambda name: None)
    assert main(["bench", "--plot", "out.svg"]) == 2
    assert "pip install matplotlib" in capsys.readouterr().err


def test_lists(capsys: Any) -> None:
    assert main(["bench", "all", "--quick", "--list"]) == 0
    assert "mb2:56x56x144k3s1b8" in capsys.readouterr().out
    assert main(["bench", "--model", "resnet18", "--batch", "3", "--list"]) == 0
    assert "56x56x64k3s1o64b3" in capsys.readouterr().out
    assert main(["bench", "--model", "list", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(networks.NETWORKS)


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not part of this distribution")
def test_python_m_benchmarks_is_the_same(
    tmp_path: Path, quick_machine: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    target = tmp_path / "out.json"
    words = ["depthwise", "--shape", "1x4x4x3k3", "--ops", "fwd", "--no-memory", *TINY]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words, "--json", str(target)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "benchmarks" / "__main__.py"), run_name="__main__")
    assert ended.value.code == 0
    assert "4x4x3k3s1b1" in capsys.readouterr().out
    assert json.loads(target.read_text(encoding="utf-8"))["rows"][0]["op"] == "fwd"
