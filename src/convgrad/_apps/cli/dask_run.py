"""`run` through Dask: operands and results of any size, computed chunk by chunk by threads or by workers elsewhere.

The operation is the same Python call, on lazy arrays. Each block of the result is summarised and written by the task
that comes behind it, so this process holds no image. A filter gradient is small and comes here whole.
"""

from __future__ import annotations

import hashlib
import math
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind
from . import chunking, dask_graph, operands, operation, outputs, schedulers, sink, sources, stores
from .operands import Computation
from .outputs import Archive, RunOutput
from .parts import Chunked, Chunks
from .schedulers import Scheduler, Threads
from .screen import Advance, Screen
from .slicing import Summary
from .stacks import Stack
from .verb import Refusal

_REDRAW = 0.1
"""Seconds between two pictures of the bar: drawing takes a millisecond, small tasks less."""
_IMAGES = ("input", "out_backprop")

Call = Callable[[Computation, Any, Any], Any]
"""Calls the operation on an input, or its sizes, and a gradient."""


@dataclass
class Account:
    """What a run through Dask tells beside the summary of its result."""

    scheduler: str
    chunks: Chunks
    """Of the result, as it was written."""
    tasks: int
    bytes_moved: int
    """What tasks take from each other, at most; of it, what lies on another worker has to be sent."""
    checksum: str | None = None
    """Of the result's bytes in order; only known where they came in order, which is in one block."""
    chunk_checksum: str | None = None
    """Of the checksums of all blocks, in order."""

    @property
    def blocks(self) -> int:
        return math.prod(map(len, self.chunks))


