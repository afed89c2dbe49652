"""What PyTorch's dispatcher calls for a convolution on a CPU.

A tiny layer written as an `autograd.Function` took 178 us forwards and backwards in a trial, and takes 70 to 100 so; on
the 52 convolutions of MobileNetV2 that is some 5 of 140 ms. So our kernels are compiled, of what `server` has.

What has no record (a layout that must be copied, a dtype we do not know, a lack of memory) is declined: left to an
operator written in Python, by the name in `DECLINED`. An error of that operator is raised by `aoti_torch_check`, which
is called last, in the place of the handler's own frame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..serve import (
    ADDRESS,
    INT,
    INT32,
    NOTHING,
    TRUTH,
    Bool,
    Function,
    FunctionBuilder,
    Int,
    Module,
    Signature,
    Words,
)
from .server import BLOCK, HANDLER, Served, Server, block_of, delete

FORWARD, BACKWARD, ATEN_BACKWARD, LAYER = 0, 1, 2, 3
"""Which operator is called. The third is `aten::convolution_backward`, which has one argument more. The fourth is our
own `convgrad::numbered_layer`, a forward pass whose settings are the number of a row: Python hands over an int
some 3 us sooner than four lists."""
SYMBOLS = ("cg_torch_forward", "cg_torch_backward", "cg_torch_aten_backward", "cg_torch_layer")
DECLINED = tuple(name for name in BLOCK if name.startswith("DECLINED_"))

KEY = {
    "OPERATION": 0,  # FORWARD or BACKWARD
    "SETTINGS": 1,  # changes with the switches that decide which programs run
    "STRIDE": 2,
    "PADDING": 4,
    "DILATION": 6,
    "TRANSPOSED": 8,
    "OUTPUT_PADDING": 9,
    "GROUPS": 11,
    "MASK": 12,
    "TENSORS": 15,  # input, weight, and the gradient or the bias
}
LAYER_WORDS = KEY["MASK"] - KEY["STRIDE"]
"""A row of settings: what a key has from the stride to the groups."""
SERVED = Served(KEY, given=3, written=3, most_made=8, buckets="BUCKETS", miss="MISS")
"""What is made: three results and some temporaries."""

_STACK = ("STRIDE", "PADDING", "DILATION", "TRANSPOSED", "OUTPUT_PADDING", "GROUPS", "MASK")
"""Arguments behind the tensors."""
_LISTS = ("STRIDE", "PADDING", "DILATION", "OUTPUT_PADDING")
_SERVE = Signature(TRUTH, (ADDRESS,))
"""Of the stack; tells whether the call failed."""
_UNLIST = Function("unlist", Signature(TRUTH, (ADDRESS, INT, ADDRESS)))
_SETTLE = Function("settle", Signature(TRUTH, (ADDRESS, ADDRESS)))
_UNSETTLE = Function("unsettle", Signature(NOTHING, (ADDRESS,)))
_DECLINE = Function("decline", Signature(TRUTH, (ADDRESS, INT)))


@cache
def text() -> str:
    """Return the handlers."""
    module = Module()
    server = Server(module, SERVED)
    _write_unlist(module)
    _write_settle(module)
    _write_unsettle(module)
    _write_decline(module)
    for operation, symbol in enumerate(SYMBOLS):
        serve = Function(f"serve_{operation}", _SERVE)
        _write_serve(module, serve, operation, server)
        _write_handler(module, symbol, serve)
    return module.text()


def _write_unlist(module: Module) -> None:
    """Copy a list of integers or truth values to words; false if it has not as many as it should."""
    with module.function(_UNLIST.name, _UNLIST.signature) as f:
        list_, wanted, words = f.words(0), f.integer(1), f.words(2)
        block, size = block_of(f), f.stack(1)
        f.through(block.follow("LIST_SIZE"), Signature(INT32, (ADDRESS, ADDRESS)), list_, size)
        with f.when(size[0].differs(wanted)):
            f.returns(f.truth(False))
        item = Signature(INT32, (ADDRESS, INT, ADDRESS))
        with f.loop(0, wanted) as at:
            f.through(block.follow("LIST_ITEM"), item, list_, at, words.offset(at))
        f.returns(f.truth(True))


def _write_settle(module: Module) -> None:
    """Copy settings to a key; false if they are not those of two dimensions."""
    with module.function(_SETTLE.name, _SETTLE.signature) as f:
        stack, key = f.words(0, _STACK), f.words(1, KEY)
        # A truth value fills one byte of its word.
        key["TRANSPOSED"] = stack["TRANSPOSED"] & 1
        key["GROUPS"] = stack["GROUPS"]
        for name in _LISTS:
            with f.when(~f.call(_UNLIST, stack.follow(name), 2, key.offset(KEY[name]))):
                f.returns(f.truth(False))
        f.returns(f.truth(True))


def _write_unsettle(module: Module) -> None:
    """Delete the lists of settings."""
    with module.function(_UNSETTLE.name, _UNSETTLE.signature) as f:
        for name in _LISTS:
            delete(f, "DELETE_LIST", f.words(0, _STACK).follow(name))


def _write_decline(module: Module) -> None:
    """Leave a call to an operator: it takes the arguments over, and leaves its results in their place."""
    with module.function(_DECLINE.name, _DECLINE.signature) as f:
        block, stack, operation = block_of(f), f.words(0), f.integer(1)
        name = block.offset(BLOCK.index(DECLINED[0])).follow(operation)
        nothing, version = block.follow("NOTHING"), block["VERSION"]
        dispatch = Signature(INT32, (ADDRESS, ADDRESS, ADDRESS, INT))
        status = f.through(block.follow("DISPATCH"), dispatch, name, nothing, stack, version)
        f.returns(status.differs(0))


def _write_serve(module: Module, serve: Function[Bool], operation: int, server: Server) -> None:
    """Serve a call of an operator."""
    backward = operation in (BACKWARD, ATEN_BACKWARD)
    # aten::convolution_backward has the sizes of the bias before the settings.
    settings = 4 if operation == ATEN_BACKWARD else 3
    with module.function(serve.name, serve.signature) as f:
        stack = f.words(0)
        arguments = stack.offset(settings).seen_as(_STACK)
        given, made = f.stack(SERVED.given), f.stack(SERVED.most_made)
        key = server.new_key(f)

        def require(fine: Bool) -> None:
            with f.when(~fine):
                f.returns(f.call(_DECLINE, stack, operation))

        key["OPERATION"] = BACKWARD if backward else FORWARD
        key["SETTINGS"] = block_of(f)["SETTINGS"]
        first, second, third = (stack.follow(at) for at in range(3))
        bias = None if backward else server.there(f, third)
        tensors = (second, third, first) if bias is None else (first, second, bias)
        for number, tensor in enumerate(tensors):
            given[number] = tensor
            require(server.describe(f, tensor, key, number))
        if operation == LAYER:
            _settle_by_number(f, stack[settings], key, require)
        else:
            require(f.call(_SETTLE, arguments, key))
        if backward:
            mask = key.offset(KEY["MASK"])
            require(f.call(_UNLIST, arguments.follow("MASK"), 3, mask))
            for at in range(3):
                mask[at] = mask[at] & 1
        require(server.compute(f, key, given, made))
        # The handles of arguments are ours to delete; results go where the arguments were.
        if operation != LAYER:
            f.call(_UNSETTLE, arguments)
        if backward:
            delete(f, "DELETE_LIST", arguments.follow("MASK"))
            server.drop(f, given, 0, 3)
        else:
            server.drop(f, given, 0, 2)
            server.drop_optional(f, third)
        if operation == ATEN_BACKWARD:
            sizes = stack.follow(3)
            with f.when(~sizes.is_null()):
                delete(f, "DELETE_LIST", sizes.follow(0))
                delete(f, "DELETE_VALUE", sizes)
        for at in range(3 if backward else 1):
            stack[at] = made[at]
        f.returns(f.truth(False))


def _settle_by_number(
    f: FunctionBuilder, number: Int, key: Words, require: Callable[[Bool], None]
) -> None:
    """Copy the row of settings with a number to a key."""
    block = block_of(f)
    require(number.inside(block["LAYER_COUNT"]))
    row = block.follow("LAYERS").offset(number * LAYER_WORDS)
    for at in range(LAYER_WORDS):
        key[KEY["STRIDE"] + at] = row[at]


def _write_handler(module: Module, symbol: str, serve: Function[Bool]) -> None:
    """Write what the dispatcher calls: it counts who is at work, and raises what Python said where `serve` failed."""
    check = Signature(NOTHING, (INT32, ADDRESS, ADDRESS, INT32, ADDRESS))
    with module.function(symbol, HANDLER, internal=False, raises=True) as f:
        block = block_of(f)
        block.count("AT_WORK", 1)
        failed = f.call(serve, f.words(0))
        block.count("AT_WORK", -1)
        with f.when(~failed):
            f.returns()
        message = f.through(block.follow("WHAT"), Signature(ADDRESS, ()))
        nothing = block.follow("NOTHING")
        f.leave_to(block.follow("CHECK"), check, 0, nothing, nothing, 0, message)
