"""Runs that are cancelled, and many at a time."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from convgrad.graph import Cancelled, ClientSession, Scope, ops
from graphs import same_bits

F = np.float32


def chain(scope, count=30):
    x = ops.Placeholder(scope, F, [4])
    y = x
    for at in range(count):
        y = ops.Tanh(scope.with_op_name(f"n{at}"), y)
    return x, y


def counting(scope, start=0.0):
    """Return a Variable, its first value, and a step that adds 1."""
    v = ops.Variable(scope.with_op_name("v"), [2], F)
    return v, ops.Assign(scope, v, [start, start]), ops.Assign(scope, v, ops.Add(scope, v, 1.0))


def test_an_event_ends_a_run_between_two_nodes_and_nothing_is_kept():
    scope = Scope.new_root_scope()
    x, y = chain(scope)
    v, first, step = counting(scope)
    session, event = ClientSession(scope), threading.Event()
    session.run([first])
    seen = []

    def progress(number, count, node):
        seen.append(node.name)
        if number == 20:
            event.set()

    with pytest.raises(Cancelled, match="cancelled before node '"):
        session.run([y, step], {x: np.ones(4, F)}, progress=progress, cancel=event)
    assert len(seen) == 20
    assert session.run([v])[0].tolist() == [0, 0]
    with pytest.raises(Cancelled):
        session.run([step], cancel=event)
    event.clear()
    session.run([y, step], {x: np.ones(4, F)}, cancel=event)
    assert session.run([v])[0].tolist() == [1, 1]


def test_another_thread_cancels_all_runs_of_a_session():
    scope = Scope.new_root_scope()
    x, y = chain(scope)
    session, other = ClientSession(scope), ClientSession(scope)
    reached, go_on = threading.Barrier(4), threading.Event()
    outcomes = []

    def work(which):
        def progress(number, count, node):
            if number == 5:
                reached.wait(10)
                go_on.wait(10)

        try:
            which.run([y], {x: np.ones(4, F)}, progress=progress)
            outcomes.append("done" if which is other else "not cancelled")
        except Cancelled:
            outcomes.append("cancelled")

    threads = [threading.Thread(target=work, args=(each,)) for each in (session, session, other)]
    for thread in threads:
        thread.start()
    reached.wait(10)
    session.cancel()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert sorted(outcomes) == ["cancelled", "cancelled", "done"]
    assert len(session.run([y], {x: np.ones(4, F)})) == 1, "a later run is not cancelled"


def test_many_threads_run_one_session():
    scope = Scope.new_root_scope()
    rng = np.random.default_rng(0)
    x = ops.Placeholder(scope, F, [None, 6, 6, 2])
    f = ops.Const(scope, rng.standard_normal((3, 3, 2, 4)).astype(F))
    y = ops.Relu(scope, ops.Conv2D(scope, x, f, [1, 1, 1, 1], "SAME"))
    z = ops.Add(scope, ops.Square(scope, y), ops.Tanh(scope, y))
    fetches = [[z], [y], [z, y], [ops.Sum(scope, z, [0, 1, 2])]]
    feeds = [{x: rng.standard_normal((n, 6, 6, 2)).astype(F)} for n in (1, 2, 3)]
    expected = {
        (a, b): ClientSession(scope).run(fetches[a], feeds[b]) for a in range(4) for b in range(3)
    }
    session, wrong = ClientSession(scope), []

    def work(start):
        try:
            for at in range(start, start + 24):
                a, b = at % 4, at % 3
                if not all(map(same_bits, session.run(fetches[a], feeds[b]), expected[a, b])):
                    wrong.append((a, b))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_updates_of_several_threads_are_each_whole():
    scope = Scope.new_root_scope()
    v, first, step = counting(scope)
    session = ClientSession(scope)
    session.run([first])
    torn = []

    def work():
        for _ in range(200):
            (found,) = session.run([v])
            if found[0] != found[1]:
                torn.append(found)
            session.run([step])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not torn and 200 <= session.run([v])[0][0] <= 800
