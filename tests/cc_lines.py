"""Compare two programs' printed lines: text exactly, numbers within the rounding of their type."""

from __future__ import annotations

import re

SMALL = {"float": 2e-5, "double": 1e-12, "half": 4e-3, "bfloat16": 2e-2}
"""The largest difference allowed, as a part of the largest number of the line."""
_TENSOR = re.compile(r"^(?P<head>.* = (?P<type>\w+) \[[\d,]*\]):(?P<values>[^\n]*)$")


def difference(ours: str, theirs: str) -> str:
    """Return what is wrong with a line, nothing if they agree.

    >>> difference("a = float [2]: 1 2", "a = float [2]: 1 2.00001")
    ''
    >>> difference("a = float [2]: 1 2", "a = float [2]: 1 3")
    'value 1 is 2, wanted 3'
    >>> difference("a = OK", "a = BAD")
    "is 'a = OK', wanted 'a = BAD'"
    """
    if ours == theirs:
        return ""
    mine, other = _TENSOR.match(ours), _TENSOR.match(theirs)
    if not mine or not other or mine["head"] != other["head"] or mine["type"] not in SMALL:
        return f"is {ours!r}, wanted {theirs!r}"
    values = [float(each) for each in mine["values"].split()]
    wanted = [float(each) for each in other["values"].split()]
    if len(values) != len(wanted):
        return f"has {len(values)} values, wanted {len(wanted)}"
    allowed = SMALL[mine["type"]] * max(1.0, *map(abs, wanted))
    for at, (value, want) in enumerate(zip(values, wanted, strict=True)):
        if not abs(value - want) <= allowed and value != want:
            return f"value {at} is {value:g}, wanted {want:g}"
    return ""


def labelled(text: str) -> dict[str, str]:
    """Return lines by what stands before the first " = "; a line without one belongs to the line before it."""
    lines: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        if " = " in line:
            label = line.split(" = ", 1)[0]
            while label in lines:
                label += "'"
            lines[label] = line
        else:
            lines[label] = lines.get(label, "") + "\n" + line
    return lines
