"""What a run computes and what it leaves alone: feeds, Variables, memory of others."""

from __future__ import annotations

import numpy as np
import pytest

import convgrad
from convgrad._base.errors import ArgumentError, ArgumentTypeError, DTypeError
from convgrad.graph import ClientSession, Scope, ops
from graphs import same_bits

F = np.float32


@pytest.fixture
def scope():
    return Scope.new_root_scope()


def nodes_run(session, fetches, feeds=None, **more):
    """Run and return the names of the nodes that were computed."""
    seen = []
    session.run(
        fetches, feeds, progress=lambda at, of, node: seen.append((at, of, node.name)), **more
    )
    assert [at for at, _, _ in seen] == list(range(1, len(seen) + 1))
    assert all(of == len(seen) for _, of, _ in seen)
    return [name for _, _, name in seen]


def named(scope, name):
    return scope.with_op_name(name)


def test_only_what_is_fetched_runs(scope):
    x = ops.Placeholder(scope, F, [3])
    a = ops.Square(named(scope, "a"), x)
    b = ops.Exp(named(scope, "b"), a)
    c = ops.Negate(named(scope, "c"), a)
    ops.Log(named(scope, "d"), c)
    session = ClientSession(scope)
    assert nodes_run(session, [b], {x: [1, 2, 3]}) == ["a", "b"]
    assert nodes_run(session, [c, a], {x: [1, 2, 3]}) == ["a", "c"]
    assert nodes_run(session, [c], {a: [1, 2, 3]}) == ["c"]
    assert nodes_run(session, [], {x: [1, 2, 3]}, run_outputs=[b]) == ["a", "b"]
    assert nodes_run(session, [x], {x: [1, 2, 3]}) == []
    assert session.run([]) == []


def test_what_is_known_is_not_computed(scope):
    x = ops.Placeholder(scope, F, [2, 3])
    session = ClientSession(scope)
    shape = ops.Shape(scope, x)
    assert nodes_run(session, [shape]) == []  # not even the placeholder is needed
    assert session.run(shape)[0].tolist() == [2, 3]


def test_one_tensor_stands_for_a_list_of_one(scope):
    c = ops.Const(scope, [1.0, 2.0])
    session = ClientSession(scope)
    for fetches in (c, c.output, c.operation, [c], (c.output,)):
        (found,) = session.run(fetches)
        assert found.tolist() == [1, 2]


def test_any_tensor_can_be_fed(scope):
    c = ops.Const(scope, np.array([2, 3], np.int64))
    narrow = ops.Cast(scope, c, np.int32)
    sums = ops.Add(scope, narrow, narrow)
    session = ClientSession(scope)
    assert session.run([narrow, sums])[1].tolist() == [4, 6]
    # What the graph knows of the constant does not hold any more.
    assert session.run([narrow], {c: np.array([7, 8])})[0].tolist() == [7, 8]
    assert session.run([sums], {narrow: [1, 1]})[0].tolist() == [2, 2]


def test_sizes_that_hang_on_a_fed_constant_are_those_that_were_fed(scope):
    x = ops.Placeholder(scope, F, [6])
    sizes = ops.Const(scope, [2, 3])
    y = ops.Reshape(scope, ops.Square(scope, x), sizes)
    shape = ops.Shape(scope, y)
    z = ops.Add(scope, ops.Negate(scope, y), ops.RandomUniform(scope, [2, 3], F))
    session = ClientSession(scope)
    found, turned = session.run([shape, y], {x: np.arange(6, dtype=F), sizes: [3, 2]})
    assert found.tolist() == [3, 2] and turned.shape == (3, 2)
    with pytest.raises(ArgumentError, match="broadcast together"):
        session.run([z], {x: np.arange(6, dtype=F), sizes: [3, 2]})
    assert session.run([z], {x: np.arange(6, dtype=F), sizes: [1, 6][:2]} | {sizes: [2, 3]})


