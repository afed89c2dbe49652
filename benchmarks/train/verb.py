"""Time whole training steps of a network in a framework, with convgrad and without.

Every configuration has a process of its own, which stays alive: for each model, all take turns in random order, one at
a time. A turn is one step that is not timed and some that are. Images are random, the loss is cross entropy, the
optimizer SGD with momentum. PyTorch's steps are timed in parts: forward with the loss, backward, optimizer; those of
the others are one program. Ratios are taken between turns of the same round; the reference (native_memory; torch:
native_cl_memory) runs in two processes, and what these two differ by is noise.

framework                      configurations
torch                          native, native_cl, native_memory, native_cl_memory, compile_cl_memory, ours, ours_memory,
                               fused, fused_memory
jax                            native, native_memory, ours, ours_memory
keras_jax, keras_torch         native, native_memory, ours, ours_memory, fused, fused_memory
tensorflow                     native, native_memory, ours, ours_memory, native_plain, native_plain_memory
keras (on TensorFlow)          those of tensorflow, fused, fused_memory, installed, installed_memory

native       the framework alone; TensorFlow with oneDNN, and as native_plain without
native_cl    channels_last, as ours of torch; compile_cl_memory: torch.compile
ours         under convgrad's accelerate: the model, or JAX's function as it is traced; TensorFlow: traced after install
fused        the same with fuse=True: convolution, batch norm and activation of a block in one; Keras: the last two
installed    Keras' model unchanged after convgrad.tensorflow.install
..._memory   with the memory setting, which makes glibc keep freed blocks instead of giving them back after every layer

The memory setting helps native steps as much as ours or more, so rows with it are compared with each other, and rows
without it. A model that does not compile within --timeout is reported and left out, and so is a process that dies or
would not fit into memory. A run takes minutes, most of them for torch.compile; --configurations without it are ready in
seconds. A native step of JAX takes seconds where layers are depthwise: --rounds 3 --steps 1 will do there.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convgrad._apps.cli import operation
from convgrad._apps.cli.screen import Cell, Mood, Screen
from convgrad._apps.cli.verb import DONE, INTERRUPTED, NO, Refusal

if TYPE_CHECKING:
    from .frameworks import Training
    from .rounds import TrainSettings

NAME = "bench train"
SUMMARY = "time training steps of whole networks in a framework, with convgrad and without"
EXAMPLES = """
convgrad bench train
convgrad bench train --model mobilenet_v2 --model resnet50 -o before.json
convgrad bench train --model convnext_t --image 224 --batch 32 --rounds 5 --steps 2
convgrad bench train --configurations native_cl_memory,ours_memory,native_cl_memory#2 --layers
convgrad bench train --framework jax --rounds 3 --steps 1
convgrad bench train --framework keras --configurations native_memory,ours_memory,installed_memory,native_memory#2
convgrad bench train --from mobilenet.json --from resnet.json --plot training.svg
"""

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "keras_jax", "keras_torch")
MODELS = ("mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "resnet50", "convnext_t")
PLAIN_MODELS = ("mobilenet_v2", "resnet50")
"""Those that frameworks other than PyTorch have."""
PICTURES = (".svg", ".png")
DEFAULTS: dict[str, Any] = {
    "framework": "torch",
    "model": [MODELS[0]],
    "image": 160,
    "batch": 8,
    "rounds": 7,
    "steps": 3,
    "configurations": "all",
    "seed": 0,
    "timeout": 300.0,
}
"""What is measured unless something else is said. Not argparse's defaults: with --from, saying so is a mistake."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add what to train, how to measure, and what to do with it."""
    count = operation.count
    add = parser.add_argument_group("training").add_argument
    add(
        "--framework",
        choices=FRAMEWORKS,
        metavar="NAME",
        help=f"who trains, of {', '.join(FRAMEWORKS)} (keras is on TensorFlow); default torch",
    )
    add(
        "--model",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(MODELS)} (frameworks other than torch: {' and '.join(PLAIN_MODELS)}); may repeat; "
        f"default {MODELS[0]}",
    )
    add(
        "--image", type=count, metavar="N", help="height and width, such as 160 or 224; default 160"
    )
    add("--batch", type=count, metavar="N", help="images of a step; default 8")
    add = parser.add_argument_group("measuring").add_argument
    add(
        "--configurations",
        metavar="LIST",
        help="comma-separated, of the framework's above; #2 behind one runs it in a second process; default all, "
        "and the reference a second time",
    )
    add("--threads", type=count, metavar="N", help="for everybody; default: all CPUs")
    add("--rounds", type=count, metavar="N", help="turns of each process; default 7")
    add("--steps", type=count, metavar="N", help="timed steps of a turn; default 3")
    add(
        "--seed", type=int, metavar="N", help="of weights, images and the order of turns; default 0"
    )
    add(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="for a process to compile and be ready, or to take a turn; default 300",
    )
    add(
        "--layers",
        action="store_true",
        default=None,
        help="time each distinct convolution too, with the memory setting, native and ours in turns; list what is "
        "slower than native; not for Keras, whose convolutions are its backend's",
    )
    add = parser.add_argument_group("results").add_argument
    add("-o", "--output", type=Path, metavar="FILE", help="write everything there as JSON")
    add(
        "--from",
        dest="source",
        action="append",
        type=Path,
        metavar="FILE",
        help="show a saved run, measure nothing; several, of different models, are joined",
    )
    add(
        "--plot",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="draw the steps as bars, as .svg or .png; may repeat",
    )


