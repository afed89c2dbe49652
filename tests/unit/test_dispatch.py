"""Dispatch on user types: handlers are asked after a refusal, in order, and mistakes in handlers are told at once."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

import convgrad
from convgrad import dispatch, nn, raw_ops, reference
from convgrad._api import dispatch as _dispatch
from convgrad.compat.v1 import nn as v1
from convgrad.dispatch import (
    NOT_SUPPORTED,
    GlobalOpDispatcher,
    OpDispatcher,
    add_dispatch_list,
    dispatch_for_api,
    dispatch_for_types,
)
from errors.doors import DOORS

ONE = np.ones((1, 1, 1, 1), np.float32)


class Box:
    """A user type that is not an array."""

    def __init__(self, value=None):
        self.value = value


class SmallBox(Box):
    pass


class Convertible:
    """A user type that NumPy can turn into an array."""

    def __array__(self, dtype=None, copy=None):
        return ONE


@pytest.fixture
def function():
    """A fresh dispatchable function, with TensorFlow's kinds of parameters."""

    @add_dispatch_list
    def example(input, filter, strides=None, dilations=[1, 1, 1, 1], name=None):  # noqa: B006
        """Say so."""
        if isinstance(input, Exception):
            raise input
        if isinstance(input, Box) or isinstance(filter, Box):
            raise TypeError("no array")
        return "normal"

    return example


@pytest.fixture(autouse=True)
def restore_handlers():
    """Forget what a test registered."""
    doors = [door.function for door in DOORS if hasattr(door.function, _dispatch._FALLBACK)]
    lists = [
        getattr(each, name) for each in doors for name in (_dispatch._FALLBACK, _dispatch._TYPED)
    ]
    lists.append(_dispatch._global_handlers)
    before = [list(each) for each in lists]
    yield
    for each, old in zip(lists, before, strict=True):
        each[:] = old


# ---- who is dispatchable


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.forms != "raw"], ids=lambda door: door.id
)
def test_every_public_function_is_dispatchable(door):
    asked = []

    class Handler(OpDispatcher):
        def handle(self, args, kwargs):
            asked.append((args, kwargs))
            return "handled"

    Handler().register(door.function)
    arguments = door.arguments(**{door.arrays[0]: Box()})
    assert door.function(**arguments) == "handled"
    assert asked == [((), arguments)]


@pytest.mark.parametrize(
    "function",
    [
        *(door.function for door in DOORS if door.forms == "raw"),
        reference.conv2d,
        len,
        lambda input: input,
    ],
)
def test_others_are_not(function):
    with pytest.raises(AssertionError, match="is not dispatchable"):
        OpDispatcher().register(function)
    with pytest.raises(AssertionError, match="is not dispatchable"):
        dispatch_for_api(function, {"input": Box})


def test_raw_ops_refuse_handlers_by_type():
    with pytest.raises(AssertionError, match="is not dispatchable"):

        @dispatch_for_types(raw_ops.Conv2D, Box)
        def handler(*, input, filter, strides, padding):
            return None


def test_a_second_list_is_refused(function):
    with pytest.raises(AssertionError, match="already has a dispatch list"):
        add_dispatch_list(function)


def test_the_function_keeps_its_name_and_signature(function):
    assert function.__name__ == "example" and function.__doc__ == "Say so."
    assert nn.conv2d.__wrapped__.__name__ == "conv2d"


def test_aliases_share_one_list():
    @dispatch_for_types(v1.depthwise_conv2d_native_backprop_input, Box)
    def handler(input_sizes, filter, out_backprop, strides, padding):
        return "alias"

    how = ([1, 1, 1, 1], ONE, Box(), [1, 1, 1, 1], "SAME")
    assert nn.depthwise_conv2d_backprop_input(*how) == "alias"
    assert v1.depthwise_conv2d_backprop_input(*how) == "alias"
    with pytest.raises(ValueError):
        convgrad.depthwise_conv2d_backprop_input(*how)


