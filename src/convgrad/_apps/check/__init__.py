"""Tests of somebody else's kernel, judged by the oracle.

`properties.py` draws problems (`problems.py`), `implementation.py` calls the kernel, `child.py` does so in a process
that may die, `judge.py` compares, `guess.py` and `mistakes.py` (`mistaken_axes.py`, `mistaken_numbers.py`) look for
the cause, `shrink.py` finds the smallest failing case, `run.py` conducts, `report.py` tells. It knows the oracle, and
no kernel and no plan of ours.
"""
