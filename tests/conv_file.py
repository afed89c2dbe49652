"""Files of convolutions for `conv_run.cc`: writing what is to be run, and reading what came of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import cases
from cases import DENSE, DEPTHWISE, SMALL, random_case
from convgrad._api import raw
from convgrad._apps.check.draws import Each
from convgrad._base.dtypes import BFLOAT16, DTYPES
from convgrad._problem import convolution, oracle
from convgrad._problem.arguments import RAW, settings
from convgrad._problem.convolution import Kind, Problem

Array = np.ndarray[Any, np.dtype[Any]]
NAMES = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "half": np.dtype(np.float16),
    "bfloat16": BFLOAT16.numpy,
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
}
_NAMES_HERE = {"float": "float32", "double": "float64"}
_DEPTHS = ("group_in", "group_out")
_NAME_OF = {dtype: name for name, dtype in NAMES.items()}
CALLS = {call.function: call for call in raw.SIX}


@dataclass(frozen=True)
class Case:
    """One call of an operation: its attributes as TensorFlow has them, and its inputs in order."""

    op: str
    inputs: tuple[Array, ...]
    strides: tuple[int, ...] = (1, 1, 1, 1)
    dilations: tuple[int, ...] = (1, 1, 1, 1)
    padding: str = "SAME"
    explicit: tuple[int, ...] = ()
    data_format: str = "NHWC"
    threads: int = 1

    def line(self) -> str:
        inputs = " ".join(
            f"in={_NAME_OF[each.dtype]}:{'x'.join(map(str, each.shape))}" for each in self.inputs
        )
        return f"RUN op={self.op} threads={self.threads} {self.settings_text()} {inputs}"

    def settings_text(self) -> str:
        lists = (
            ("strides", self.strides),
            ("dilations", self.dilations),
            ("explicit", self.explicit),
        )
        words = " ".join(f"{name}={','.join(map(str, numbers))}" for name, numbers in lists)
        return f"{words} padding={self.padding} format={self.data_format}"

    def problem(self) -> Problem:
        """The convolution, by the Python library's own rules."""
        call = CALLS[self.op]
        how = settings(
            self.op,
            RAW,
            list(self.strides),
            self.padding,
            self.data_format,
            list(self.dilations),
            list(self.explicit),
        )
        shapes = [each.shape for each in self.inputs]
        if call.kind is Kind.INPUT_GRADIENT:
            shapes[0] = tuple(self.inputs[0].tolist())
        if call.kind is Kind.FILTER_GRADIENT:
            shapes[1] = tuple(self.inputs[1].tolist())
        dtype = next(row for row in DTYPES if row.numpy == self.inputs[-1].dtype)
        grad = shapes[2] if len(shapes) == 3 else None
        return convolution.build(call, how, dtype, shapes[0], shapes[1], grad)

    def operands(self) -> tuple[Array, Array]:
        kind = CALLS[self.op].kind
        return self.inputs[1 if kind is Kind.INPUT_GRADIENT else 0], self.inputs[-1]

    def expected(self) -> Array:
        """The reference's sums, of float64 or of integers that wrap around."""
        first, second = self.operands()
        if first.dtype != np.int32:
            first, second = first.astype(np.float64), second.astype(np.float64)
        return oracle.compute(self.problem(), first, second)


@dataclass(frozen=True)
class Answer:
    """A result, or the code and the words of a refusal."""

    result: Array | None = None
    code: int = 0
    message: str = ""


@dataclass
class Program:
    """A compiled `conv_run`, where its files go, and what it is called with before them."""

    path: Path
    folder: Path
    words: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    said: str = ""
    errors: str = ""

    def run(self, cases: Sequence[Case]) -> list[Answer]:
        asked, given = self.folder / "cases", self.folder / "answers"
        with asked.open("wb") as file:
            for case in cases:
                file.write(f"{case.line()}\n".encode())
                for each in case.inputs:
                    file.write(np.ascontiguousarray(each).tobytes())
        self._call(asked, given)
        answers = []
        with given.open("rb") as file:
            for _ in cases:
                head = file.readline().decode().rstrip("\n")
                if not head.startswith("OK "):
                    code, _, message = head.partition(" ")
                    answers.append(Answer(code=int(code), message=message))
                    continue
                _, name, text = head.split(" ")
                shape = tuple(int(size) for size in text.strip("[]").split(",") if size)
                dtype = NAMES[name]
                data = file.read(int(np.prod(shape)) * dtype.itemsize)
                answers.append(Answer(np.frombuffer(data, dtype).reshape(shape)))
        return answers

    def infer(self, lines: Sequence[str]) -> list[str]:
        """Return `[1,?,5,2]`, or `code message`, for each line behind INFER."""
        asked, given = self.folder / "cases", self.folder / "answers"
        asked.write_text("".join(f"INFER {line}\n" for line in lines))
        self._call(asked, given)
        return [line.removeprefix("SHAPE ") for line in given.read_text().splitlines()]

    def _call(self, asked: Path, given: Path) -> None:
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            [self.path, *self.words, asked, given], capture_output=True, text=True, env=environment
        )
        self.said, self.errors = done.stdout, done.stderr
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


_LARGE = [
    (0.5, DEPTHWISE | {"size": Each(range(1, 25)), "groups": range(1, 41)}),
    (0.5, DENSE | {"size": Each(range(1, 25)), **dict.fromkeys(_DEPTHS, range(1, 21))}),
]


def random_cases(
    seed: int, count: int, dtypes: Sequence[str], large: bool = False, threads: int = 1
) -> list[Case]:
    """Return valid calls of all six operations, empty ones among them."""
    random = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < count:
        dtype, op = str(random.choice(list(dtypes))), str(random.choice(list(CALLS)))
        call = CALLS[op]
        if dtype == "int32" and (call.depthwise or call.kind is Kind.FILTER_GRADIENT):
            continue
        fixed = {"depthwise": call.depthwise, "dtype": _NAMES_HERE.get(dtype, dtype)}
        drawn = random_case(random, _LARGE if large else SMALL, **fixed)
        cases.append(_called(random, op, drawn, threads))
    return cases


def _called(random: np.random.Generator, op: str, drawn: cases.Case, threads: int) -> Case:
    """Make a call of a drawn problem: the operands, and the sizes of what is wanted."""
    dtype, kind = cases.NUMPY[drawn.dtype], CALLS[op].kind

    def numbers(of: tuple[int, ...]) -> Array:
        if dtype == np.int32:
            return random.integers(-(2**31), 2**31, of).astype(np.int32)
        return random.standard_normal(of).astype(dtype)

    x, f = drawn.input_shape, drawn.filter_shape
    inputs: tuple[Array, ...] = (
        np.array(x, np.int32) if kind is Kind.INPUT_GRADIENT else numbers(x),
        np.array(f, np.int32) if kind is Kind.FILTER_GRADIENT else numbers(f),
    )
    if kind is not Kind.FORWARD:
        inputs = (*inputs, numbers(drawn.output_shape))
    _, raw = cases.door_settings(drawn, "raw")
    return Case(
        op,
        inputs,
        tuple(raw["strides"]),
        tuple(raw["dilations"]),
        raw["padding"],
        tuple(raw.get("explicit_paddings", ())),
        drawn.data_format,
        threads,
    )