def test_functions_of_different_modules_do_not_share():
    @dispatch_for_types(nn.conv2d, Box)
    def handler(input, filters, strides, padding):
        return "v2"

    assert nn.conv2d(Box(), ONE, 1, "SAME") == "v2"
    for other in (v1.conv2d, convgrad.conv2d):
        with pytest.raises(ValueError, match="`input`"):
            other(Box(), ONE, 1, "SAME")


# ---- when handlers are asked


class Recorder(OpDispatcher):
    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def handle(self, args, kwargs):
        self.calls.append((args, kwargs))
        return self.answer


def test_the_normal_implementation_runs_first(function):
    handler = Recorder("handled")
    handler.register(function)
    assert function(1, 2) == "normal"
    assert handler.calls == []


@pytest.mark.parametrize(
    "error", [TypeError("t"), ValueError("v"), UnicodeError("subclass of ValueError")]
)
def test_type_and_value_errors_reach_the_handlers(function, error):
    handler = Recorder("handled")
    handler.register(function)
    assert function(error, 2, name="x") == "handled"
    assert handler.calls == [((error, 2), {"name": "x"})]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("r"),
        MemoryError("m"),
        KeyError("k"),
        AssertionError("a"),
        KeyboardInterrupt(),
        StopIteration(),
    ],
    ids=repr,
)
def test_other_errors_never_do(function, error):
    if isinstance(error, KeyboardInterrupt):

        @add_dispatch_list
        def interrupted(input):
            raise error

        function = interrupted
    handler = Recorder("handled")
    handler.register(function)
    with pytest.raises(type(error)) as caught:
        function(*([error] if isinstance(error, KeyboardInterrupt) else [error, 2]))
    assert caught.value is error and handler.calls == []


def test_wrong_call_forms_reach_the_handlers_too(function):
    handler = Recorder("handled")
    handler.register(function)
    assert function() == "handled"
    assert function(1, 2, unknown=3) == "handled"


def test_if_nobody_answers_the_original_error_is_raised_unchanged(function):
    error = ValueError("original")
    Recorder(NOT_SUPPORTED).register(function)
    with pytest.raises(ValueError) as caught:
        function(error, 2)
    assert caught.value is error and error.__cause__ is None and error.__context__ is None


def test_handlers_are_asked_in_order_of_registration(function):
    handlers = [Recorder(NOT_SUPPORTED), Recorder("second"), Recorder("third")]
    for handler in handlers:
        handler.register(function)
    assert function(ValueError(), 2) == "second"
    assert [len(handler.calls) for handler in handlers] == [1, 1, 0]


@pytest.mark.parametrize("answer", [None, 0, "", [], False, np.zeros(2)], ids=repr)
def test_any_answer_but_the_sentinel_counts(function, answer):
    Recorder(answer).register(function)
    assert function(ValueError(), 2) is answer


def test_the_sentinel():
    assert repr(NOT_SUPPORTED) == "NOT_SUPPORTED"
    assert OpDispatcher.NOT_SUPPORTED is GlobalOpDispatcher.NOT_SUPPORTED is dispatch.NOT_SUPPORTED
    assert OpDispatcher().handle((), {}) is NOT_SUPPORTED
    assert GlobalOpDispatcher().handle(nn.conv2d, (), {}) is NOT_SUPPORTED


def test_an_error_of_a_handler_is_the_users_to_see(function):
    class Broken(OpDispatcher):
        def handle(self, args, kwargs):
            raise LookupError("broken")

    Broken().register(function)
    with pytest.raises(LookupError, match="broken"):
        function(ValueError(), 2)


# ---- global handlers


class Everyone(GlobalOpDispatcher):
    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def handle(self, function, args, kwargs):
        self.calls.append((function, args, kwargs))
        return self.answer


def test_global_handlers_come_last(function):
    everyone, own = Everyone("global"), Recorder("own")
    everyone.register()
    own.register(function)
    assert function(ValueError(), 2) == "own"
    own.answer = NOT_SUPPORTED
    error = ValueError()
    assert function(error, 2, name="x") == "global"
    assert everyone.calls == [(function, (error, 2), {"name": "x"})]


