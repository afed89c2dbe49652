"""Packs in tests: exported, compiled with what this machine has, and called from here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad._apps.export import names
from convgrad._problem import text as _problem_text
from convgrad._problem.convolution import Kind, Problem

INCLUDE = Path(convgrad.__file__).parent / "include"
STRICT = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Wcast-align",
    "-Wcast-qual",
    "-pedantic",
    "-Werror",
]
COMPILERS = [
    ("gcc", "c99"),
    ("gcc", "c11"),
    ("clang", "c99"),
    ("clang", "c11"),
    ("g++", "c++17"),
    ("clang++", "c++17"),
]
"""A compiler and a standard of its language."""

_CALL = r"""
#include <pthread.h>
#include <stdatomic.h>
#include "convgrad_pack.h"

typedef struct team { atomic_llong next; int64_t chunks; cg_task task; const cg_job *job; atomic_int bad; } team;
typedef struct member { team *of; int worker; } member;

static void *work(void *argument) {
  member *me = (member *)argument;
  for (;;) {
    int64_t chunk = atomic_fetch_add(&me->of->next, 1);
    if (chunk >= me->of->chunks) return NULL;
    if (me->of->task(me->of->job, chunk, me->worker) != CG_OK) atomic_store(&me->of->bad, 1);
  }
}

static int parallel(void *context, int64_t chunks, int workers, cg_task task, const cg_job *job) {
  pthread_t threads[CG_MOST_WORKERS];
  member members[CG_MOST_WORKERS];
  team all;
  int i;
  ++*(int *)context;
  atomic_init(&all.next, 0);
  atomic_init(&all.bad, 0);
  all.chunks = chunks; all.task = task; all.job = job;
  for (i = 0; i < workers; i++) {
    members[i].of = &all; members[i].worker = i;
    if (pthread_create(&threads[i], NULL, work, &members[i])) return 1;
  }
  for (i = 0; i < workers; i++) pthread_join(threads[i], NULL);
  return atomic_load(&all.bad);
}

size_t scratch_of(const cg_entry *e, int threads) { return cg_scratch_bytes(e, threads); }
const cg_entry *find_in(const cg_pack *pack, const cg_problem *problem) { return cg_find(pack, problem); }
int run_threads(const cg_entry *e, const void *a, const void *b, void *c, void *s, size_t n, int threads, int *shared) {
  return cg_run_parallel(e, a, b, c, s, n, threads, parallel, shared);
}
"""


def tool(name: str) -> str:
    """Return a program of this machine, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program that must end well."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


class Library:
    """A pack as a shared library in this process."""

    def __init__(self, folder: Path, name: str) -> None:
        call = folder / "call.c"
        call.write_text(_CALL)
        shared = folder / f"{name}.so"
        run(
            *(tool("gcc"), "-std=c11", "-O1", "-fPIC", "-shared", "-pthread", "-I", folder, call),
            *(folder / f"{name}.c", folder / f"lib{name}.a", "-o", shared),
        )
        self.name = name
        self.code = ctypes.CDLL(str(shared))
        self.code.scratch_of.restype = ctypes.c_size_t
        self.code.find_in.restype = ctypes.c_void_p

    def call(self, problem: Problem, first: Any, second: Any, threads: int = 0) -> Any:
        """Run a problem by its own function, or on threads; memory starts full of NaN."""
        function = names.function(self.name, problem)
        entry = ctypes.byref(ctypes.c_char.in_dll(self.code, f"{function}_entry"))
        size = self.code.scratch_of(entry, max(threads, 1))
        memory = np.full(size + 64, 255, np.uint8)
        scratch = ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)
        result = np.full(problem.result_bytes, 255, np.uint8)
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in (first, second, result)]
        if threads:
            shared = ctypes.c_int(0)
            code = self.code.run_threads(
                entry, *pointers, scratch, ctypes.c_size_t(size), threads, ctypes.byref(shared)
            )
        else:
            code = getattr(self.code, function)(*pointers, scratch, ctypes.c_size_t(size))
        assert code == 0, (problem, code)
        return result.view(problem.dtype.numpy).reshape(problem.result_shape)


def operands(problem: Problem, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw normal numbers."""
    shapes = {
        Kind.FORWARD: (problem.input_shape, problem.filter_shape),
        Kind.INPUT_GRADIENT: (problem.filter_shape, problem.output_shape),
        Kind.FILTER_GRADIENT: (problem.input_shape, problem.output_shape),
    }[problem.kind]
    first, second = (rng.standard_normal(shape).astype(problem.dtype.numpy) for shape in shapes)
    return first, second


def jit(problem: Problem, first: Any, second: Any) -> Any:
    """Compute the same with the public function."""
    name = _problem_text.write(problem).split()[0]
    rows, cols = problem.rows, problem.cols
    settings = {
        "strides": (rows.stride, cols.stride),
        "dilations": (rows.dilation, cols.dilation),
        "padding": ((rows.before, rows.after), (cols.before, cols.after)),
        "data_format": problem.data_format,
    }
    if problem.kind is Kind.FORWARD:
        return getattr(convgrad, name)(first, second, **settings)
    if problem.kind is Kind.INPUT_GRADIENT:
        return getattr(convgrad, name)(problem.input_shape, first, second, **settings)
    return getattr(convgrad, name)(first, problem.filter_shape, second, **settings)
