"""Processes of other kinds: forked ones, without compiled ops, without kernels, without TensorFlow."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tensorflow_bridge import children

WORK = """
import hashlib, json
{before}
import numpy as np
import tensorflow as tf
from cases import KINDS, run
from tensorflow_bridge.configurations import some
from tensorflow_bridge.running import bits, operands, tensors
from tolerance import assert_close
seen = hashlib.sha256()
aligned = tensor = True
for case in some(30, seed=13):
    data = operands(case)
    given = tensors(data)
    for kind in KINDS:
        made = run(case, kind, given)
        tensor &= isinstance(made, tf.Tensor)
        assert_close(case, kind, data, np.asarray(made))
        aligned &= np.asarray(made).ctypes.data % 64 == 0 or 0 in made.shape
        seen.update(repr(bits(made)).encode())
        tf.nn.relu(made) + made  # an op on memory that lies otherwise would end the process
case = some(1, seed=14, dtype="float64")[0]
given = tensors(operands(case))
with tf.GradientTape() as outer:
    outer.watch(given.f)
    with tf.GradientTape() as tape:
        tape.watch(given.f)
        loss = tf.reduce_sum(run(case, "forward", given) ** 2)
    gradient = tape.gradient(loss, given.f)
    total = tf.reduce_sum(gradient ** 2)
second = outer.gradient(total, given.f)
seen.update(repr((bits(gradient), bits(second))).encode())
try:
    function = tf.function(lambda x, f: run(case, "forward", type(given)(x, f, None)), autograph=False)
    graph = bool(np.array_equal(function(given.x, given.f), run(case, "forward", given)))
except Exception as error:
    graph = f"{{type(error).__name__}}: {{error}}"
print(json.dumps({{"seen": seen.hexdigest(), "aligned": aligned, "tensor": tensor, "graph": graph}}))
"""


def work(before: str = "", **environment: str) -> Any:
    made = children.report(WORK.format(before=before), **environment)
    assert made["aligned"] and made["tensor"]
    return made


def test_without_the_c_interface() -> None:
    """A TensorFlow that takes no ops, simulated: eager calls give the same bits, graphs say what is missing."""
    compiled = work()
    assert compiled["graph"] is True
    lacking = work(
        "import convgrad._bridges.tensorflow.capi as capi\ncapi._FUNCTIONS['TF_NotThere'] = (None, ())"
    )
    assert lacking["seen"] == compiled["seen"]
    assert "TF_NotThere" in lacking["graph"] and "BackendMissingError" in lacking["graph"]


def test_without_kernels() -> None:
    """The slow reference computes everything, within the same bounds."""
    assert work(CONVGRAD_KERNELS="0")["graph"] is True


FORKED = """
import json, os
import numpy as np, tensorflow as tf
import convgrad
from cases import KINDS, run
from tensorflow_bridge.configurations import some
from tensorflow_bridge.running import bits, operands, tensors

cases = some(6, seed=14)

def all_of():
    return [bits(run(case, kind, tensors(operands(case)))) for case in cases for kind in KINDS]

wanted = all_of()
big = tf.ones((4, 28, 28, 32)), tf.ones((3, 3, 32, 32))
convgrad.conv2d(*big, 1, "SAME")  # starts threads
child = os.fork()
if child == 0:
    made = convgrad.conv2d(tf.ones((1, 17, 3, 1)), tf.ones((2, 2, 1, 1)), 1, "VALID")  # new to its parent
    same = all_of() == wanted and float(np.sum(made)) == 4 * 32
    convgrad.conv2d(*big, 1, "SAME")
    os._exit(0 if same else 3)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), all_of() == wanted]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes_the_same() -> None:
    """After its parent has started threads, which it does not have. Most of TensorFlow's own kernels hang there."""
    assert children.report(FORKED) == [0, True]


def test_without_tensorflow() -> None:
    done = children.run(
        "import sys; sys.modules['tensorflow'] = None\nimport convgrad; import convgrad.tensorflow"
    )
    assert done.returncode == 1
    assert "BackendMissingError: convgrad.tensorflow needs TensorFlow" in done.stderr
    assert "pip install tensorflow" in done.stderr


def test_the_order_of_imports() -> None:
    """Neither brings the other in before it is asked for, and both orders work; the end of the process is quiet.

    Without oneDNN, of which TensorFlow itself says a line on CPUs with AVX-512, whatever its log level.
    """
    done = children.run(
        "import sys, convgrad; assert 'tensorflow' not in sys.modules\n"
        "import tensorflow as tf; assert 'convgrad._bridges.tensorflow' not in sys.modules\n"
        "y = convgrad.conv2d(tf.ones((1, 2, 2, 1)), tf.ones((2, 2, 1, 1)), 1, 'VALID')\n"
        "assert isinstance(y, tf.Tensor) and float(y[0, 0, 0, 0]) == 4\n"
        "assert 'convgrad.tensorflow' not in sys.modules\n"
        "import convgrad.tensorflow\n"
        "y = convgrad.tensorflow.conv2d(tf.ones((1, 2, 2, 1)), tf.ones((2, 2, 1, 1)), 1, 'VALID')\n"
        "print(float(y[0, 0, 0, 0]))",
        TF_ENABLE_ONEDNN_OPTS="0",
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "4.0", "")
