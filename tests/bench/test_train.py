"""`convgrad bench train` without a framework: arguments, children, statistics, reports, pictures, saved runs."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import fake_trainer
from convgrad._bench.train import child, frameworks, picture, ratios, report, rounds, stored
from convgrad._bench.train import configurations as rows_of
from convgrad._bench.train.configurations import TORCH as CONFIGURATIONS
from convgrad._bench.train.configurations import Configuration, Place
from convgrad._bench.train.entrant import Entrant
from convgrad._bench.train.frameworks import TITLES, TRAININGS, Training
from convgrad._bench.train.job import Parts
from convgrad._bench.train.ratios import Spread
from convgrad._cli import bench_train
from convgrad._cli.main import main

FRAMEWORK: Any = SimpleNamespace(
    name="fake",
    title="Fake",
    version="1.2",
    distributions=("fake-cpu",),
    is_installed=True,
    environment=lambda threads: {"OMP_NUM_THREADS": str(threads)},
)
REFERENCE = "native_cl_memory"
FAKE = Training(FRAMEWORK, "bench.fake_trainer", tuple(TITLES), CONFIGURATIONS, REFERENCE)
SHORT = ["--rounds", "2", "--steps", "2", "--threads", "1"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRAININGS, "torch", FAKE)


def select(text: str) -> list[Place]:
    return rows_of.select(text, CONFIGURATIONS, REFERENCE)


def with_row(monkeypatch: pytest.MonkeyPatch, name: str, **how: Any) -> None:
    """Let one configuration of the fake behave badly."""
    changed = [replace(row, accelerate=how) if row.name == name else row for row in CONFIGURATIONS]
    monkeypatch.setitem(TRAININGS, "torch", replace(FAKE, configurations=tuple(changed)))


def a_row(
    label: str,
    *turns: float,
    model: str = "mobilenet_v2",
    rows: tuple[Configuration, ...] = CONFIGURATIONS,
    **more: Any,
) -> dict[str, Any]:
    """Return a configuration whose turns took these milliseconds, in rounds 0, 1, ..."""
    by_name = {row.name: row for row in rows}
    known: Configuration = by_name[label.removesuffix(rows_of.AGAIN)]
    return {
        "model": model,
        "label": label,
        "configuration": {**vars(known)},
        "status": "ok",
        "reason": "",
        "parameters": 3504872,
        "losses": [6.9, 6.8],
        "peak_bytes": 800_000_000,
        "turns": [
            {
                "round": number,
                "steps": [[time / 2, time / 4, time / 4]],
                "faults": 10.0 * number,
                "others": 0.01,
            }
            for number, time in enumerate(turns)
        ],
        **more,
    }


def a_run(*rows: dict[str, Any], framework: str = "torch", **settings: Any) -> dict[str, Any]:
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    how = rounds.TrainSettings(framework, models, threads=2, **settings)
    results = {
        "kind": "train",
        "began": "2026-01-31 10:00:00",
        "complete": True,
        "settings": {**vars(how), "models": list(models)},
        "machine": {
            "cpu": "A CPU",
            "cpus": 2,
            "system": "Linux",
            "versions": {"convgrad": "0.1", "torch": "2.13"},
            "load": [0.5],
            "load_before": [0.25],
        },
        "rows": list(rows),
        "layers": [],
    }
    return {**results, "comparisons": ratios.comparisons(results)}


def usual(model: str = "mobilenet_v2") -> list[dict[str, Any]]:
    times = {
        "native": 300.0,
        "native_cl": 280.0,
        "native_memory": 190.0,
        "native_cl_memory": 200.0,
        "compile_cl_memory": 160.0,
        "ours": 240.0,
        "ours_memory": 100.0,
        "native_cl_memory#2": 210.0,
    }
    return [a_row(name, ms, 2 * ms, ms, model=model) for name, ms in times.items()]


# What the turns say.


def test_words_of_the_arguments_are_those_of_the_package() -> None:
    """They are repeated there so that `--help` imports nothing."""
    assert tuple(TRAININGS) == bench_train.FRAMEWORKS
    for name, training in TRAININGS.items():
        models = bench_train.MODELS if name == "torch" else bench_train.PLAIN_MODELS
        assert training.models == models
    lines = re.sub(r",\n +", ", ", str(bench_train.__doc__)).splitlines()
    table = dict(re.split(r"  +", line) for line in lines if re.match(r"\w.*?  +native, ", line))
    more = "fused, fused_memory, installed, installed_memory"
    table["keras"] = f"{table['tensorflow']}, {more}"
    assert f"keras (on TensorFlow)          those of tensorflow, {more}" in lines
    offered = {name: words for names, words in table.items() for name in names.split(", ")}
    assert offered == {
        name: ", ".join(row.name for row in training.configurations)
        for name, training in TRAININGS.items()
    }
    how = rounds.TrainSettings("torch", ("mobilenet_v2",))
    same = ("image", "batch", "rounds", "steps", "seed", "timeout")
    assert {name: getattr(how, name) for name in same} == {
        name: bench_train.DEFAULTS[name] for name in same
    }


def test_medians_and_quartiles() -> None:
    assert ratios.spread([]) is None
    assert ratios.spread([3.0]) == Spread(3.0, 3.0, 3.0, 1)
    assert ratios.spread([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(3.0, 2.0, 4.0, 5)


def test_a_machine_that_slows_down_does_not_touch_a_ratio() -> None:
    base, other = a_row("native", 10.0, 20.0, 40.0), a_row("ours", 5.0, 10.0, 20.0)
    assert ratios.spread(ratios.paired(base, other)) == Spread(2.0, 2.0, 2.0, 3)


def test_only_rounds_with_both_are_compared() -> None:
    base, other = a_row("native", 10.0, 20.0, 30.0), a_row("ours", 5.0, 5.0, 5.0)
    del base["turns"][1]
    assert ratios.paired(base, other) == [2.0, 6.0]
    other["turns"] = []
    assert ratios.paired(base, other) == []


def test_a_turn_counts_by_its_median_step() -> None:
    base, other = a_row("native", 8.0), a_row("ours", 1.0)
    other["turns"][0]["steps"] = [[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [50.0, 50.0, 0.0]]
    assert ratios.paired(base, other) == [2.0]
    assert ratios.steps(other) == [2.0, 4.0, 100.0]
    assert ratios.part(other, "backward") == 2.0


def test_best_native_is_the_best_layout_of_a_memory_setting() -> None:
    rows = usual()
    assert ratios.best(rows, "native", memory=False)["label"] == "native_cl"  # type: ignore[index]
    assert ratios.best(rows, "native", memory=True)["label"] == "native_memory"  # type: ignore[index]
    assert ratios.best(rows, "compiled", memory=False) is None
    twin = a_row("native_cl_memory#2", 1.0)
    assert ratios.best([*rows, twin], "native", memory=True)["label"] == "native_memory"  # type: ignore[index]


def test_comparisons_are_fair() -> None:
    found = a_run(*usual())["comparisons"]
    assert [(each["what"], each["base"], each["other"], each["median"]) for each in found] == [
        ("control", "native_cl_memory", "native_cl_memory#2", pytest.approx(200 / 210)),
        ("ours", "native_cl", "ours", pytest.approx(280 / 240)),
        ("compiled", "native_memory", "compile_cl_memory", pytest.approx(190 / 160)),
        ("ours", "native_memory", "ours_memory", pytest.approx(1.9)),
    ]


def test_every_row_of_ours_is_compared() -> None:
    """A second way of ours, such as fused layers, does not hide the first."""
    another = a_row("ours_memory", 50.0, 100.0, 50.0)
    another["label"] = "fused_memory"
    found = a_run(*usual(), another)["comparisons"]
    assert {each["other"]: each["median"] for each in found if each["base"] == "native_memory"} == {
        "compile_cl_memory": pytest.approx(190 / 160),
        "ours_memory": pytest.approx(1.9),
        "fused_memory": pytest.approx(3.8),
    }


def test_who_failed_is_not_compared() -> None:
    rows = usual()
    rows[2].update(status="failed", reason="died")
    found = a_run(*rows)["comparisons"]
    assert [each["base"] for each in found if each["other"] == "ours_memory"] == [
        "native_cl_memory"
    ]


def test_configurations_are_chosen_by_name() -> None:
    every = select("all")
    assert [place.label for place in every] == [
        *(row.name for row in CONFIGURATIONS),
        "native_cl_memory#2",
    ]
    assert every[-1].configuration == every[3].configuration
    for text, says in (
        ("natve", "no configuration 'natve'; did you mean 'native'? there are native, "),
        ("caffe", "no configuration 'caffe'; there are native, "),
        ("ours,ours", "a configuration is named twice: ours,ours; #2 behind one runs it again"),
        (" , ", "no configuration is named"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            select(text)


@pytest.mark.parametrize("name", TRAININGS)
def test_rows_keep_their_promises(name: str) -> None:
    """A new row must not stand for another one: layouts compete inside a family and a memory setting."""
    training = TRAININGS[name]
    keys = [
        (
            row.family,
            row.layout,
            row.memory,
            tuple(row.accelerate.items()),
            tuple(row.variables.items()),
        )
        for row in training.configurations
    ]
    assert len(set(keys)) == len(keys)
    (reference,) = (row for row in training.configurations if row.name == training.reference)
    assert reference.family == "native" and reference.memory
    for row in training.configurations:
        assert row.memory == row.name.endswith("_memory")
        if row.family == "ours":  # somebody native has the same setting of everything
            assert any(
                (other.family, other.memory, other.variables)
                == ("native", row.memory, row.variables)
                for other in training.configurations
            )


def test_environments_are_those_of_the_rows() -> None:
    """Frameworks read them when they are imported, so they are there before the process starts."""
    found = {
        name: {row.name: training.environment(row, 3) for row in training.configurations}
        for name, training in TRAININGS.items()
    }
    for name in ("tensorflow", "keras"):
        switches = {row: each["TF_ENABLE_ONEDNN_OPTS"] for row, each in found[name].items()}
        assert all((switch == "0") == ("plain" in row) for row, switch in switches.items())
        assert all(each["OMP_NUM_THREADS"] == "3" for each in found[name].values())
    assert found["jax"]["ours"].items() >= {"JAX_PLATFORMS": "cpu", "NPROC": "3"}.items()
    assert [found[name]["ours"].get("KERAS_BACKEND") for name in TRAININGS] == [
        *[None] * 3,
        "tensorflow",
        "jax",
        "torch",
    ]


# Children and rounds.


def test_the_first_step_of_a_turn_is_not_timed() -> None:
    class Counting:
        parameters, note, count = 1, "", 0

        def step(self) -> Parts:
            self.count += 1
            return Parts(self.count, 0.5, 0.25)

        def loss(self) -> float:
            return 1.0 / self.count

    trained, started = child.start(SimpleNamespace(prepare=lambda job: Counting()), None)  # type: ignore[arg-type]
    assert started.losses == [1.0, 0.5]
    taken = child.turn(trained, 2)
    assert taken.steps == [[4000.0, 500.0, 250.0], [5000.0, 500.0, 250.0]]
    assert taken.peak_bytes and taken.peak_bytes > 2**20


def test_what_others_do_meanwhile_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors work for two seconds each while we work for one: others have three of four."""
    seconds = {"wall": 0.0, "own": 0.0, "busy": 0.0}

    def step() -> Parts:
        seconds["wall"] += 1.0
        seconds["own"] += 0.5
        seconds["busy"] += 2.0
        return Parts(1.0, 0.0, 0.0)

    monkeypatch.setattr(child.time, "perf_counter", lambda: seconds["wall"])
    monkeypatch.setattr(child.time, "process_time", lambda: seconds["own"])
    monkeypatch.setattr(child, "_busy_seconds", lambda: seconds["busy"])
    monkeypatch.setattr(child.os, "cpu_count", lambda: 2)
    trained: Any = SimpleNamespace(step=step)
    assert child.turn(trained, 2).others == 0.75
    monkeypatch.setattr(child, "_busy_seconds", lambda: None)
    assert child.turn(trained, 2).others is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not say")
