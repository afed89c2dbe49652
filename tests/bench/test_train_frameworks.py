"""`convgrad bench train` with JAX, TensorFlow and Keras: a run of a small network, and the large ones by shapes.

Frameworks are imported in children only: they change the process they are imported in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from bench.test_train_networks import PARAMETERS
from benchmarks.train.frameworks import TRAININGS
from child_python import child_environment
from convgrad._apps.cli.main import main

pytestmark = pytest.mark.peers


def needs(*names: str) -> pytest.MarkDecorator:
    absent = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


def trained(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, framework: str, configurations: str, *more: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Train the small network; return everything, and the rows by their labels."""
    training = TRAININGS[framework]
    variables = {**training.variables, "SMALL_TRAINER": training.trainer}
    small = replace(training, trainer="bench.small_trainer", variables=variables)
    monkeypatch.setitem(TRAININGS, framework, small)
    how = ["--image", "16", "--batch", "4", "--rounds", "1", "--steps", "1", "--threads", "1"]
    asked = ["--framework", framework, "--configurations", configurations, *how, *more, "--json"]
    status = main(["bench", "train", *asked])
    printed = json.loads(capsys.readouterr().out)
    assert (status, [row["reason"] for row in printed["rows"]]) == (0, [""] * len(printed["rows"]))
    rows = {row["label"]: row for row in printed["rows"]}
    losses = [row["losses"][0] for row in rows.values()]
    assert losses == pytest.approx([losses[0]] * len(losses), rel=1e-5)
    assert losses[0] == pytest.approx(6.9, abs=0.5)
    for row in rows.values():
        assert row["losses"][1] < row["losses"][0]  # it learns
        ((step,),) = (turn["steps"] for turn in row["turns"])
        assert len(step) == 1 and step[0] > 0
    compared = [each["other"] for each in printed["comparisons"]]
    assert compared == [name for name in rows if "native" not in name]
    return printed, rows


def check_layers(printed: dict[str, Any]) -> None:
    (found,) = printed["layers"]
    assert (found["status"], found["reason"]) == ("ok", "")
    shapes = [[row["input"], row["filter"], row["groups"]] for row in found["rows"]]
    assert shapes == [
        [[4, 3, 16, 16], [8, 3, 3, 3], 1],
        [[4, 8, 8, 8], [16, 8, 1, 1], 1],
        [[4, 16, 8, 8], [16, 1, 3, 3], 16],
        [[4, 16, 8, 8], [8, 16, 1, 1], 1],
    ]
    assert [row["count"] for row in found["rows"]] == [1, 2, 1, 1]
    assert all(row["error"] < 1e-6 for row in found["rows"])


@needs("jax")
def test_jax(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    printed, rows = trained(monkeypatch, capsys, "jax", "native_memory,ours_memory", "--layers")
    assert {row["parameters"] for row in rows.values()} == {17_872}
    assert all(row["note"].startswith("jax cpu float32") for row in rows.values())
    assert printed["machine"]["versions"]["jax"]
    check_layers(printed)


@needs("tensorflow")
def test_tensorflow(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    names = "native_memory,ours_memory"
    printed, rows = trained(monkeypatch, capsys, "tensorflow", names, "--layers")
    assert {row["parameters"] for row in rows.values()} == {17_872}
    assert all(row["note"].startswith("oneDNN True, threads 1") for row in rows.values())
    assert len(rows["ours_memory"]["note"]) > len(rows["native_memory"]["note"])  # the report
    check_layers(printed)


@needs("keras", "tensorflow")
def test_keras(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    names = "native_plain_memory,ours_memory,installed_memory"
    printed, rows = trained(monkeypatch, capsys, "keras", names)
    assert {row["parameters"] for row in rows.values()} == {17_456}
    for name, row in rows.items():
        is_on = name != "native_plain_memory"
        assert row["note"].startswith(f"keras tensorflow; oneDNN {is_on}, threads 1")
    assert printed["machine"]["versions"].keys() >= {"keras", "tensorflow"}
    assert rows["ours_memory"]["note"] != rows["installed_memory"]["note"]


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("jax", marks=needs("keras", "jax")),
        pytest.param("torch", marks=needs("keras", "torch")),
    ],
)
def test_keras_on_others(backend: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    _, rows = trained(monkeypatch, capsys, f"keras_{backend}", "native,ours")
    for row in rows.values():
        assert f"keras {backend}" in row["note"]
        assert backend != "torch" or "threads 1" in row["note"]


def asked(framework: str, code: str) -> Any:
    """Run some lines in a process of the framework; they print JSON."""
    training = TRAININGS[framework]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environment(training.environment(training.configurations[0], 1)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@needs("jax")
def test_large_networks_in_jax() -> None:
    """They are traced, not compiled: that takes half a minute."""
    found = asked(
        "jax",
        """
import json, jax
from functools import partial
from benchmarks.train.drafts import draft, starting_values
from benchmarks.train.jax_models import cross_entropy
from benchmarks.train.networks import NETWORKS
found = {}
for name in NETWORKS:
    values, statistics = starting_values(draft(name, 2, 64), 0)
    shapes = [jax.ShapeDtypeStruct((2, 64, 64, 3), "float32"), jax.ShapeDtypeStruct((2,), "int32")]
    loss, moved = jax.eval_shape(partial(cross_entropy, name), values, statistics, *shapes)
    assert loss.shape == () and jax.tree.structure(moved) == jax.tree.structure(statistics)
    assert jax.tree.map(lambda a, b: a.shape == b.shape, moved, statistics)
    found[name] = sum(each.size for each in jax.tree.leaves(values))
print(json.dumps(found))
""",
    )
    assert found == PARAMETERS


@needs("keras", "tensorflow")
def test_large_networks_of_keras() -> None:
    """Its ResNet-50 has biases in the convolutions, which others leave out before normalization."""
    found = asked(
        "keras",
        """
import json
from benchmarks.train import keras_trainer as t
built = {name: t.build(name, 64) for name in t.MODELS}
kinds = ("Conv2D", "DepthwiseConv2D")
print(json.dumps({name: [
    sum(t._size(each) for each in model.trainable_variables),
    model.count_params(),
    sum(type(each).__name__ in kinds for each in model.layers),
    list(model.output.shape),
    model.layers[-1].activation.__name__,
] for name, model in built.items()}))
""",
    )
    assert found == {
        "mobilenet_v2": [PARAMETERS["mobilenet_v2"], 3_538_984, 52, [None, 1000], "linear"],
        "resnet50": [25_583_592, 25_636_712, 53, [None, 1000], "linear"],
    }
