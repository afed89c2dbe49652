"""What TensorFlow's compiler, PyTorch and JAX have answered, kept as hashes: compared where none of them is installed.

The data are whole numbers and the arithmetic is float64, so that every right answer has the same bits.

    PYTHONPATH=src:tests python -m peers.recorded    # asks the three again and rewrites recorded.json
"""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cases import KINDS, Case, Data, random_case

FILE = Path(__file__).with_suffix(".json")
CASES = 48


def whole(case: Case) -> Data:
    """Return whole numbers from -9 to 9, by a formula rather than a generator that a new NumPy may change."""
    shapes = (case.input_shape, case.filter_shape, case.output_shape)
    return Data(
        *(
            (np.arange(prod(shape)) * (7919 + 2 * turn) // 5 % 19 - 9.0).reshape(shape)
            for turn, shape in enumerate(shapes)
        )
    )


def digest(numbers: Any) -> str:
    """Return a hash of the shape and the numbers, which must be whole."""
    array = np.asarray(numbers)
    assert (array == np.rint(array)).all()
    text = f"{array.shape}".encode() + np.ascontiguousarray(array, np.int64).tobytes()
    return hashlib.sha256(text).hexdigest()[:16]


def read() -> tuple[list[Case], dict[str, dict[str, Any]]]:
    """Return the cases, and for every framework its version and its answers in the order of cases and kinds."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    cases = [
        Case(**{name: _tuples(value) for name, value in each.items()}) for each in found["cases"]
    ]
    return cases, found["answers"]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _draw() -> list[Case]:
    rng, cases = np.random.default_rng(21), []
    while len(cases) < CASES:
        case = random_case(rng, dtype="float64")
        if not case.is_empty:
            cases.append(case)
    return cases


def _record() -> None:
    frameworks = importlib.import_module("convgrad._bridges.peers").FRAMEWORKS
    ask = importlib.import_module("frameworks").ask
    cases = _draw()
    answers: dict[str, Any] = {}
    for name in ("torch", "jax", "tensorflow"):
        way = {"compiled": True} if name == "tensorflow" else {}
        hashes = []
        for case in cases:
            data = whole(case)
            three = [ask(name, case, kind, data, **way) for kind in KINDS]
            hashes += [digest(np.rint(each)) for each in three]
            # JAX and XLA may add in another way than by products: what is nearly whole was whole.
            assert all(np.abs(each - np.rint(each)).max() < 1e-6 for each in three)
        answers[frameworks[name].title] = {"version": frameworks[name].version, "hashes": hashes}
    FILE.write_text(
        json.dumps({"cases": [asdict(case) for case in cases], "answers": answers}, indent=None)
        .replace('{"depthwise"', '\n{"depthwise"')
        .replace('"answers"', '\n"answers"')
        .replace('"JAX"', '\n"JAX"')
        .replace('"TensorFlow"', '\n"TensorFlow"')
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    _record()
