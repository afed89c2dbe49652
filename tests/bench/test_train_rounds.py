"""`convgrad bench train` with a fake: children, their turns, and what happens if one of them fails."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.fake_training import FAKE, SHORT, select, with_row
from bench.train_runs import a_row
from benchmarks.train import child, ratios, rounds, stored
from benchmarks.train import configurations as rows_of
from benchmarks.train.configurations import TORCH as CONFIGURATIONS
from benchmarks.train.entrant import Entrant
from benchmarks.train.frameworks import TRAININGS
from benchmarks.train.job import Parts
from convgrad._apps.cli.main import main


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
