"""`run` through Dask: operands and results of any size, computed chunk by chunk by threads or by workers elsewhere.

The operation is the same Python call, on lazy arrays. Each block of the result is summarised and written by the task
that comes behind it, so this process holds no image. A filter gradient is small and comes here whole.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from .._dtypes import AnyArray
from .._problem import Kind
from . import chunking, operands, operation, outputs, schedulers, sink, sources
from .operands import Work
from .outputs import Output, Place
from .parts import Chunked, Chunks, Region
from .schedulers import Scheduler, Threads
from .screen import Advance, Screen
from .slicing import Summary
from .verb import Refusal

_REDRAW = 0.1
"""Seconds between two pictures of the bar: drawing takes a millisecond, small tasks less."""
_IMAGES = ("input", "out_backprop")

Call = Callable[[Work, Any, Any], Any]
"""Calls the operation on an input, or its sizes, and a gradient."""


@dataclass
class Account:
    """What a run through Dask tells beside the summary of its result."""

    scheduler: str
    chunks: Chunks
    """Of the result, as it was written."""
    tasks: int
    checksum: str | None = None
    """Of the result's bytes in order; only known where they came in order, which is in one block."""
    chunk_checksum: str | None = None
    """Of the checksums of all blocks, in order."""

    @property
    def blocks(self) -> int:
        return math.prod(map(len, self.chunks))


@dataclass(frozen=True)
class Finished:
    """What the task behind a block does: look at the block, and write it."""

    place: Place | None
    region: Region


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


def wanted(given: Namespace) -> bool:
    """Tell whether a run goes through Dask."""
    if given.scheduler is not None or given.chunks is not None:
        return True
    images = (getattr(given, name) for name in _IMAGES)
    if any(text is not None and sources.is_many(text) for text in images):
        return True
    output = given.output or ""
    return output.lower().endswith((".zarr", "/")) or "{" in output


def run(given: Namespace, screen: Screen, call: Call) -> tuple[Work, Summary, Account]:
    """Check everything, compute, write; `call` calls the operation."""
    schedulers.need("dask")
    _check_options(given)
    output = outputs.check(given.output, force=given.force) if given.output else None
    with ExitStack() as files:
        work = operands.read_lazily(given, files)
        filter_gradient = work.first.kind is Kind.FILTER_GRADIENT
        _check_output(given, output, filter_gradient)
        images = _images(work)
        with _scheduler(given) as scheduler:
            scheduler.check(chunking.paths(images.values()))
            arrays = _arrays(images, given.chunks)
            result = _called(work, arrays, call)
            summary = Summary()
            if filter_gradient:
                account = _small(given, work, result, output, scheduler, summary, screen)
            else:
                account = _large(given, work, result, output, scheduler, summary, screen)
    return work, summary, account


def _check_options(given: Namespace) -> None:
    if given.slice_bytes is not None:
        raise Refusal(
            "--slice-bytes is for files that are read slice by slice; "
            "through Dask, --chunks says how much is held at a time"
        )
    if given.scheduler is not None and given.threads is not None:
        raise Refusal("--threads is for this machine; the workers of --scheduler have their own")


def _check_output(given: Namespace, output: Output | None, filter_gradient: bool) -> None:
    if filter_gradient and isinstance(output, outputs.Files):
        raise Refusal(
            f"the output {given.output} has a file for each image, and a filter gradient has no images; "
            "choose .npy, .npz or .zarr"
        )
    if given.output and output is None and not filter_gradient:
        raise Refusal(
            f"the output {given.output}: an .npz file is written from front to back, and blocks come in any order; "
            "choose .npy, .zarr or a stack"
        )


@contextmanager
def _scheduler(given: Namespace) -> Iterator[Scheduler]:
    if given.scheduler is None:
        yield Threads(given.threads)
    else:
        with schedulers.connected(given.scheduler) as cluster:
            yield cluster


def _images(work: Work) -> dict[str, Chunked]:
    found = {"input": work.operands.input, "out_backprop": work.operands.grad}
    images: dict[str, Any] = {name: each for name, each in found.items() if each is not None}
    for name, each in images.items():
        if isinstance(each, sources.InMemory):
            raise Refusal(
                f"--{name.replace('_', '-')}: a compressed array cannot be read in parts; save it as .npy"
            )
    return images


def _arrays(images: dict[str, Chunked], wanted: tuple[int, ...] | None) -> dict[str, Any]:
    chunks = chunking.choose(images, wanted)
    return {name: chunking.array(each, chunks[name]) for name, each in images.items()}


