"""Who computes a graph of Dask: threads of this process, or the workers of a scheduler somewhere.

Both tell how many tasks are done while they work, and stop when they are interrupted: when `compute` raises, no task is
running any more that could write. Dask and its scheduler are imported when they are needed.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import convgrad

from ..._base.errors import BackendMissingError, ConvgradError, said
from ..._base.files import open_regular
from ..._base.version import __version__
from .verb import Refusal

PATIENCE = 10.0
"""Seconds to wait for a scheduler, for its first worker, and for tasks that were cancelled."""
_BLINK = 0.2
"""Seconds between two looks at a scheduler, and between two pictures of a bar."""
_HANDED_ON = (Refusal, ConvgradError, MemoryError)
"""Errors of tasks that say what a person has to know."""

Done = Callable[[int], None]
"""Takes how many tasks are done by now."""


class Scheduler(Protocol):
    """Who computes."""

    @property
    def name(self) -> str: ...
    def check(self, paths: Sequence[str]) -> None:
        """Refuse if a worker does not see the files."""
        ...

    def compute(self, collection: Any, done: Done) -> Any:
        """Return the numbers of an array of Dask, whose graph is taken as it is."""
        ...


def need(*packages: str) -> None:
    """Refuse politely where Dask is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise BackendMissingError(
            f"this needs {' and '.join(missing)}: pip install {' '.join(missing)}"
        )


class Threads:
    """Threads of this process."""

    name = "threads"

    def __init__(self, count: int | None) -> None:
        self._count = count or convgrad.get_num_threads()

    def check(self, paths: Sequence[str]) -> None:
        """They see what the command has seen."""

    def compute(self, collection: Any, done: Done) -> Any:
        from dask.callbacks import Callback

        count = 0

        def finished(*_: Any) -> None:
            nonlocal count
            count += 1
            done(count)

        pool = ThreadPoolExecutor(self._count, "convgrad-run", self._enter)
        try:
            with Callback(posttask=finished):
                return collection.compute(scheduler="threads", pool=pool, optimize_graph=False)
        except Exception as error:
            raise _refusal(error) from None
        finally:
            # What has begun ends before files are removed.
            pool.shutdown(wait=True, cancel_futures=True)

    def _enter(self) -> None:
        """Kernels of all tasks together use as many threads as there are tasks at a time."""
        convgrad.threads(self._count).__enter__()