def test_wrong_feeds_and_fetches_are_named(scope):
    x = ops.Placeholder(named(scope, "image"), F, [2, None])
    y = ops.Square(scope, x)
    two = ops.SoftmaxCrossEntropyWithLogits(named(scope, "xent"), x, x)
    other = ops.Const(Scope.new_root_scope(), 1.0)
    session = ClientSession(scope)
    for call, error, words in (
        (lambda: session.run([y]), ArgumentError, "`feeds` must give a value for placeholder 'image'"),
        (lambda: session.run([y], {x: np.ones((2, 2))}), DTypeError, "feed 'image': `value` must have dtype"),
        (lambda: session.run([y], {x: np.ones((3, 2), F)}), ArgumentError, "'image': `value` must have shape [2, ?]"),
        (lambda: session.run([y], {x: np.ones(2, F)}), ArgumentError, "must have shape [2, ?], got [2]"),
        (lambda: session.run([y], {x: "text"}), ArgumentTypeError, "feed 'image'"),
        (lambda: session.run([y], {x: [[1, 2], [3]]}), ArgumentError, "feed 'image'"),
        (lambda: session.run([y], {"image": 1}), ArgumentTypeError, "`feeds` must name tensors"),
        (lambda: session.run([y], {other: 1}), ArgumentTypeError, "`feeds` must name tensors"),
        (lambda: session.run([y], [x]), ArgumentTypeError, "`feeds` must be a dict"),
        (lambda: session.run([other]), ArgumentTypeError, "`fetches` must name tensors of the session's graph"),
        (lambda: session.run("y"), ArgumentTypeError, "`fetches` must be a list"),
        (lambda: session.run(3), ArgumentTypeError, "`fetches` must be a list"),
        (lambda: session.run([two]), ArgumentTypeError, "'xent' has outputs loss, backprop: name one"),
        (lambda: session.run([], run_outputs=["y"]), ArgumentTypeError, "`run_outputs` must be operations"),
        (lambda: session.run([], run_outputs=3), ArgumentTypeError, "`run_outputs` must be operations"),
        (lambda: ClientSession("scope"), ArgumentTypeError, "`scope` must be a Scope"),
        (lambda: session.explain([y], {x: (3, 1)}), ArgumentError, "'image'"),
        (lambda: session.explain([y], {x: "ab"}), ArgumentTypeError, "'image'"),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            call()
        assert words in str(caught.value), str(caught.value)


def variable(scope, value, name="v"):
    """Return a Variable, the node that gives it its first value, and a session in which it has it."""
    value = np.asarray(value, F)
    v = ops.Variable(named(scope, name), value.shape, F)
    first = ops.Assign(named(scope, name + "_first"), v, value)
    return v, first


def test_a_variable_has_no_value_until_it_is_assigned(scope):
    v, first = variable(scope, [1, 2])
    same = ops.Cast(scope, v, F)
    uses = [v, same, ops.Equal(scope, v, v), ops.Square(scope, v), ops.Shape(scope, same),
            ops.Reshape(scope, v, [2, 1]), ops.ApplyGradientDescent(scope, v, 1.0, [1.0, 1.0])]  # fmt: skip
    for use in uses:
        if use.name == "Shape":
            continue  # known without a value
        with pytest.raises(ArgumentError, match="Variable 'v' has no value yet; run an Assign"):
            ClientSession(scope).run([use])
    session = ClientSession(scope)
    assert session.run([first])[0].tolist() == [1, 2]
    assert [session.run([use])[0].dtype for use in uses]
    assert session.variables["v"].tolist() == [0, 1]


def test_a_run_reads_old_values_and_commits_at_its_end(scope):
    v, first = variable(scope, [1, 2])
    step = ops.ApplyGradientDescent(scope, v, 0.5, ops.Square(scope, v))
    behind = ops.Negate(scope, v)  # made behind the update, and still sees the old value
    session = ClientSession(scope)
    session.run([first])
    new, old, negated = session.run([step, v, behind])
    assert new.tolist() == [0.5, 0] and old.tolist() == [1, 2] and negated.tolist() == [-1, -2]
    assert session.run([v])[0].tolist() == [0.5, 0]
    session.run([], run_outputs=[step])
    assert session.variables == {"v": pytest.approx([0.375, 0])}


def test_scalars_are_variables_too(scope):
    v, first = variable(scope, 3)
    step = ops.ApplyGradientDescent(scope, v, 0.5, 1.0)
    session = ClientSession(scope)
    session.run([first])
    (found,) = session.run([step])
    assert found.shape == () and found == 2.5 and session.run(v)[0] == 2.5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_descent_in_every_dtype(scope, dtype):
    v = ops.Variable(scope, [3], dtype)
    first = ops.Assign(scope, v, ops.Const(scope, [1, 2, 3], dtype))
    step = ops.ApplyGradientDescent(scope, v, 0.5, [2, 2, 2])
    session = ClientSession(scope)
    session.run([first])
    (found,) = session.run([step])
    assert found.dtype == v.ref.dtype and found.tolist() == [0, 1, 2]


def test_a_failing_run_changes_nothing(scope):
    v, first = variable(scope, [1, 2])
    step = ops.Assign(scope, v, [5.0, 6.0])
    x = ops.Placeholder(scope, np.int32)
    bad = ops.Div(scope, x, x)
    session = ClientSession(scope)
    session.run([first])
    with pytest.raises(ArgumentError, match="must not be 0"):
        session.run([step, bad], {x: [0]})
    assert session.run([v])[0].tolist() == [1, 2]

    def failing(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        session.run([step], progress=failing)
    assert session.run([v])[0].tolist() == [1, 2]


def test_two_updates_are_refused_and_a_chain_is_not(scope):
    v, first = variable(scope, [1, 2])
    one = ops.ApplyGradientDescent(named(scope, "one"), v, 1.0, [1.0, 1.0])
    two = ops.ApplyGradientDescent(named(scope, "two"), v, 1.0, [1.0, 1.0])
    chained = ops.ApplyGradientDescent(scope, one, 1.0, [0.5, 0.5])
    session = ClientSession(scope)
    session.run([first])
    with pytest.raises(
        ArgumentError, match="'v' must not be changed twice in one run, by 'one' and 'two'"
    ):
        session.run([one, two])
    assert session.run([v])[0].tolist() == [1, 2]
    assert session.run([chained])[0].tolist() == [-0.5, 0.5]
    assert session.run([v])[0].tolist() == [-0.5, 0.5]


def test_assign_may_change_a_shape_only_without_validation(scope):
    v = ops.Variable(scope, None, F)
    x = ops.Placeholder(scope, F)
    fixed = ops.Variable(named(scope, "w"), [2], F)
    session = ClientSession(scope)
    session.run([ops.Assign(scope, v, x)], {x: np.ones((2, 3), F)})
    assert session.run([v])[0].shape == (2, 3)
    with pytest.raises(
        ArgumentError, match="`value` must have the shape of `ref`, \\[2\\], got \\[3\\]"
    ):
        session.run([ops.Assign(scope, fixed, x)], {x: np.ones(3, F)})
    alpha = ops.ApplyGradientDescent(scope, v, ops.Placeholder(named(scope, "a"), F), x)
    with pytest.raises(ArgumentError, match="`alpha` must be a scalar"):
        session.run([alpha], {x: np.ones((2, 3), F), scope.graph.by_name["a"]: np.ones(3, F)})
    with pytest.raises(ArgumentError, match="`delta` must have the shape of `var`"):
        session.run([alpha], {x: np.ones(3, F), scope.graph.by_name["a"]: np.ones((), F)})


def test_a_variable_does_not_change_with_the_array_it_was_given(scope):
    x = ops.Placeholder(scope, F, [2])
    v, w = (ops.Variable(named(scope, name), [2], F) for name in "vw")
    keep = [ops.Assign(scope, v, x), ops.Assign(scope, w, ops.Reshape(scope, x, [2]))]
    session, fed = ClientSession(scope), np.array([1, 2], F)
    session.run(keep, {x: fed})
    fed[:] = 9
    given = np.array([5, 6], F)
    assert [each.tolist() for each in session.run([v, w])] == [[1, 2], [1, 2]]
    session.set_variables({"v": given})
    given[:] = 9
    session.variables["v"][:] = 9
    assert session.run(v)[0].tolist() == [5, 6]


def test_variables_are_set_all_or_none(scope):
    v, _ = variable(scope, [1, 2])
    w, _ = variable(scope, [3], "w")
    session = ClientSession(scope)
    session.set_variables({"v": np.array([1, 2], F), "w": [7.0]})
    for values, error, words in (
        ({"v": [0.0, 0.0], "w": [1.0, 2.0]}, ArgumentError, "`w` must have shape [1], got [2]"),
        ({"v": [0.0, 0.0], "u": 1}, ArgumentError, "there is no Variable 'u'"),
        ({"v": [0.0, 0.0], "w": np.ones(1)}, ArgumentTypeError, "`w` must have dtype float32"),
    ):
        with pytest.raises(error) as caught:
            session.set_variables(values)
        assert words in str(caught.value)
        assert session.run([v, w])[0].tolist() == [1, 2]
    assert ClientSession(scope).variables == {}, "another session has its own"


def aliased(scope):
    """Return fetches that are, or could be, somebody's memory, and the feeds they need."""
    x = ops.Placeholder(scope, F, [2, 2])
    c = ops.Const(scope, np.ones((2, 2), F))
    v, first = variable(scope, np.ones((2, 2)))
    square = ops.Square(scope, x)
    assign = ops.Assign(scope, v, square)
    tensors = [x, c, v, square, assign, ops.Shape(scope, x)]
    for each in (x, c, v, square):
        tensors += [
            ops.Reshape(scope, each, [4]),
            ops.Reshape(scope, ops.Reshape(scope, each, [4]), [2, 2]),
            ops.Cast(scope, each, F),
            ops.BroadcastTo(scope, each, [2, 2]),
            ops.Transpose(scope, each, [0, 1]),
            ops.SumToShape(scope, each, [2, 2]),
            ops.AddN(scope, [each]),
            ops.Sum(scope, each, []),
            ops.SpreadReduced(scope, each, [], [2, 2]),
        ]
    return x, first, tensors


def test_fetched_arrays_belong_to_the_caller(scope):
    x, first, tensors = aliased(scope)
    tensors = tensors + tensors[:8]  # some twice
    session = ClientSession(scope)
    session.run([first])
    fed = np.array([[1, 2], [3, 4]], F)

    def fresh():
        session.run([first])
        return session.run(tensors, {x: fed})

    expected = [each.copy() for each in fresh()]
    for at in range(len(tensors)):
        found = fresh()
        for one in range(len(found)):
            for other in range(one):
                assert not np.shares_memory(found[one], found[other]), (
                    tensors[one],
                    tensors[other],
                )
        found[at][...] = 77
        for other, (array, wanted) in enumerate(zip(found, expected, strict=True)):
            assert other == at or same_bits(array, wanted), (tensors[at], tensors[other])
        assert fed.tolist() == [[1, 2], [3, 4]]
        assert all(map(same_bits, fresh(), expected))


UNARY = ("Negate", "Square", "Tanh", "Sigmoid", "Relu", "Exp")
BINARY = ("Add", "Subtract", "Multiply", "Div", "ReluGrad")


def random_elementwise(scope, rng, sources, count):
    """Add nodes that may write into each other's memory, and return all tensors."""
    tensors = list(sources)
    for _ in range(count):
        a, b = (
            tensors[int(rng.integers(max(0, len(tensors) - 6), len(tensors)))] for _ in range(2)
        )
        which = rng.random()
        if which < 0.4:
            tensors.append(scope.op(str(rng.choice(UNARY)), a))
        elif which < 0.7:
            tensors.append(scope.op(str(rng.choice(BINARY)), a, b))
        elif which < 0.8:
            tensors.append(scope.op("Reshape", scope.op("Reshape", a, [-1]), [3, 4]))
        elif which < 0.9:
            tensors.append(scope.op(str(rng.choice(["BroadcastTo", "SumToShape"])), a, [3, 4]))
        else:
            tensors.append(scope.op("BiasAdd", a, scope.op("Sum", b, [0])))
    return tensors


@pytest.mark.parametrize("seed", range(12))
def test_writing_in_place_never_shows(seed):
    rng, scope = np.random.default_rng(seed), Scope.new_root_scope()
    x = ops.Placeholder(scope, F, [3, 4] if seed % 2 else [None, 4]).output
    c = scope.constant(rng.standard_normal((3, 4)).astype(F))
    tensors = random_elementwise(scope, rng, [x, c], 40)
    session = ClientSession(scope)
    feeds = {x: rng.standard_normal((3, 4)).astype(F)}
    everything = session.run(tensors, feeds)
    in_place = 0
    for tensor, expected in zip(tensors, everything, strict=True):
        (alone,) = session.run([tensor], feeds)
        assert same_bits(alone, expected), tensor
        in_place += sum(step.in_place for step in session.explain([tensor], feeds).steps)
    assert in_place > 20, "nothing was written in place, so nothing was tested"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_do_not_depend_on_the_run_or_the_threads(scope, threads):
    rng = np.random.default_rng(0)
    x = ops.Placeholder(scope, F, [2, 24, 24, 8])
    f, w = (ops.Const(scope, rng.standard_normal(s).astype(F)) for s in ((3, 3, 8, 16), (16, 10)))
    y = ops.Relu(scope, ops.Conv2D(scope, x, f, [1, 1, 1, 1], "SAME"))
    product = ops.MatMul(scope, ops.Mean(scope, y, [1, 2]), w)
    feeds = {x: rng.standard_normal((2, 24, 24, 8)).astype(F)}
    with convgrad.threads(1):
        expected = ClientSession(scope).run([y, product], feeds)
    with convgrad.threads(threads):
        session = ClientSession(scope)
        for _ in range(2):
            assert all(map(same_bits, session.run([y, product], feeds), expected))


def test_a_fed_shape_does_not_let_nodes_write_into_what_was_fed():
    """With its own shape, SumToShape hands on its input, which the constant in the graph did not promise."""
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", [2, 3])
    shape = ops.Const(scope, [1, 3])
    same = ops.SumToShape(scope, x, shape)
    given = np.ones((2, 3), np.float32)
    feeds = {x: given, shape: np.array([2, 3], np.int32)}
    session = ClientSession(scope)
    assert (session.run([ops.Negate(scope, same)], feeds)[0] == -1).all()
    assert (given == 1).all()
    assert not np.shares_memory(session.run([same], feeds)[0], given)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cancel": True}, "`cancel` must be a threading.Event, got True"),
        ({"progress": 3}, "`progress` must be callable, got 3"),
    ],
)
def test_wrong_watchers_are_named_before_anything_runs(scope, more, words):
    with pytest.raises(ArgumentTypeError, match=words):
        ClientSession(scope).run([ops.Negate(scope, 1.0)], **more)