def _called(work: Work, arrays: dict[str, Any], call: Call) -> Any:
    kind = work.first.kind
    image = work.first.input_shape if kind is Kind.INPUT_GRADIENT else arrays["input"]
    return call(work, image, arrays.get("out_backprop"))


def _small(
    given: Namespace,
    work: Work,
    result: Any,
    output: Output | None,
    scheduler: Scheduler,
    summary: Summary,
    screen: Screen,
) -> Account:
    """Compute a filter gradient, which comes here whole."""
    row = work.first.dtype
    found, tasks = _computed(given, result, scheduler, summary, screen)
    array = np.ascontiguousarray(found)
    summary.add(array)
    whole: Chunks = tuple((size,) for size in array.shape)
    if isinstance(output, outputs.Store):
        with output.place(array.shape, row, whole, force=given.force) as (place, _):
            outputs.written(place, tuple((0, size) for size in array.shape), array)
    elif given.output:
        target = sink.check(Path(given.output), force=given.force)
        sink.check_space(target, array.nbytes)
        with sink.written(target, array.shape, row.numpy, force=given.force) as writer:
            writer.write(array)
    return Account(scheduler.name, whole, tasks, checksum=summary.checksum)


def _large(
    given: Namespace,
    work: Work,
    result: Any,
    output: Output | None,
    scheduler: Scheduler,
    summary: Summary,
    screen: Screen,
) -> Account:
    """Compute images, which are written by who computes them."""
    row, shape = work.first.dtype, work.last.result_shape
    chunks = result.chunks if output is None else output.blocks(result.chunks, row)
    if chunks != result.chunks:
        result = result.rechunk(chunks)
    with ExitStack() as opened:
        place = None
        if output is not None:
            place, path = opened.enter_context(output.place(shape, row, chunks, force=given.force))
            scheduler.check([str(path)])
        found, tasks = _computed(given, _behind(result, place), scheduler, summary, screen)
    blocks = list(found.reshape(-1))
    for least, most, total, count, _ in blocks:
        summary.include(least, most, total, count)
    account = Account(scheduler.name, chunks, tasks)
    digests = [digest for *_, digest in blocks]
    if len(digests) == 1:
        account.checksum = digests[0]
    else:
        joined = hashlib.blake2b(bytes.fromhex("".join(digests)), digest_size=8)
        account.chunk_checksum = joined.hexdigest()
    return account


def _behind(result: Any, place: Place | None) -> Any:
    """Put a task behind each block of a result; gives an array with a small record for each."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name = f"convgrad-write-{secrets.token_hex(8)}"
    ranges = [list(pairwise(accumulate(sizes, initial=0))) for sizes in result.chunks]
    tasks = {
        (name, *at): (
            finish,
            (result.name, *at),
            Finished(place, tuple(ranges[axis][n] for axis, n in enumerate(at))),
        )
        for at in product(*map(range, result.numblocks))
    }
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[result])
    chunks = tuple((1,) * count for count in result.numblocks)
    return da.Array(graph, name, chunks, meta=np.empty((0,) * 4, object))


def finish(block: AnyArray, how: Finished) -> AnyArray:
    """Summarise a block and write it; this is a task."""
    block = np.ascontiguousarray(block)
    summary = Summary()
    summary.add(block)
    if how.place is not None:
        outputs.written(how.place, how.region, block)
    record = np.empty((1, 1, 1, 1), object)
    record[0, 0, 0, 0] = (
        summary.least,
        summary.most,
        summary.total,
        summary.count,
        summary.checksum,
    )
    return record


def _computed(
    given: Namespace, collection: Any, scheduler: Scheduler, summary: Summary, screen: Screen
) -> tuple[AnyArray, int]:
    """Compute an array; returns it and the number of tasks."""
    import dask

    (collection,) = dask.optimize(collection)
    tasks = len(collection.__dask_graph__())
    with screen.long_progress(given.op, tasks) as advance, summary.timed():
        found = scheduler.compute(collection, _Steps(tasks, advance).take)
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
        ("tasks", f"{account.tasks:,}, by {account.scheduler}"),
    ]


def document(account: Account) -> dict[str, Any]:
    """Return the same for the JSON document."""
    return {
        "chunk_checksum": account.chunk_checksum,
        "scheduler": account.scheduler,
        "chunks": [max(sizes) for sizes in account.chunks],
        "blocks": account.blocks,
        "tasks": account.tasks,
    }
