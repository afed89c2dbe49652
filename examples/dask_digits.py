"""Train the network of digits.py on several processes, and get the same weights from any number of them.

What you learn: the layers of layers.py take Dask arrays as they take NumPy's. The batch is one, cut into chunks of
images; a pass forwards and backwards makes a graph of tasks and computes nothing. Workers compute chunks of images, and
a filter's gradient is the sum of what the chunks add to it, in a tree that follows from the chunks alone. So who
computes what, when, and on how many processes changes no bit.

    pip install '.[dask,examples]'
    python examples/dask_digits.py --workers 2
    python examples/dask_digits.py --compare

The second compares the weights after training on 1, 2 and 3 processes. It exits with 1 if a bit differs, or if
nothing was learnt.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from digits import Adam, Labels, build, cross_entropy, data, shifted
from layers import Array, Layer, Normalize

BATCH = 240  # images of a step
CHUNK = 80  # images of a chunk: 3 chunks, for up to 3 workers. More of them are more tasks, 0.3 ms and more each


def gradient_of_scores(scores: Array, labels: Labels, batch: int) -> Array:
    """Of the batch's mean loss, for the images of one chunk."""
    _, g = cross_entropy(scores, labels[:, 0])
    return g * np.float32(len(labels) / batch)


def in_chunks(x: Any) -> Any:
    """Cut an array into chunks of images."""
    import dask.array as da

    return da.from_array(x, chunks=(CHUNK, *x.shape[1:]))


def gradients(network: list[Layer], images: Array, labels: Labels) -> Array:
    """Compute the gradients of all layers for one batch, on the workers; return the scores."""
    import dask.array as da

    x = in_chunks(images)
    for layer in network:
        x = layer.forward(x, training=True)
    of_chunk = partial(gradient_of_scores, batch=len(labels))
    g = da.map_blocks(of_chunk, x, in_chunks(labels[:, None]), dtype=x.dtype)
    for layer in reversed(network):
        g = layer.backward(g)
    normal = [layer for layer in network if isinstance(layer, Normalize)]
    averages = [each for layer in normal for each in (layer.mean, layer.variance)]
    # Until here nothing was computed.
    values = iter(
        computed([x, *averages, *(each for layer in network for each in layer.gradients)])
    )
    scores = next(values)
    for layer in normal:
        layer.mean, layer.variance = next(values), next(values)
    for layer in network:
        layer.gradients = tuple(next(values) for _ in layer.gradients)
    return scores


def computed(arrays: list[Any]) -> list[Array]:
    """Compute arrays of Dask as one long one, for which Dask makes one graph; one for each would take it seconds."""
    import dask.array as da

    long = da.concatenate([each.ravel() for each in arrays]).compute()
    parts = np.split(long, np.cumsum([each.size for each in arrays])[:-1])
    return [part.reshape(each.shape) for part, each in zip(parts, arrays, strict=True)]


def digest(network: list[Layer]) -> str:
    """A short text that differs if any bit of the weights does."""
    weights = hashlib.blake2b(digest_size=16)
    for layer in network:
        for parameter in layer.parameters:
            weights.update(parameter.tobytes())
    return weights.hexdigest()


def train(workers: int, steps: int) -> tuple[str, float, float]:
    """Train a new network on so many processes; return the digest of its weights, the first and the last loss."""
    from distributed import Client, LocalCluster

    random = np.random.default_rng(0)
    x, y, _, _ = data(random)
    network = build(random)
    optimizer = Adam(network)
    losses = []
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        started = time.perf_counter()
        for _ in range(steps):
            chosen = random.choice(len(y), BATCH, replace=False)
            scores = gradients(network, shifted(x[chosen], random), y[chosen])
            losses.append(cross_entropy(scores, y[chosen])[0])
            optimizer.step(0.01)
        took = time.perf_counter() - started
    found = digest(network)
    change = f"loss {losses[0]:.3f} to {losses[-1]:.3f}"
    print(
        f"{workers} workers   {steps} steps in {took:.1f} s, {change}, weights {found}", flush=True
    )
    return found, losses[0], losses[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=2, choices=(1, 2, 3),
                        help="processes of a LocalCluster (2)")  # fmt: skip
    parser.add_argument("--steps", type=int, default=10, help="of 240 images each (10)")
    parser.add_argument("--compare", action="store_true", help="train on 1, 2 and 3 processes")
    given = parser.parse_args()
    if given.steps < 2:
        parser.error(f"--steps must be at least 2, not {given.steps}")
    for name in ("dask", "distributed"):
        if find_spec(name) is None:
            sys.exit(f"dask_digits.py: {name} is missing: pip install '.[dask]'")
    runs = [
        train(workers, given.steps)
        for workers in ((1, 2, 3) if given.compare else (given.workers,))
    ]
    same = len({found for found, _, _ in runs}) == 1
    learnt = all(last < first for _, first, last in runs)
    verdict = "ok" if same and learnt else "OTHER BITS" if learnt else "NOT LEARNT"
    print(f"verdict     {verdict}, the loss must fall and the weights be the same to the last bit")
    return 0 if same and learnt else 1


if __name__ == "__main__":
    sys.exit(main())