def test_global_handlers_serve_every_function():
    everyone = Everyone("global")
    everyone.register()
    assert nn.conv2d(Box(), ONE, 1, "SAME") == "global"
    assert v1.separable_conv2d(ONE, Box(), ONE, [1] * 4, "SAME") == "global"
    assert [call[0] for call in everyone.calls] == [nn.conv2d, v1.separable_conv2d]
    assert nn.conv2d(ONE, ONE, 1, "SAME").item() == 1
    with pytest.raises(ValueError):
        raw_ops.Conv2D(input=Box(), filter=ONE, strides=[1] * 4, padding="SAME")


def test_global_handlers_may_decline(function):
    Everyone(NOT_SUPPORTED).register()
    Everyone("second").register()
    assert function(ValueError(), 2) == "second"


# ---- dispatch_for_types

BOX = Box()
FOUND = [
    ((BOX, 2), {}, True),
    ((ValueError(), BOX), {}, True),
    ((ValueError(), 2), {"strides": BOX}, True),
    ((ValueError(), 2), {"name": [1, BOX]}, True),
    ((ValueError(), (BOX, 1)), {}, True),
    ((ValueError(), [[BOX]]), {}, False),  # not nested deeper
    ((ValueError(), {"key": BOX}), {}, False),
    ((ValueError(), {BOX}), {}, False),
    ((ValueError(), Box), {}, False),  # the class is not an instance
    ((ValueError(), 2), {}, False),
]


@pytest.mark.parametrize(("args", "kwargs", "found"), FOUND)
def test_where_an_instance_is_looked_for(function, args, kwargs, found):
    @dispatch_for_types(function, Box)
    def handler(input, filter, strides=None, dilations=[1, 1, 1, 1], name=None):  # noqa: B006
        return "handled"

    if found:
        assert function(*args, **kwargs) == "handled"
    else:
        with pytest.raises(ValueError):
            function(*args, **kwargs)


def test_several_types_and_subclasses(function):
    @dispatch_for_types(function, bytes, Box)
    def handler(input, filter):
        return "handled"

    assert function(ValueError(), b"") == "handled"
    assert function(SmallBox(), 2) == "handled"


def test_first_registered_wins_even_over_a_later_subclass(function):
    @dispatch_for_types(function, Box)
    def first(input, filter):
        return "first"

    @dispatch_for_types(function, SmallBox)
    def second(input, filter):
        return "second"

    assert function(SmallBox(), 2) == "first"


def test_a_handler_may_decline(function):
    @dispatch_for_types(function, Box)
    def first(input, filter):
        return NOT_SUPPORTED

    @dispatch_for_types(function, Box)
    def second(input, filter):
        return "second"

    assert function(Box(), 2) == "second"


def test_the_handler_is_returned_unwrapped(function):
    def handler(input, filter):
        return "handled"

    assert dispatch_for_types(function, Box)(handler) is handler


def test_the_handler_gets_the_arguments_as_written(function):
    seen = []

    @dispatch_for_types(function, Box)
    def handler(input, filter, strides=None, dilations=[1, 1, 1, 1], name=None):  # noqa: B006
        seen.append((input, filter, strides, dilations, name))

    box, shape = Box(), (1, 2)
    assert function(box, shape, name="x") is None
    assert seen == [(box, shape, None, [1, 1, 1, 1], "x")]
    assert seen[0][1] is shape


@pytest.mark.parametrize(
    ("handler", "accepted"),
    [
        (lambda input, filter, strides=None, dilations=[1, 1, 1, 1], name=None: 0, True),
        (lambda input, filter: 0, True),
        (lambda input, filter, name=None: 0, True),
        (lambda input, filter, strides=5: 0, True),
        (lambda filter, input: 0, False),
        (lambda input: 0, False),
        (lambda input, filters: 0, False),
        (lambda input, filter, strides: 0, False),
        (lambda input, filter=None: 0, False),
        (lambda: 0, False),
    ],
)
def test_signatures_of_handlers(function, handler, accepted):
    if accepted:
        dispatch_for_types(function, Box)(handler)
        assert function(Box(), 2) == 0
    else:
        with pytest.raises(AssertionError, match="the handler must require"):
            dispatch_for_types(function, Box)(handler)
        with pytest.raises(TypeError, match="no array"):
            function(Box(), 2)  # nothing was registered