def add_arguments(parser: Any) -> None:
    """Add where to compute, and in what chunks."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compute on the workers of a Dask scheduler: tcp://host:port, or the scheduler's .json file",
    )
    parser.add_argument(
        "--chunks",
        type=operation.chunks,
        metavar="N,H,W,C",
        help="compute through Dask in chunks of the images of this size, in --data-format order; "
        "-1 is all (--chunks=-1,256,256,-1); default those of a store, else images up to 64M",
    )


def is_wanted(given: Namespace) -> bool:
    """Tell whether a run goes through Dask."""
    if given.scheduler is not None or given.chunks is not None:
        return True
    images = (getattr(given, name) for name in _IMAGES)
    if any(text is not None and operands.is_many(text) for text in images):
        return True
    return given.output is not None and outputs.is_many(given.output)


def run(given: Namespace, screen: Screen, call: Call) -> tuple[Computation, Summary, Account]:
    """Check everything, compute, write; `call` calls the operation."""
    schedulers.need("dask")
    _check_options(given)
    output = outputs.check(given.output, force=given.force) if given.output else None
    with ExitStack() as opened:
        work = operands.read_lazily(given, opened)
        _check_output(given, output, work)
        images = _images(work)
        _check_apart(given, output, images)
        scheduler = opened.enter_context(_scheduler(given))
        scheduler.check(_paths(images))
        rows = work.first.data_format.index("H")
        chunks = chunking.choose_chunks(images, given.chunks, rows)
        arrays = {name: dask_graph.array(each, chunks[name]) for name, each in images.items()}
        result = _called(work, arrays, call)
        job = _Job(given, screen, work, scheduler, Summary())
        moved = dask_graph.bytes_moved(work.problems, arrays)
        if work.first.kind is Kind.FILTER_GRADIENT:
            account = job.small(result, output, moved)
        else:
            assert not isinstance(output, outputs.Archive)  # it was refused
            account = job.large(result, output, moved)
    return work, job.summary, account


def _check_options(given: Namespace) -> None:
    if given.slice_bytes is not None:
        raise Refusal(
            "--slice-bytes is for files that are read slice by slice; "
            "through Dask, --chunks says how much is held at a time"
        )
    if given.scheduler is not None and given.threads is not None:
        raise Refusal("--threads is for this machine; the workers of --scheduler have their own")


def _check_output(given: Namespace, output: RunOutput | Archive | None, work: Computation) -> None:
    filter_gradient = work.first.kind is Kind.FILTER_GRADIENT
    if filter_gradient and isinstance(output, outputs.Files):
        raise Refusal(
            f"the output {given.output} has a file for each image, and a filter gradient has no images; "
            "choose .npy, .npz or .zarr"
        )
    if isinstance(output, outputs.Archive) and not filter_gradient:
        raise Refusal(
            f"the output {given.output}: an .npz file is written from front to back, and blocks come in any order; "
            "choose .npy, .zarr or a stack"
        )


def _check_apart(
    given: Namespace, output: RunOutput | Archive | None, images: dict[str, Chunked]
) -> None:
    """Refuse a folder that an operand lies in, and a file among those of a stack, which the next run would read."""
    if output is None:
        return
    of_filters = (text for text in (given.filter, given.pointwise_filter) if text)
    files = [*_paths(images), *(str(stores.split(text)[0]) for text in of_filters)]
    target = output.target.resolve()
    if any(target in Path(each).resolve().parents for each in files):
        raise Refusal(f"the output {given.output} must not be a folder that operands are read from")
    stacks = (path for each in images.values() if isinstance(each, Stack) for path in each.paths)
    if any(target.parent == Path(each).resolve().parent for each in stacks):
        raise Refusal(
            f"the output {given.output} must not be in the folder of a stack that is read"
        )


@contextmanager
def _scheduler(given: Namespace) -> Iterator[Scheduler]:
    if given.scheduler is None:
        yield Threads(given.threads)
    else:
        with schedulers.connected(given.scheduler) as cluster:
            yield cluster


def _images(work: Computation) -> dict[str, Chunked]:
    found = {"input": work.operands.input, "out_backprop": work.operands.grad}
    images: dict[str, Any] = {name: each for name, each in found.items() if each is not None}
    for name, each in images.items():
        if isinstance(each, sources.Packed):
            raise Refusal(
                f"--{name.replace('_', '-')}: a compressed array cannot be read in parts; save it as .npy"
            )
    return images


def _paths(images: dict[str, Chunked]) -> list[str]:
    """Return what workers must see, each once."""
    return list(dict.fromkeys(path for each in images.values() for path in each.paths))


def _called(work: Computation, arrays: dict[str, Any], call: Call) -> Any:
    kind = work.first.kind
    image = work.first.input_shape if kind is Kind.INPUT_GRADIENT else arrays["input"]
    return call(work, image, arrays.get("out_backprop"))


@dataclass(frozen=True)
class _Job:
    """What is to be computed, by whom, and who reports progress."""

    given: Namespace
    screen: Screen
    work: Computation
    scheduler: Scheduler
    summary: Summary

    def small(self, result: Any, output: RunOutput | Archive | None, moved: int) -> Account:
        """Compute a filter gradient, which comes here whole."""
        row, force = self.work.first.dtype, self.given.force
        found, tasks = self._computed(result)
        array = np.ascontiguousarray(found)
        self.summary.add(array)
        whole: Chunks = tuple((size,) for size in array.shape)
        if isinstance(output, outputs.Store):
            with output.place(array.shape, row, whole, force=force) as (place, _):
                outputs.write_block(place, tuple((0, size) for size in array.shape), array)
        elif output is not None:
            sink.check_space(output.target, array.nbytes)
            with sink.written(output.target, array.shape, row.numpy, force=force) as writer:
                writer.write(array)
        return Account(self.scheduler.name, whole, tasks, moved, checksum=self.summary.checksum)

    def large(self, result: Any, output: RunOutput | None, moved: int) -> Account:
        """Compute images; each is written by the task that computes it."""
        row, shape = self.work.first.dtype, self.work.last.result_shape
        chunks: Chunks = result.chunks if output is None else output.blocks(result.chunks, row)
        if chunks != result.chunks:
            result = result.rechunk(chunks)
            moved += math.prod(shape) * row.itemsize
        with ExitStack() as opened:
            place = None
            if output is not None:
                written = output.place(shape, row, chunks, force=self.given.force)
                place, path = opened.enter_context(written)
                self.scheduler.check([str(path)])
            found, tasks = self._computed(dask_graph.behind(result, place))
        account = Account(self.scheduler.name, chunks, tasks, moved)
        blocks = dask_graph.records(found)
        for each in blocks:
            self.summary.include(each.least, each.most, each.total, each.elements)
        if len(blocks) == 1:
            account.checksum = blocks[0].checksum
        else:
            digests = bytes.fromhex("".join(each.checksum for each in blocks))
            account.chunk_checksum = hashlib.blake2b(digests, digest_size=8).hexdigest()
        return account

    def _computed(self, collection: Any) -> tuple[AnyArray, int]:
        """Compute an array; returns it and the number of tasks.

        The graph is left as it is. Dask's improvements would fuse the task that writes a block with the one that
        computes it, and put a second name in its place, which is a task again.
        """
        tasks = len(collection.__dask_graph__())
        with (
            self.screen.long_progress(self.given.op, tasks) as advance,
            self.summary.timed(),
        ):
            found = self.scheduler.compute(collection, _Steps(tasks, advance).take)
        return found, tasks


class _Steps:
    """Turns how much is done into steps of a bar, not too many."""

    def __init__(self, total: int, advance: Advance) -> None:
        self._total, self._advance = total, advance
        self._shown, self._last = 0, 0.0

    def take(self, done: int) -> None:
        now = time.monotonic()
        if done <= self._shown or (now - self._last < _REDRAW and done < self._total):
            return  # fewer than before: a worker was lost, and its tasks are done again
        self._advance(done - self._shown, f"{done:,} of {self._total:,} tasks")
        self._shown, self._last = done, now


def rows(account: Account) -> list[tuple[str, str]]:
    """Return what the table says of a run through Dask."""
    listed = ", ".join(str(max(sizes)) for sizes in account.chunks)
    checksum = ("checksum", account.checksum or "")
    if account.chunk_checksum:
        checksum = ("chunk checksum", account.chunk_checksum)
    return [
        checksum,
        ("chunks", f"{account.blocks:,} of at most [{listed}]"),
        ("tasks", f"{account.tasks:,} by {account.scheduler}"),
        ("moved", f"at most {account.bytes_moved / 1e6:,.2f} MB between tasks"),
    ]


def document(account: Account) -> dict[str, Any]:
    """Return the same for the JSON document."""
    return {
        "chunk_checksum": account.chunk_checksum,
        "scheduler": account.scheduler,
        "chunks": [max(sizes) for sizes in account.chunks],
        "blocks": account.blocks,
        "tasks": account.tasks,
        "bytes_moved": account.bytes_moved,
    }