def run(given: Namespace, screen: Screen) -> int:
    """Measure, or take saved runs; then save, print and draw."""
    _check(given)
    from convgrad._apps.bench import saved

    from . import picture, ratios

    try:
        results = _saved(given) if given.source else _measured(given, screen)
        results["comparisons"] = ratios.comparisons(results)
        if given.output:
            saved.save(results, given.output)
        for path in given.plot:
            picture.draw(results, path)
            screen.note(f"wrote {path}")
    except ValueError as error:
        raise Refusal(str(error)) from None
    _show(screen, results)
    screen.document(results)
    return _status(results)


def _check(given: Namespace) -> None:
    """Refuse before measuring what would fail after it."""
    if given.source:
        for name in (*DEFAULTS, "threads", "layers"):
            if getattr(given, name) is not None:
                raise Refusal(f"--{name} is for measuring, and --from measures nothing")
    for path in filter(None, (given.output, *given.plot)):
        if not path.absolute().parent.is_dir():
            raise Refusal(f"no such folder: {path.parent}")
    for path in given.plot:
        if path.suffix not in PICTURES:
            raise Refusal(f"--plot writes {', '.join(PICTURES)}, got {path.name!r}")
    if given.plot and find_spec("matplotlib") is None:
        raise Refusal("--plot needs matplotlib: pip install matplotlib")
    if given.timeout is not None and not given.timeout > 0:
        raise Refusal(f"--timeout must be positive, got {given.timeout:g}")


def _saved(given: Namespace) -> dict[str, Any]:
    from . import stored

    return stored.joined([stored.load(path) for path in given.source])


def _measured(given: Namespace, screen: Screen) -> dict[str, Any]:
    from . import rounds
    from .configurations import select
    from .frameworks import TRAININGS

    for name, value in DEFAULTS.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    training = TRAININGS[given.framework]
    places = select(given.configurations, training.configurations, training.reference)
    settings = _settings(given, training)
    if settings.layers and training.no_layers:
        raise Refusal(f"--layers: {training.no_layers}")
    if training.missing:
        title, name = training.missing
        raise Refusal(f"{title} is not installed: pip install {name}")
    with screen.long_progress("training", rounds.total(settings, places)) as advance:
        return rounds.run(training, places, settings, advance)


def _settings(given: Namespace, training: Training) -> TrainSettings:
    from .frameworks import find_model
    from .rounds import TrainSettings

    names = ("framework", "image", "batch", "rounds", "steps", "seed", "timeout")
    models = dict.fromkeys(find_model(name, training.models) for name in given.model)
    return TrainSettings(
        models=tuple(models),
        threads=given.threads or _cpus(),
        layers=bool(given.layers),
        **{name: getattr(given, name) for name in names},
    )


def _show(screen: Screen, results: dict[str, Any]) -> None:
    from . import report

    layers = {found["model"]: found for found in results["layers"]}
    for model in results["settings"]["models"]:
        screen.line(report.heading(results, model), "strong")
        lines = report.table(results, model)
        if lines:
            screen.table(report.columns(results, model), [_moods(line) for line in lines])
        for sentence in report.conclusions(results, model):
            screen.line(sentence)
        if model in layers:
            screen.line()
            slower = report.layer_table(layers[model])
            if slower:
                screen.table(report.LAYER_COLUMNS, slower, left=2)
            for sentence in report.layer_conclusions(results, layers[model]):
                screen.line(sentence)
        screen.line()
    screen.line(report.footer(results))
    if not results["complete"]:
        screen.line("Interrupted: not all rounds were run.")


def _moods(line: list[str]) -> list[str | Cell]:
    """Colour the ratio of ours; the others are there to be compared with."""
    *cells, ratio, quartiles = line
    mood: Mood = "plain"
    if line[0].startswith(("ours", "installed")) and quartiles:
        mood = "good" if float(ratio) >= 1 else "bad"
    return [*cells, Cell(ratio, mood), quartiles]


def _status(results: dict[str, Any]) -> int:
    """A run without a compiled model is still a good one; one in which anything else failed or is wrong is not."""
    from . import ratios, report
    from .configurations import Configuration

    if not results["complete"]:
        return INTERRUPTED
    rows = results["rows"]
    failed = [
        row
        for row in rows
        if row["status"] != "ok" and not Configuration(**row["configuration"]).may_fail
    ]
    odd = [
        row
        for model in results["settings"]["models"]
        for row in ratios.odd_losses(ratios.timed(rows, model))
    ]
    layers = [
        found
        for found in results["layers"]
        if found["status"] != "ok" or any(not row["error"] <= report.WRONG for row in found["rows"])
    ]
    return NO if failed or odd or layers else DONE


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