def test_missing_optional_parameters_must_have_their_defaults(function):
    @dispatch_for_types(function, Box)
    def handler(input, filter, name=None):
        return name

    assert function(Box(), 2) is None
    assert function(Box(), 2, None, [1, 1, 1, 1], "x") == "x"
    assert function(Box(), 2, strides=None, name="x") == "x"
    for changed in (
        {"strides": 1},
        {"dilations": [1, 2, 2, 1]},
        {"dilations": np.array([2, 2])},
        {"dilations": None},
        {"strides": np.ones(3)},
    ):
        with pytest.raises(AssertionError, match=f"does not take `{next(iter(changed))}`"):
            function(Box(), 2, **changed)


def test_a_type_that_converts_takes_the_normal_path():
    @dispatch_for_types(nn.conv2d, Convertible)
    def handler(input, filters, strides, padding):
        return "handled"

    assert nn.conv2d(Convertible(), ONE, 1, "SAME").item() == 1
    assert (
        nn.conv2d(Convertible(), ONE, 0, "SAME") == "handled"
    )  # a mistake goes to the handler, not to the user


# ---- dispatch_for_api


def test_typed_handlers_come_before_the_normal_implementation():
    @dispatch_for_api(nn.conv2d, {"input": Convertible})
    def handler(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
        return "typed"

    assert nn.conv2d(Convertible(), ONE, 1, "SAME") == "typed"
    assert nn.conv2d(filters=ONE, input=Convertible(), strides=1, padding="SAME") == "typed"
    assert nn.conv2d(ONE, Convertible(), 1, "SAME").item() == 1
    assert nn.conv2d(ONE, ONE, 1, "SAME").item() == 1


def test_typed_handlers_need_all_parameters_of_one_signature(function):
    @dispatch_for_api(function, {"input": int, "filter": str}, {"strides": Box})
    def handler(input, filter, strides=None, dilations=None, name=None):
        return "typed"

    assert function(1, "a") == "typed"
    assert function(1, 2, strides=Box()) == "typed"
    assert function(1, 2) == "normal"
    assert function("a", "a") == "normal"


def test_typed_handlers_may_decline_and_malformed_calls_are_refused_normally(function):
    handler = dispatch_for_api(function, {"input": int})(lambda *args, **kwargs: NOT_SUPPORTED)
    assert handler(1) is NOT_SUPPORTED
    assert function(1, 2) == "normal"
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        function(1)


def test_typed_handlers_name_existing_parameters(function):
    with pytest.raises(AssertionError, match=r"example has no parameter \['inputs'\]"):
        dispatch_for_api(function, {"inputs": Box})


# ---- and without assertions


def test_rules_hold_under_python_O():
    program = """
from convgrad import dispatch, nn, raw_ops
for wrong in (
    lambda: dispatch.add_dispatch_list(nn.conv2d),
    lambda: dispatch.OpDispatcher().register(raw_ops.Conv2D),
    lambda: dispatch.dispatch_for_types(nn.conv2d, int)(lambda x: x),
    lambda: dispatch.dispatch_for_api(nn.conv2d, {"x": int}),
):
    try:
        wrong()
    except AssertionError:
        continue
    raise SystemExit(1)
"""
    assert subprocess.run([sys.executable, "-O", "-c", program], check=False).returncode == 0


def test_a_list_that_never_ends_is_looked_through_once(function):
    """A handler is registered, the call is refused, and an argument is a list that goes on for ever."""

    class Endless(list):
        def __iter__(self):
            return itertools.repeat(1)

    @_dispatch.dispatch_for_types(function, Box)
    def handler(input, filter, strides=None, dilations=[1, 1, 1, 1], name=None):  # noqa: B006
        return "handled"

    with pytest.raises(ValueError, match="no such"):
        function(ValueError("no such"), 1, strides=Endless())
    assert function(ValueError("no such"), 1, strides=Endless([Box()])) == "handled"
