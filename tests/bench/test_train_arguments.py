"""`convgrad bench train`: configurations by name, what they promise, and arguments that are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.fake_training import FAKE, FRAMEWORK, select
from benchmarks.train import frameworks, rounds
from benchmarks.train import verb as bench_train
from benchmarks.train.configurations import TORCH as CONFIGURATIONS
from benchmarks.train.frameworks import TRAININGS
from convgrad._apps.bench import clone
from convgrad._apps.cli.main import main


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


def test_without_a_clone_the_verb_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setattr(clone, "FOLDER", tmp_path / "benchmarks")
    assert main(["bench", "train", "--model", "resnet50", "--rounds", "3", "more"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(
        "convgrad bench train: the networks that it trains are not in the wheel"
    )
    assert told.err.count("\n") == 1 and "`benchmarks` of a clone" in told.err and not told.out
    assert main(["bench", "train", "--help"]) == 0
    assert "in the folder `benchmarks` of" in capsys.readouterr().out


def test_benchmarks_of_others_are_not_ours(tmp_path: Path) -> None:
    """A package of that name may lie first on the import path, or be imported already."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("print('theirs')", encoding="utf-8")
    program = "import benchmarks; from convgrad._apps.cli.main import main; main(['bench', 'train', '--help'])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("theirs\nusage: convgrad bench train"), done.stderr
