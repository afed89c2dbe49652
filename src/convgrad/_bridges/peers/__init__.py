"""TensorFlow, PyTorch and JAX: one module each that knows how to call it, for all who compare with it.

    wanted              what a framework is asked for, and the answer before it is computed
    tensorflow, torch, jax    the six operations, arrays in and out, the number of threads

A framework is imported by the functions of its module and by nothing else. Importing this package imports none. Call
those functions in a process that exists for the framework, or in a test: its threads and its settings stay for good.
Timing, checking and recording are the callers' business.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ..._base.dtypes import AnyArray
from . import jax, tensorflow, torch
from .wanted import Prepared, Wanted

__all__ = ["FRAMEWORKS", "Framework", "Prepared", "Wanted"]


@dataclass(frozen=True)
class Framework:
    """A row: what is known about a framework without importing it, and the module that calls it."""

    name: str
    """What its users import."""
    title: str
    module: ModuleType
    distributions: tuple[str, ...]
    """The names it is installed under."""
    variables: Mapping[str, str]
    """What its process should have in the environment: no GPU, few words."""
    thread_variables: tuple[str, ...]
    """What it reads the number of threads from."""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.name) is not None

    @property
    def version(self) -> str:
        """The version that is installed, or nothing."""
        from importlib.metadata import PackageNotFoundError, version  # takes 10 ms

        for each in self.distributions:
            try:
                return version(each)
            except PackageNotFoundError:
                continue
        return ""

    def environment(self, threads: int) -> dict[str, str]:
        """Return the variables for a process that is kept to some threads."""
        return {**self.variables, **dict.fromkeys(self.thread_variables, str(threads))}

    def load(self) -> None:
        """Import the framework here; variables that are set already stay as they are."""
        for name, value in self.variables.items():
            os.environ.setdefault(name, value)
        import_module(self.name)

    def limit_threads(self, threads: int) -> None:
        """Keep the framework to some threads; call it before the first operation."""
        self.load()
        self.module.limit_threads(threads)

    def prepare(self, wanted: Wanted, first: AnyArray, second: AnyArray, **way: Any) -> Prepared:
        """Convert the operands and say how the result is computed; each module lists its ways.

        Raises ImportError where the framework is absent, and what the framework raises where it refuses.
        """
        prepared: Prepared = self.module.prepare(wanted, first, second, **way)
        return prepared

    def compute(self, wanted: Wanted, first: AnyArray, second: AnyArray, **way: Any) -> AnyArray:
        """Return the result."""
        prepared = self.prepare(wanted, first, second, **way)
        return prepared.read(prepared.call())


FRAMEWORKS = {
    row.name: row
    for row in (
        Framework(
            "tensorflow",
            "TensorFlow",
            tensorflow,
            ("tensorflow", "tensorflow-cpu"),
            {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""},
            ("OMP_NUM_THREADS",),
        ),
        Framework(
            "torch",
            "PyTorch",
            torch,
            ("torch",),
            {},
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
        ),
        Framework(
            "jax",
            "JAX",
            jax,
            ("jax",),
            {"JAX_PLATFORMS": "cpu"},
            ("NPROC", "OMP_NUM_THREADS"),
        ),
    )
}
