"""Compiled functions for a fused block: convolution, batch norm, activation and residual, forwards and backwards.

A block is a node of autograd written in Python. What the node calls is one operator each way, `convgrad::fused` and
`convgrad::fused_backward`, whose kernels are these: they allocate, run the convolution's programs and those of batch
norm's passes, and need no interpreter between them. Written in Python the same took 96 us forwards and 95 backwards on
a tiny block, of which PyTorch's own cost for a node is about a fourth.

Both operators have the same arguments: `GIVEN` tensors that may be absent, the number of a row of settings, what is
wanted as bits, the hash of the calling thread's switches, and the momentum. They are made of what `server` has, with
a key and a table of their own. What has no record is not computed: all results are undefined then, and the node goes
the longer way (`blocks`), where tensors are copied and errors are raised.
"""

from __future__ import annotations

from functools import cache

from ..._problem.norm import SCALARS
from ..serve import ADDRESS, INT, INT32, NOTHING, Function, Module, Signature
from .server import HANDLER, Served, Server, block_of

FORWARD, BACKWARD = 0, 1
SYMBOLS = ("cg_torch_fused", "cg_torch_fused_backward")

GIVEN = 8
"""Forwards: image, filter, the filter's bias, residual, weight, bias, running mean, running variance.
Backwards: image, filter, the convolution's result, saved, the gradient, what stands beside."""
MOST_MADE = 12
"""Six gradients, that of the convolution's result, two numbers per channel nobody wants, and some filters."""
KEY = {
    "OPERATION": 0,
    "SETTINGS": 1,  # the hash of the switches that decide which programs run
    "ROW": 2,
    "WANTED": 3,
    "TENSORS": 4,
}
SERVED = Served(
    KEY,
    given=GIVEN,
    written=6,
    most_made=MOST_MADE,
    buckets="FUSED_BUCKETS",
    miss="FUSED_MISS",
    numbers=len(SCALARS),
    own=SCALARS.index("momentum"),
)
_TENSORS = ", ".join(f"Tensor? {'abcdefgh'[at]}" for at in range(GIVEN))
SCHEMAS = (
    f"fused({_TENSORS}, int row, int wanted, int settings, float momentum) -> (Tensor, Tensor, Tensor)",
    f"fused_backward({_TENSORS}, int row, int wanted, int settings, float momentum)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
_STACK = {name: GIVEN + at for at, name in enumerate(("ROW", "WANTED", "SETTINGS", "MOMENTUM"))}
_SERVE = Function("serve", Signature(NOTHING, (ADDRESS, INT, INT)))
"""Of the stack, how many tensors are returned, and the operation."""
_EMPTY = Function("empty", Signature(NOTHING, (ADDRESS,)))
_UNSERVED = Function("unserved", Signature(NOTHING, (ADDRESS, INT)))


@cache
def text() -> str:
    """Return the handlers."""
    module = Module()
    server = Server(module, SERVED)
    _write_empty(module, server)
    _write_unserved(module)
    _write_serve(module, server)
    for operation, symbol in enumerate(SYMBOLS):
        with module.function(symbol, HANDLER, internal=False) as f:
            block_of(f).count("AT_WORK", 1)
            f.call(_SERVE, f.words(0), f.integer(2), operation)
            block_of(f).count("AT_WORK", -1)
    return module.text()


def _write_empty(module: Module, server: Server) -> None:
    """Delete the arguments."""
    with module.function(_EMPTY.name, _EMPTY.signature) as f, f.loop(0, GIVEN) as at:
        server.drop_optional(f, f.words(0).follow(at))


def _write_unserved(module: Module) -> None:
    """Return tensors that are undefined: there is no record, or no memory."""
    with module.function(_UNSERVED.name, _UNSERVED.signature) as f:
        stack, undefined = f.words(0), block_of(f).follow("UNDEFINED")
        f.call(_EMPTY, stack)
        with f.loop(0, f.integer(1)) as at:
            f.through(undefined, Signature(INT32, (ADDRESS,)), stack.offset(at))


def _write_serve(module: Module, server: Server) -> None:
    with module.function(_SERVE.name, _SERVE.signature) as f:
        stack, outputs = f.words(0, _STACK), f.integer(1)
        given, made = f.stack(GIVEN), f.stack(MOST_MADE)
        key = server.new_key(f)
        key["OPERATION"] = f.integer(2)
        for name in ("ROW", "WANTED", "SETTINGS"):
            key[name] = stack[name]
        with f.loop(0, GIVEN) as at:
            tensor = server.there(f, stack.follow(at))
            given[at] = tensor
            with f.when(~server.describe(f, tensor, key, at)):
                f.call(_UNSERVED, stack, outputs)
                f.returns()
        with f.when(~server.compute(f, key, given, made, stack["MOMENTUM"])):
            f.call(_UNSERVED, stack, outputs)
            f.returns()
        f.call(_EMPTY, stack)
        with f.loop(0, outputs) as at:
            stack[at] = made[at]