class Cluster:
    """The workers of a scheduler."""

    def __init__(self, address: str, client: Any) -> None:
        self.name = address
        self._client = client

    def check(self, paths: Sequence[str]) -> None:
        """Refuse if a worker lacks this package, or does not see a file."""

        def version() -> str:
            # Sent by value, as all that is asked: it runs where the package is missing, too.
            import convgrad

            return convgrad.__version__

        def unseen_of(paths: list[str]) -> list[str]:
            import os

            return [path for path in paths if not os.path.exists(path)]  # noqa: PTH110  # sent by value

        for worker, found in self._asked(version).items():
            if isinstance(found, Exception):
                raise Refusal(
                    f"the worker {worker} of {self.name} cannot import convgrad ({said(found)}); "
                    f"install convgrad {__version__} there, with its extra `dask`"
                )
            if found != __version__:
                raise Refusal(
                    f"the worker {worker} of {self.name} has convgrad {found}, this is {__version__}; "
                    f"install convgrad {__version__} there, with its extra `dask`"
                )
        for worker, unseen in self._asked(unseen_of, list(paths)).items():
            if unseen:
                what = said(unseen) if isinstance(unseen, Exception) else unseen[0]
                raise Refusal(
                    f"the worker {worker} of {self.name} does not see {what}: "
                    "workers must see the same file system, under the same names"
                )

    def compute(self, collection: Any, done: Done) -> Any:
        groups = _groups(collection)
        total = len(collection.__dask_graph__())
        future = self._sent(collection)
        try:
            with _Watch(self._client, groups) as watch:
                while future.status == "pending":
                    self._wait(future)
                    if watch.left is not None:
                        done(total - watch.left)
            if future.status == "error":
                raise _refusal(future.exception()) from None
            found = self._result(future)
            done(total)
            return found
        finally:
            if future.status != "finished":
                self._stop(future, groups)

    def _sent(self, collection: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the graph is large: a filter may be
                return self._client.compute(collection, optimize_graph=False)
        except OSError:
            raise self._lost() from None

    def _result(self, future: Any) -> Any:
        if future.status != "finished":
            raise self._lost()  # then everything is cancelled
        try:
            return future.result()
        except OSError:
            raise self._lost() from None

    def _wait(self, future: Any) -> None:
        import distributed

        with suppress(Exception):  # how it ended, if it has, is the future's to tell
            distributed.wait(future, timeout=_BLINK)

    def _stop(self, future: Any, groups: list[str]) -> None:
        """Cancel, and wait until what has begun has ended: it might write."""

        def executing(groups: list[str], dask_worker: Any = None) -> int:
            keys = [task.key for task in dask_worker.state.executing]
            return sum((key[0] if isinstance(key, tuple) else key) in groups for key in keys)

        with suppress(Exception):
            future.cancel()
        end = time.monotonic() + PATIENCE
        with suppress(Exception):
            while self._client.status == "running" and time.monotonic() < end:
                if not any(self._client.run(executing, groups).values()):
                    return
                time.sleep(_BLINK / 4)

    def _asked(self, question: Callable[..., Any], *plain: Any) -> dict[str, Any]:
        """Let all workers answer; an error is an answer too."""
        import distributed

        try:
            return dict(self._client.run(question, *plain, on_error="return"))
        except (OSError, distributed.TimeoutError):
            raise self._lost() from None

    def _lost(self) -> Refusal:
        return Refusal(f"the scheduler at {self.name} was lost; nothing was written")


class _Watch:
    """A thread that asks a scheduler how many tasks are not done: one that is lost leaves a question open for long."""

    def __init__(self, client: Any, groups: list[str]) -> None:
        self.left: int | None = None
        """None until the scheduler knows the tasks."""
        self._client, self._groups = client, groups
        self._over = threading.Event()

    def __enter__(self) -> _Watch:
        threading.Thread(target=self._ask, daemon=True, name="convgrad-watch").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _ask(self) -> None:
        def counted(groups: list[str], dask_scheduler: Any = None) -> int | None:
            # Sent by value: a scheduler need not have this package.
            known = dask_scheduler.task_groups
            found = [known[name] for name in groups if name in known]
            states = ("waiting", "queued", "processing", "no-worker")
            return sum(each.states[state] for each in found for state in states) if found else None

        with suppress(Exception):  # lost: the future says so
            while not self._over.wait(_BLINK):
                self.left = self._client.run_on_scheduler(counted, self._groups)


@contextmanager
def connected(text: str) -> Iterator[Cluster]:
    """Connect to a scheduler by its address, or by the file it wrote."""
    need("dask", "distributed")
    import distributed

    address = _from_file(Path(text)) if text.endswith(".json") else text
    if "://" not in address:
        raise Refusal(
            f"--scheduler {address!r} must be an address such as tcp://host:8786, or a scheduler's .json file"
        )
    with _quiet():
        client = _client(address)
        try:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except (OSError, distributed.TimeoutError):
                raise Refusal(f"the scheduler at {address} has no workers") from None
            yield Cluster(address, client)
        finally:
            with suppress(Exception):
                client.close(timeout=1)


def _from_file(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            return str(json.load(stream)["address"])
    except OSError as error:
        raise Refusal(f"--scheduler: cannot read {path}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError):
        raise Refusal(f"--scheduler: {path} is not the file of a scheduler") from None


def _client(address: str) -> Any:
    import distributed
    from distributed.comm import get_address_host_port, resolve_address

    try:
        # A client of an invalid address waits for itself when it is given up.
        get_address_host_port(resolve_address(address), strict=True)
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # no address, nobody there: of many kinds
        raise Refusal(f"cannot reach the scheduler at {address}: {said(error)}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Say what went wrong ourselves, in one line; Dask's clients log tracebacks."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _groups(collection: Any) -> list[str]:
    """Return the names by which a scheduler counts tasks: the first word of each key."""
    keys = collection.__dask_graph__()
    return list({str(key[0] if isinstance(key, tuple) else key) for key in keys})


def _refusal(error: BaseException) -> BaseException:
    """Say in a sentence why a task failed."""
    if isinstance(error, _HANDED_ON):
        return error
    text = said(error)
    if "No module named 'convgrad" in text:
        return Refusal(
            f"a worker cannot import convgrad ({text}); "
            f"install convgrad {__version__} there, with its extra `dask`"
        )
    if type(error).__name__ == "KilledWorker":
        return Refusal(
            "workers were lost again and again at the same task, perhaps for lack of memory; "
            f"choose smaller chunks by --chunks ({text})"
        )
    return Refusal(f"a task failed: {text}")
