"""Asks a real TensorFlow what it says of convolutions, and writes goldens/convolutions.txt. Run by hand:

    python tests/cc/conv_goldens.py      with a Python that has TensorFlow

A line is what `conv_run.cc` reads behind its verb, a tab, and TensorFlow's answer: a shape, or code and message. Shape
rules are asked in a graph; kernels run in a session, each in a process of its own, since TensorFlow dies of some.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent / "goldens" / "convolutions.txt"
BASES = ("Conv2D", "DepthwiseConv2dNative")
NAMES = {
    "": ("input", "filter"),
    "BackpropInput": ("input_sizes", "filter", "out_backprop"),
    "BackpropFilter": ("input", "filter_sizes", "out_backprop"),
}
NOT_FOLLOWED = (
    "on CPU",
    "CPU implementation",
    "equal length strides",
    "larger than 0",
    "OOM",
    "enough elements",
    "-92233",
)
"""What its CPU kernels do not have, and where they die or wrap around on other data."""
CODES = {"InvalidArgumentError": 3, "UnimplementedError": 12, "ResourceExhaustedError": 8}


def tensorflow() -> Any:
    """Return TensorFlow, which only who writes goldens has."""
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
    import tensorflow as tf

    return tf


def shape_text(shape: list[int | None] | None) -> str:
    return "*" if shape is None else "x".join("?" if size is None else str(size) for size in shape)


def settings(choose: random.Random) -> dict[str, Any]:
    """Return attributes, wrong ones among them."""

    def steps(low: int) -> list[int]:
        found = [1, choose.randint(1, 2), choose.randint(1, 2), 1]
        if choose.random() < 0.12:
            found = choose.choice(
                [[1] * 3, [], [1] * 5, [1, low, 1, 1], [1, 1, low, 1], [2, 1, 1, 1], [1, 1, 1, 2], [1, 2**31, 1, 1],
                 [1, -(2**31) - 1, 1, 1], [2, 2, 2, 2]]
            )  # fmt: skip
        return found

    data_format = choose.choice(["NHWC", "NCHW"])
    padding = choose.choice(["SAME", "VALID", "EXPLICIT"])
    pads = [choose.randint(0, 3) for _ in range(4)]
    explicit = [0, 0, *pads, 0, 0] if data_format == "NHWC" else [0, 0, 0, 0, *pads]
    if padding != "EXPLICIT":
        explicit = []
    if choose.random() < 0.1:
        huge = [0, 0, 2**63 - 1, 2, 2**63 - 1, 1, 0, 0]
        explicit = choose.choice(
            [
                [],
                [1],
                [0] * 8,
                [1] * 8,
                [0] * 9,
                [0, 0, -1, *[0] * 5],
                [2, *[0] * 7],
                huge,
                [0] * 4 + [2**62] * 2 + [0] * 2,
            ]
        )
    strides, dilations = steps(choose.choice([0, -1])), steps(choose.choice([0, -1]))
    if data_format == "NCHW":
        strides, dilations = (
            [each[0], each[3], each[1], each[2]] if len(each) == 4 else each
            for each in (strides, dilations)
        )
    return {
        "strides": strides,
        "dilations": dilations,
        "padding": padding,
        "explicit_paddings": explicit,
        "data_format": data_format,
    }


def settings_text(how: dict[str, Any]) -> str:
    lists = (("strides", "strides"), ("dilations", "dilations"), ("explicit", "explicit_paddings"))
    words = " ".join(f"{name}={','.join(map(str, how[key]))}" for name, key in lists)
    return f"{words} padding={how['padding']} format={how['data_format']}"


def shapes(choose: random.Random, depthwise: bool, how: dict[str, Any]) -> list[list[int]]:
    """Return input, filter and a gradient that fits them more often than not."""
    window = [choose.randint(1, 3), choose.randint(1, 3)]
    groups, depth, each = choose.choice([1, 1, 1, 2]), choose.randint(1, 2), choose.randint(1, 2)
    channels = groups * depth
    rows, cols = choose.randint(3, 6), choose.randint(3, 6)
    filters = [*window, channels, each] if depthwise else [*window, depth, groups * each]
    out = channels * each if depthwise else groups * each
    nhwc = how["data_format"] == "NHWC"
    sizes = []
    for at, (size, taps) in enumerate(((rows, window[0]), (cols, window[1]))):
        where = (1 if nhwc else 2) + at
        try:
            stride, dilation = how["strides"][where], how["dilations"][where]
            pads = how["explicit_paddings"][2 * where : 2 * where + 2] or [0, 0]
            room = size if how["padding"] == "SAME" else size + sum(pads) - (taps - 1) * dilation
            sizes.append(max(0, -(-room // stride)) if -9 < room < 999 else 1)
        except (IndexError, ZeroDivisionError):
            sizes.append(size)
    batch = choose.randint(1, 2)
    if nhwc:
        return [[batch, rows, cols, channels], filters, [batch, *sizes, out]]
    return [[batch, channels, rows, cols], filters, [batch, out, *sizes]]


def spoil(choose: random.Random, shape: list[int], chance: float) -> list[int]:
    shape = list(shape)
    if choose.random() < chance:
        at = choose.randrange(4)
        shape[at] = choose.choice([0, 1, shape[at] + 1, shape[at] * 2, max(0, shape[at] - 2)])
    if choose.random() < chance / 3:
        shape = shape[: choose.randint(0, 3)]
    return shape


def partial(choose: random.Random, shape: list[int]) -> list[int | None] | None:
    if choose.random() < 0.1:
        return None
    return [None if choose.random() < 0.15 else size for size in shape]


def answer(error: Exception) -> str:
    text = str(error)
    node = text.rfind("\nNode: '")
    if node >= 0:
        text = text[node:].split("'\n", 1)[1]
    text = text.split("\n")[0].split(" for '{{node ")[0]
    return f"{CODES.get(type(error).__name__, 3)} {text}"


def infer(choose: random.Random) -> tuple[str, str] | None:
    base, suffix = choose.choice(BASES), choose.choice(list(NAMES))
    how = settings(choose)
    words, inputs = [], {}
    given = dict(
        zip(("input", "filter", "out_backprop"), shapes(choose, base != "Conv2D", how), strict=True)
    )
    tf = tensorflow()
    with tf.Graph().as_default():
        for name in NAMES[suffix]:
            tensor = spoil(choose, given[name.removesuffix("_sizes")], 0.15)
            if not name.endswith("sizes"):
                known = partial(choose, tensor)
                inputs[name] = tf.compat.v1.placeholder(tf.float32, known)
                words.append(f"in=float:{shape_text(known)}")
                continue
            if choose.random() < 0.1:
                tensor = tensor[1:3]
            if choose.random() < 0.1 and tensor:
                tensor[choose.randrange(len(tensor))] = choose.choice([-1, -2, -5])
            kind = choose.randrange(5)
            if kind == 0:
                known = choose.choice([None, [4], [2], [3], [None], [], [1, 4]])
                inputs[name] = tf.compat.v1.placeholder(tf.int32, known)
                words.append(f"in=int32:{shape_text(known)}")
            else:
                inputs[name] = tf.constant(tensor, tf.int32, [len(tensor)])
                words.append(f"in=int32:{len(tensor)}={';'.join(map(str, tensor))}")
        line = f"op={base + suffix} {settings_text(how)} {' '.join(words)}"
        try:
            result = getattr(tf.raw_ops, base + suffix)(**inputs, **how)
        except (ValueError, tf.errors.OpError) as error:
            return line, answer(error)
        sizes = result.shape.as_list()
        return line, "[" + ",".join("?" if size is None else str(size) for size in sizes) + "]"


def run(choose: random.Random) -> tuple[str, str] | None:
    """Ask a kernel; None where TensorFlow is not to be followed."""
    base, suffix = choose.choice(BASES), choose.choice(list(NAMES))
    how = settings(choose)
    if how["data_format"] == "NCHW":  # the rest is what TensorFlow has no kernels for
        return None
    steps = how["dilations"], how["strides"]
    if (base + suffix != "Conv2D" and max(steps[0][1:3], default=1) > 1) or steps[0] == []:
        how["dilations"] = [1, 1, 1, 1]
    if base != "Conv2D":
        how["dilations"] = [1, 1, 1, 1]
        if len(steps[1]) == 4 and min(steps[1]) > 0:
            how["strides"] = [steps[1][0], steps[1][1], steps[1][1], steps[1][3]]
    words, inputs, feeds = [], {}, {}
    given = dict(
        zip(("input", "filter", "out_backprop"), shapes(choose, base != "Conv2D", how), strict=True)
    )
    tf = tensorflow()
    with tf.Graph().as_default():
        for name in NAMES[suffix]:
            tensor = spoil(choose, given[name.removesuffix("_sizes")], 0.2)
            if name.endswith("sizes"):
                if choose.random() < 0.1:
                    tensor = tensor[1:3]
                if choose.random() < 0.1 and tensor:
                    tensor[choose.randrange(len(tensor))] = choose.choice([-1, -2, -5])
                value = np.array(tensor, np.int32)
                if choose.random() < 0.05:
                    value = choose.choice([np.array(3, np.int32), value[None]])
                words.append(
                    f"in=int32:{'x'.join(map(str, value.shape))}={';'.join(map(str, value.ravel()))}"
                )
            else:
                value = np.ones(tensor, np.float32)
                words.append(f"in=float:{'x'.join(map(str, tensor))}")
            inputs[name] = tf.compat.v1.placeholder(value.dtype, None)
            feeds[inputs[name]] = value
        line = f"op={base + suffix} {settings_text(how)} {' '.join(words)}"
        try:
            result = getattr(tf.raw_ops, base + suffix)(**inputs, **how)
        except (ValueError, tf.errors.OpError):
            return None
        try:
            with tf.compat.v1.Session() as session:
                found = session.run(result, feeds)
        except tf.errors.OpError as error:
            found = answer(error)
            return None if any(words in found for words in NOT_FOLLOWED) else (line, found)
        return line, "[" + ",".join(map(str, found.shape)) + "]"


def apart(choose: random.Random) -> tuple[str, str] | None:
    """The same in a child, whose death is None."""
    read, write = os.pipe()
    seed = choose.random()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            found = run(random.Random(seed))
            if found:
                os.write(write, "\t".join(found).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if status or not text:
        return None
    line, _, result = text.partition("\t")
    return line, result


def main(count: int) -> None:
    choose = random.Random(16)
    found = [("RUN", apart(choose)) for _ in range(4 * count)]
    found += [("INFER", infer(choose)) for _ in range(3 * count)]
    lines = {f"{verb} {each[0]}\t{each[1]}" for verb, each in found if each is not None}
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("".join(f"{line}\n" for line in sorted(lines)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
