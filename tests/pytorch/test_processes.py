"""Processes of other kinds: forked ones, without compiled handlers, without kernels, without PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]

WORK = """
import hashlib, sys
sys.path.insert(0, {tests!r})
{before}
import torch
from pytorch.configurations import some
from pytorch.running import assert_right, bits, everything, function, operands
import convgrad.torch
from convgrad._bridges.torch import install
seen = hashlib.sha256()
for each in some(16, seed=13):
    if each.left_to_pytorch:
        continue
    tensors = operands(each, torch.float32)
    made = everything(function(each), tensors)
    assert_right(each, made, tensors)
    seen.update(bits(made))
print(seen.hexdigest(), install.handlers() is not None)
"""


def run(program: str, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=200,
        check=False,
    )


def work(before: str = "", **environment: str) -> list[str]:
    done = run(WORK.format(tests=str(TESTS), before=before), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_without_compiled_handlers() -> None:
    """A PyTorch before 2.13, simulated: the same bits from the same kernels, called by Python."""
    compiled = work()
    python = work(
        "import convgrad._bridges.torch.install as i; i._FUNCTIONS['CHECK'] = 'not_there'"
    )
    assert compiled[1] == "True" and python[1] == "False"
    assert compiled[0] == python[0]


def test_where_nothing_can_be_compiled() -> None:
    made = work(
        "import convgrad._bridges.torch.install as i\n"
        "def fail(library): raise i.CompileError('no compiler')\n"
        "i.Handlers = fail"
    )
    assert made[1] == "False"


def test_without_kernels() -> None:
    """The slow reference computes everything, within the same bounds."""
    work(CONVGRAD_KERNELS="0")


FORKED = """
import os, sys
sys.path.insert(0, {tests!r})
import torch
from pytorch.configurations import some
from pytorch.running import bits, function, operands
from convgrad import torch as ours

chosen = [each for each in some(6, seed=14) if not each.left_to_pytorch]

def all_of():
    return [bits([function(each)(*(t.detach() for t in operands(each, torch.float32)))]) for each in chosen]

wanted = all_of()
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    made = ours.conv2d(torch.ones(1, 1, 17, 3), torch.ones(1, 1, 2, 2))  # its parent has not seen this one
    os._exit(0 if all_of() == wanted and made.sum() == 4 * 32 else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), all_of() == wanted)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes_the_same() -> None:
    """After its parent has started threads, which it does not have."""
    done = run(FORKED.format(tests=str(TESTS)))
    assert done.stdout.split() == ["0", "True"], done.stderr


def test_without_pytorch() -> None:
    done = run("import sys; sys.modules['torch'] = None\nimport convgrad; import convgrad.torch")
    assert done.returncode == 1
    assert "BackendMissingError: convgrad.torch needs PyTorch" in done.stderr
    assert "pip install torch" in done.stderr


def test_the_order_of_imports() -> None:
    """Neither brings the other in before it is asked for, and both orders work."""
    done = run(
        "import sys, convgrad; assert 'torch' not in sys.modules\n"
        "import torch; assert 'convgrad._bridges.torch' not in sys.modules\n"
        "y = convgrad.conv2d(torch.ones(1, 2, 2, 1), torch.ones(2, 2, 1, 1), 1, 'VALID')\n"
        "assert type(y) is torch.Tensor and y.item() == 4; assert 'convgrad.torch' not in sys.modules\n"
        "import convgrad.torch\n"
        "print(convgrad.torch.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).item())"
    )
    assert done.stdout.strip() == "4.0", done.stderr


def test_the_end_of_a_process_is_quiet() -> None:
    """Tensors, patches and threads that are still there at the end print nothing."""
    done = run(
        "import torch, convgrad.torch\n"
        "convgrad.torch.patch()\n"
        "w = torch.ones(1, 1, 2, 2, requires_grad=True)\n"
        "y = torch.nn.functional.conv2d(torch.ones(1, 1, 9, 9), w); y.sum().backward()"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