def test_processors_are_busy_while_we_are() -> None:
    before, began = child._busy_seconds(), time.process_time()
    while time.process_time() - began < 0.3:
        pass
    assert before is not None and child._busy_seconds() - before >= 0.25  # type: ignore[operator]


def test_a_disturbed_run_says_so() -> None:
    rows = usual()
    assert not any("DISTURBED" in line for line in report.conclusions(a_run(*rows), "mobilenet_v2"))
    for turn in rows[6]["turns"]:
        turn["others"] = 0.4
    lines = report.conclusions(a_run(*rows), "mobilenet_v2")
    assert lines[0].startswith("DISTURBED: other programs had up to 40% of the processors")
    assert report.table(a_run(*rows), "mobilenet_v2")[6][8] == "40%"
    for row in rows:  # a system that does not say
        for turn in row["turns"]:
            turn["others"] = None
    assert ratios.disturbed(rows) is None
    assert report.table(a_run(*rows), "mobilenet_v2")[6][8] == "-"


def test_a_run_by_a_fake(fake: None, tmp_path: Path, capsys: Any) -> None:
    target = tmp_path / "run.json"
    assert main(["bench", "train", *SHORT, "--json", "-o", str(target)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["kind"] == "train" and printed["complete"]
    assert [row["label"] for row in printed["rows"]] == [
        *(row.name for row in CONFIGURATIONS),
        "native_cl_memory#2",
    ]
    for row in printed["rows"]:
        assert row.keys() >= {"model", "label", "configuration", "status", "turns", "peak_bytes"}
        assert (row["status"], row["parameters"], row["note"]) == ("ok", 1234, "1 threads")
        assert [turn["round"] for turn in row["turns"]] == [0, 1]
        assert all(len(turn["steps"]) == 2 for turn in row["turns"])
        assert all(len(step) == 3 for turn in row["turns"] for step in turn["steps"])
    medians = {each["other"]: each["median"] for each in printed["comparisons"]}
    assert medians == {
        "native_cl_memory#2": pytest.approx(1.0),
        "ours": pytest.approx(2.0),
        "ours_memory": pytest.approx(2.0),
        "fused": pytest.approx(2.0),
        "fused_memory": pytest.approx(2.0),
        "compile_cl_memory": pytest.approx(12 / 9),
    }
    assert stored.load(target)["rows"][0]["label"] == "native"
    assert printed["machine"]["versions"]["fake"] == "1.2"


def test_a_step_that_is_one_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    """A compiled step has no parts: no columns for them, and everything else as always."""
    wholes = tuple(replace(row, accelerate={"whole": True}) for row in rows_of.KERAS)
    keras = replace(FAKE, configurations=wholes, reference="native_memory")
    monkeypatch.setitem(TRAININGS, "keras", keras)
    target = tmp_path / "run.json"
    asked = ["--framework", "keras", "--configurations", "all", "-o", str(target), *SHORT]
    assert main(["bench", "train", *asked]) == 0
    shown = capsys.readouterr().out
    (head,) = re.findall("^configuration .*$", shown, re.MULTILINE)
    assert re.split("  +", head)[1:4] == ["step ms", "quartiles", "faults"]
    assert re.search(r"^native_memory +8.00 +8.00 8.00 .* reference$", shown, re.MULTILINE)
    assert re.search(r"^installed_memory +5.33 .* 1.50 +1.50 1.50$", shown, re.MULTILINE)
    for line in (
        "native_memory / native_memory#2, which are equal: 1.00 (1.00 to 1.00); that much is noise",
        "ours_memory: 2.00 (2.00 to 2.00) times as fast as the best native, native_memory",
        "installed: 1.50 (1.50 to 1.50) times as fast as the best native, native",
    ):
        assert f"\n{line}\n" in shown
    saved = stored.load(target)
    steps = [step for row in saved["rows"] for turn in row["turns"] for step in turn["steps"]]
    assert all(len(step) == 1 for step in steps)
    notes = {row["label"]: row["note"] for row in saved["rows"]}
    assert (notes["native"], notes["native_plain"]) == ("1 threads1", "1 threads0")


def test_wholes_beside_parts() -> None:
    """A run may have both; a whole has a line where its parts would be."""
    rows = usual()
    for turn in rows[0]["turns"]:
        turn["steps"] = [[300.0]]
    run = a_run(*rows)
    assert report.columns(run, "mobilenet_v2")[3:6] == list(ratios.PARTS)
    first, second, *_ = report.table(run, "mobilenet_v2")
    assert first[1:6] == ["300", "300 300", "-", "-", "-"]
    assert second[3:6] == ["140", "70.0", "70.0"]


def test_models_take_turns_of_their_own(fake: None, capsys: Any) -> None:
    names = ["--model", "ResNet50", "--model", "convnext-t", "--model", "resnet50"]
    how = ["--configurations", "native,ours", *SHORT]
    assert main(["bench", "train", *names, *how]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^(\S+), 160x160, batch 8, 1,234 parameters$", shown, re.MULTILINE) == [
        "ResNet-50",
        "ConvNeXt-T",
    ]
    assert len(re.findall(r"^ours +5.00 +5.00 5.00 +1.67 +2.50 +0.833 ", shown, re.MULTILINE)) == 2
    assert "ours: 2.40 (2.40 to 2.40) times as fast as the best native, native\n" in shown
    assert shown.count(" reference\n") == 2


def test_turns_are_in_random_order_that_the_seed_decides(
    fake: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def order(seed: int) -> list[str]:
        taken: list[str] = []
        with monkeypatch.context() as patched:
            patched.setattr(Entrant, "start", lambda self: None)
            patched.setattr(Entrant, "is_ready", True)
            patched.setattr(
                Entrant, "turn", lambda self, number, steps: taken.append(self.row["label"])
            )
            patched.setattr(rounds, "GAP", 0.0)
            settings = rounds.TrainSettings("torch", ("resnet50",), rounds=6, seed=seed)
            rounds.run(FAKE, select("native,ours,native#2"), settings)
        return taken

    first = order(1)
    in_rounds = [tuple(first[at : at + 3]) for at in range(0, 18, 3)]
    assert all(set(each) == {"native", "ours", "native#2"} for each in in_rounds)
    assert len(set(in_rounds)) > 1
    assert order(1) == first != order(2)


def test_a_child_that_dies_costs_its_row(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    with_row(monkeypatch, "ours_memory", dies_in_step=child.WARM_UP + 5)  # in the second turn
    asked = ["--configurations", "native_memory,ours_memory", *SHORT]
    assert main(["bench", "train", *asked]) == 1
    shown = capsys.readouterr().out
    assert re.search(
        r"^ours_memory failed after 1 rounds and is left out: process died \(signal 9, SIGKILL\)",
        shown,
        re.MULTILINE,
    )
    assert re.search(r"^native_memory +8.00 ", shown, re.MULTILINE)
    assert "best native" not in shown


def test_a_refusal_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    with_row(monkeypatch, "ours", refuses=True)
    assert main(["bench", "train", "--configurations", "native,ours", *SHORT]) == 1
    assert (
        "ours failed and is left out: RuntimeError: no kernel for this\n" in capsys.readouterr().out
    )


def test_a_model_that_does_not_compile_in_time_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    with_row(monkeypatch, "compile_cl_memory", hangs=True)
    asked = ["--configurations", "compile_cl_memory", "--timeout", "0.5", *SHORT]
    assert main(["bench", "train", *asked]) == 0
    shown = capsys.readouterr().out
    assert "compile_cl_memory failed and is left out: no answer within 0.5 s\n" in shown
    assert "step ms:" in shown and not re.search(r"^configuration ", shown, re.MULTILINE)


def test_another_loss_is_a_wrong_result(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    with_row(monkeypatch, "ours", loss=6.95)
    assert main(["bench", "train", "--configurations", "native,ours", *SHORT]) == 1
    assert "ours: WRONG, its first loss is 6.95" in capsys.readouterr().out
    with_row(monkeypatch, "ours", loss=6.9001)
    assert main(["bench", "train", "--configurations", "native,ours", *SHORT]) == 0
    assert "WRONG" not in capsys.readouterr().out
    assert ratios.odd_losses([a_row("native", 1.0), a_row("ours", 1.0, losses=[float("nan")])])


def test_losses_may_differ_as_those_of_native_layouts_do() -> None:
    native = [a_row("native", 1.0), a_row("native_cl", 1.0, losses=[6.88])]
    for loss, odd in ((6.83, False), (6.81, True)):
        ours = a_row("ours", 1.0, losses=[loss])
        assert ratios.odd_losses([*native, ours]) == ([ours] if odd else [])


def test_processes_that_would_not_fit_are_not_started(
    fake: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert rounds.free_memory() is None or rounds.free_memory() > 2**20  # type: ignore[operator]
    monkeypatch.setattr(rounds, "free_memory", lambda: 1000)
    assert main(["bench", "train", "--configurations", "native,native_cl,ours", *SHORT]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"^native +12.0 ", shown, re.MULTILINE)
    assert shown.count("is left out: not started: the others need up to") == 2
    monkeypatch.setattr(rounds, "free_memory", lambda: None)
    assert main(["bench", "train", "--configurations", "native,ours", *SHORT]) == 0


def test_an_interrupt_keeps_what_there_is(
    fake: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    stopped: list[str] = []
    turn, stop = Entrant.turn, Entrant.stop

    def interrupted(self: Entrant, number: int, steps: int) -> None:
        if number == 1:
            raise KeyboardInterrupt
        turn(self, number, steps)

    def noted(self: Entrant) -> None:
        stopped.append(self.row["label"])
        stop(self)

    monkeypatch.setattr(Entrant, "turn", interrupted)
    monkeypatch.setattr(Entrant, "stop", noted)
    assert main(["bench", "train", "--configurations", "native,ours", *SHORT]) == 130
    shown = capsys.readouterr().out
    assert "Interrupted" in shown and re.search(r"^ours +5.00 ", shown, re.MULTILINE)
    assert stopped == ["native", "ours"]


# Layers.


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


# Reports, pictures and files.


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
        ("[]", "is no saved run of `convgrad bench train`"),
        ('{"rows": []}', "is no saved run of `convgrad bench train`"),
        ('{"kind": "train", "rows": []}', "it has no settings"),
    ):
        (tmp_path / "bad.json").write_text(content)
        assert main(["bench", "train", "--from", str(tmp_path / "bad.json")]) == 2
        assert says in capsys.readouterr().err


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model", "resnet51"], "no model 'resnet51'; did you mean 'resnet50'? there are mobile"),
        (["--framework", "caffe"], "argument --framework: invalid choice: 'caffe'"),
        (["--framework", "jax", "--model", "convnext_t"], "no model 'convnext_t'; there are mob"),
        (["--framework", "jax", "--configurations", "installed"], "no configuration 'installed'"),
        (["--framework", "keras", "--layers"], "--layers: Keras' convolutions are those of Tenso"),
        (["--framework", "keras_jax", "--layers"], "time them with --framework jax"),
        (["--configurations", "fast"], "no configuration 'fast'; there are native, "),
        (["--image", "0"], "argument --image: '0' must be a whole number from 1 up"),
        (["--steps", "-1"], "argument --steps"),
        (["--timeout", "0"], "--timeout must be positive, got 0"),
        (["--timeout", "nan"], "--timeout must be positive, got nan"),
        (["--plot", "out.html"], "--plot writes .svg, .png, got 'out.html'"),
        (["-o", "nowhere/out.json"], "no such folder: nowhere"),
        (["--from", "nowhere.json"], "no such file: nowhere.json"),
        (["--from", "a.json", "--batch", "8"], "--batch is for measuring, and --from measures"),
        (["--from", "a.json", "--layers"], "--layers is for measuring, and --from measures"),
        (["--peers", "torch"], "unknown: --peers torch"),
        (["dense"], "unknown: dense"),
    ],
)
def test_refusals_in_one_line(arguments: list[str], says: str, capsys: Any) -> None:
    assert main(["bench", "train", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("convgrad bench train: ") and says in told.err
    assert told.err.count("\n") == 1


def test_train_stands_right_behind_bench(capsys: Any) -> None:
    for words in (["--rounds", "3", "train"], ["dense", "train"]):
        assert main(["bench", *words]) == 2
        said = "convgrad bench: train stands right behind bench: convgrad bench train ...\n"
        assert capsys.readouterr().err == said


def test_an_absent_framework(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    absent = SimpleNamespace(**{**vars(FRAMEWORK), "is_installed": False})
    monkeypatch.setitem(TRAININGS, "torch", replace(FAKE, framework=absent))
    assert main(["bench", "train"]) == 2
    assert "Fake is not installed: pip install fake-cpu" in capsys.readouterr().err
    monkeypatch.setattr(frameworks, "find_spec", lambda name: None)
    for name, says in (
        ("keras", "Keras is not installed: pip install keras\n"),
        ("keras_jax", "Keras is not installed: pip install keras\n"),
    ):
        assert main(["bench", "train", "--framework", name]) == 2
        assert says in capsys.readouterr().err
    bridge = SimpleNamespace(**{**vars(absent), "title": "TensorFlow", "distributions": ("tf",)})
    monkeypatch.setattr(frameworks, "find_spec", lambda name: name)
    monkeypatch.setitem(TRAININGS, "keras", replace(TRAININGS["keras"], framework=bridge))
    assert main(["bench", "train", "--framework", "keras"]) == 2
    assert "TensorFlow is not installed: pip install tf\n" in capsys.readouterr().err


def test_pictures_without_matplotlib(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(bench_train, "find_spec", lambda name: None)
    assert main(["bench", "train", "--plot", "out.svg"]) == 2
    assert "pip install matplotlib" in capsys.readouterr().err
