"""A page as data: blocks with pins, wires between them, and notes on how it was read.

Nothing here knows files or graphs. A page may be wrong in every way a drawing can be (wires to pins that no block
has, texts that mean nothing); the code that builds a graph from it says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..._base.dtypes import AnyArray

GRAPH_TASKS = ("tensorflow", "enu_tensorflow")
"""How the task of a graph block begins; enuSpace names tasks after folders, such as `enu_tensorflow2_0`."""
DIALECTS = ("convgrad", "enuspace-3", "enuspace-4", "enuspace-json")


@dataclass(eq=False)
class Value:
    """What stands on a pin."""

    text: str = ""
    """As typed or stored."""
    type: str = "string"
    """enuSpace's type of the pin: string, int, float, double or bool; `DT_...` for an array of another dtype.

    A string is read as its pin demands, everything else as a typed array."""
    shape: tuple[int, ...] | None = None
    """`()` is a scalar; None if the page does not say."""
    array: AnyArray | None = None
    """A value that was stored as numbers instead of text."""
    missing: bool = False
    """It was stored as numbers, and they are not there."""

    def __eq__(self, other: object) -> bool:
        """Compare arrays by dtype and bits, so that NaN equals itself."""
        if not isinstance(other, Value):
            return NotImplemented
        mine, theirs = (
            (value.text, value.type, value.shape, value.missing) for value in (self, other)
        )
        return mine == theirs and _bits(self.array) == _bits(other.array)

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was typed and nothing is stored."""
        return not self.text and self.array is None and not self.missing


def _bits(array: AnyArray | None) -> object:
    if array is None:
        return None
    # The bytes of an array of texts are addresses.
    content = array.tolist() if array.dtype.hasobject else array.tobytes()
    return array.dtype, array.shape, content


@dataclass
class Block:
    """One block: a symbol, put somewhere, with values on its pins."""

    id: str
    symbol: str
    """Such as `Conv2D`, without enuSpace's `#`."""
    pins: dict[str, Value] = field(default_factory=dict)
    x: float = 0.0
    y: float = 0.0
    task: str = "tensorflow"

    @property
    def in_graph(self) -> bool:
        """Whether it computes something; others, such as enuSpace's `logic`, only show.

        >>> Block("a", "Add", task="enu_tensorflow2_0").in_graph, Block("s", "SENSOR_LCD", task="logic").in_graph
        (True, False)
        """
        return self.task == "tensorflow" or self.task.startswith(GRAPH_TASKS)


@dataclass
class Wire:
    """A connection from an output pin to an input pin."""

    source: str
    source_pin: str
    source_index: int | None
    """Which element of a list, such as 3 in `grad_outputs[3]`; None for the whole pin."""
    target: str
    target_pin: str
    hidden: bool = False
    """Not drawn; it connects all the same."""


@dataclass
class Note:
    """Something the reader of a page should know, and that does not keep the page from being read."""

    block: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.block}: {self.text}" if self.block is not None else self.text


@dataclass
class Page:
    """A page; the order of its wires is the order of the lists they make."""

    name: str
    blocks: list[Block] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    dialect: str = "convgrad"
    notes: list[Note] = field(default_factory=list)

    def block(self, id: str) -> Block | None:
        """Return the block of an id, or None.

        >>> page = Page("p", [Block("a", "Const"), Block("b", "Relu")], [Wire("a", "output", None, "b", "features")])
        >>> page.block("b").symbol, page.block("c")
        ('Relu', None)
        """
        return next((block for block in self.blocks if block.id == id), None)

    def by_id(self) -> dict[str, Block]:
        """Return all blocks by their ids: for callers that ask often."""
        return {block.id: block for block in self.blocks}

    def wires_into(self, target: str, pin: str | None = None) -> Iterator[Wire]:
        """Yield the wires into a block, or one pin of it, in document order."""
        return (
            wire
            for wire in self.wires
            if wire.target == target and (pin is None or wire.target_pin == pin)
        )

    def wires_by_pin(self) -> dict[tuple[str, str], list[Wire]]:
        """Return the wires by target block and pin, each list in document order: for callers that ask often."""
        found: dict[tuple[str, str], list[Wire]] = {}
        for wire in self.wires:
            found.setdefault((wire.target, wire.target_pin), []).append(wire)
        return found

    def note(self, block: str | None, text: str) -> None:
        """Add a note."""
        self.notes.append(Note(block, text))


def split_index(pin: str) -> tuple[str, int | None]:
    """Split the index off an output pin.

    >>> split_index("grad_outputs[3]"), split_index("output")
    (('grad_outputs', 3), ('output', None))
    """
    name, bracket, rest = pin.partition("[")
    digits = rest.removesuffix("]")
    if bracket and rest.endswith("]") and digits.isascii() and digits.isdigit() and len(digits) < 7:
        return name, int(digits)
    return pin, None
