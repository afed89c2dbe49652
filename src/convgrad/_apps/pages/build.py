"""From a page to a graph: blocks become nodes, texts become attributes and constants, wires become inputs.

A block that cannot be built gets a problem, in the words of the graph library; what depends on it waits, and everything
else is built. Nothing is computed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..._base.errors import ArgumentError, ConvgradError
from ..graph.gradients import add_symbolic_gradients
from ..graph.operation import Operation, Output
from ..graph.row import OpRow
from ..graph.scope import Scope
from ..graph.spec import fits, shape_spelled
from ..graph.table import TABLE
from . import values
from .blocks import symbol_of
from .built import Built, Fetches, Tensors
from .gradient_check import Check, Loop, count_of, epsilon_of, weighted
from .order import ordered, upstream
from .page import Block, Note, Page, Value, Wire
from .setting_texts import nearest
from .symbols import WIRE, Symbol

MOST_NODES = 20_000
"""Of a graph that gradients are added to."""


class _Waits(Exception):
    """A block depends on one that is not there."""


def build(page: Page) -> Built:
    """Build the graph of a page as far as it can be built."""
    return _Builder(page).build()


class _Builder:
    """One page on its way to a graph."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.blocks = page.by_id()
        self.result = Built(page, Scope.new_root_scope(), notes=list(page.notes))
        self.wires = self._among_blocks(page.wires_by_pin())
        self.into: dict[str, list[Wire]] = {}
        for (target, _), wires in self.wires.items():
            self.into.setdefault(target, []).extend(wires)
        self.strict = page.dialect != "convgrad"
        """Whether enuSpace's rules hold: what needs a wire takes no text, literals are not converted."""
        self.said: set[str] = set()
        """Notes on symbols, each of which is made once: pages have dozens of Variables."""

    def _among_blocks(
        self, wires: dict[tuple[str, str], list[Wire]]
    ) -> dict[tuple[str, str], list[Wire]]:
        """Drop the wires of blocks that are not of the graph: sensors look at results, and may lead in circles."""
        foreign = {block.id for block in self.page.blocks if not block.in_graph}
        if not foreign:
            return wires
        found = {}
        for (target, pin), each in wires.items():
            if target in foreign:
                continue
            found[target, pin] = kept = [wire for wire in each if wire.source not in foreign]
            if len(kept) < len(each):
                text = f"a wire into `{pin[:50]}` is dropped: its source is not a block of a graph"
                self.result.notes.append(Note(target, text))
        return found

    def build(self) -> Built:
        ready, circles = ordered(self.page, self.into)
        for id in circles:
            self.result.problems[id] = "it is part of a circle of wires: a graph has none"
        sessions = []
        for block in ready:
            if block.symbol == "ClientSession" and block.in_graph:
                sessions.append(block)
                continue
            self._try(block)
        for block in sessions:
            self._session(block)
        return self.result

    def _try(self, block: Block) -> None:
        if not block.in_graph:
            self.result.notes.append(
                Note(
                    block.id,
                    f"{block.symbol} is shown and not computed: it is not a block of a graph",
                )
            )
            return
        symbol = symbol_of(block, self.page.dialect)
        if symbol is None:
            self.result.problems[block.id] = (
                f"{block.symbol} is not computed here: no block of this name is known"
            )
            return
        if not symbol.computed:
            self.result.problems[block.id] = f"{block.symbol} is not computed here"
            return
        try:
            self.result.outputs[block.id] = self._built(block, symbol)
        except _Waits as waits:
            self.result.problems[block.id] = str(waits)
        except ConvgradError as error:
            self.result.problems[block.id] = _without_node(str(error))

    def _built(self, block: Block, symbol: Symbol) -> Tensors:
        if self.strict:
            self.result.notes += [
                Note(block.id, note) for note in symbol.notes if note not in self.said
            ]
            self.said.update(symbol.notes)
        self._check_pins(block, symbol)
        special = _SPECIAL.get(block.symbol)
        if special is not None:
            return special(self, block, symbol)
        row = TABLE[block.symbol]
        attrs = self._attributes(block, symbol, row)
        inputs = self._inputs(block, symbol, row)
        node = self._scope(block).add(row, inputs, attrs, read=True)
        return {output.pin: output for output in node.outputs}

    def _check_pins(self, block: Block, symbol: Symbol) -> None:
        names = symbol.names
        for wire in self.into.get(block.id, ()):
            if wire.target_pin not in names and wire.target_pin != "scope":
                pin = wire.target_pin[:50]
                text = f"{block.symbol} has no input pin `{pin}`"
                if not self.strict:
                    raise ArgumentError(text + nearest(pin, names))
                self.result.notes.append(Note(block.id, f"{text}; its wire is ignored"))
        if self.strict:
            return
        for pin in block.pins:
            known = pin in names or pin in symbol.outputs or pin == "scope"
            if not known and not pin.startswith("result_"):
                raise ArgumentError(f"{block.symbol} has no pin `{pin[:50]}`{nearest(pin, names)}")

    def _scope(self, block: Block) -> Scope:
        return self.result.scope.with_op_name(node_name(block.id))

    def _text(self, block: Block, symbol: Symbol, name: str) -> Value:
        """Return what stands on a pin, or its default."""
        found = block.pins.get(name)
        if found is not None and not (found.is_empty and not self.strict):
            return found
        pin = symbol.pin(name)
        return Value("" if pin is None else pin.default)

    def _wired(self, block: Block, pin: str) -> list[Output]:
        """Return the tensors wired to a pin, in order; lists are taken apart."""
        found: list[Output] = []
        for wire in self.wires.get((block.id, pin), ()):
            tensor = self._source(wire)
            found += [tensor] if isinstance(tensor, Output) else tensor
        return found

    def _source(self, wire: Wire) -> Output | list[Output]:
        if wire.source in self.result.problems:
            raise _Waits(
                f"`{wire.target_pin}` waits for block {wire.source!r}, which has a problem"
            )
        pins = self.result.outputs.get(wire.source)
        if pins is None:
            raise _Waits(
                f"`{wire.target_pin}` comes from block {wire.source!r}, which is not computed"
            )
        tensor = pins.get(wire.source_pin)
        if tensor is None:
            raise ArgumentError(
                f"`{wire.target_pin}` comes from `{wire.source_pin}` of block {wire.source!r}, "
                f"which has no such output (there are: {', '.join(pins) or 'none'})"
            )
        if wire.source_index is None:
            return tensor
        if isinstance(tensor, Output) or wire.source_index >= len(tensor):
            count = 1 if isinstance(tensor, Output) else len(tensor)
            raise ArgumentError(
                f"`{wire.target_pin}` comes from element {wire.source_index} of `{wire.source_pin}` of block "
                f"{wire.source!r}, which has {count}"
            )
        return tensor[wire.source_index]

    def _inputs(self, block: Block, symbol: Symbol, row: OpRow) -> list[Any]:
        wired = {pin.name: self._wired(block, pin.name) for pin in row.inputs}
        if row.plain and all(len(tensors) == 1 for tensors in wired.values()):
            return [tensors[0] for tensors in wired.values()]
        letters: dict[str, Any] = {}
        for pin in row.inputs:
            if pin.same and wired[pin.name]:
                letters.setdefault(pin.same, wired[pin.name][0].dtype)
        found: list[Any] = []
        for pin in row.inputs:
            tensors = wired[pin.name]
            if tensors and not pin.many and len(tensors) > 1:
                raise ArgumentError(f"`{pin.name}` takes one wire, got {len(tensors)}")
            if tensors:
                found.append(tensors if pin.many else tensors[0])
                continue
            told = symbol.pin(pin.name)
            value = self._text(block, symbol, pin.name)
            needs_wire = told is not None and told.kind == WIRE
            if needs_wire or value.is_empty:
                rule = "a wire" if needs_wire else "a wire or a literal such as {1,2}"
                raise ArgumentError(f"`{pin.name}` needs {rule}")
            wanted = None if self.strict else letters.get(pin.same)
            found.append(values.operand(pin, told, value, wanted, self.strict))
        return found

    def _attributes(self, block: Block, symbol: Symbol, row: OpRow) -> dict[str, Any]:
        texts = tuple(self._text(block, symbol, attr.name).text for attr in row.required)
        rest = self._text(block, symbol, "attrs").text if symbol.attrs else ""
        found, notes = values.attributes(row, texts, rest, tuple(symbol.attrs.items()))
        if notes:
            self.result.notes += [Note(block.id, note) for note in notes]
        return found

    def _optional(self, block: Block, symbol: Symbol) -> dict[str, Any]:
        """Return the attributes on the pin `attrs`, by the op's names."""
        if not symbol.attrs:
            return {}
        given, notes = values.optional(self._text(block, symbol, "attrs").text, symbol.attrs)
        self.result.notes += [Note(block.id, note) for note in notes]
        return given

    # Blocks that are not rows of the table, or are more than one: see `_SPECIAL`.

    def _const(self, block: Block, symbol: Symbol) -> Tensors:
        array = values.initial(self._text(block, symbol, "val"), None, self.strict)
        return {"output": self._scope(block).op("Const", value=array)}

    def _const_ex(self, block: Block, symbol: Symbol) -> Tensors:
        dtype = values.dtype_of(self._text(block, symbol, "dtype"))
        array = values.initial(self._text(block, symbol, "val"), dtype, self.strict)
        return {"output": self._scope(block).op("Const", value=array)}

    def _variable(self, block: Block, symbol: Symbol) -> Tensors:
        wired = self._wired(block, "initvalues")
        if wired:
            if len(wired) > 1 or wired[0].operation.type != "Const":
                raise ArgumentError("`initvalues` must be wired to one Const or Const_ex")
            array = wired[0].operation.attrs["value"]
        else:
            array = values.variable(
                self._text(block, symbol, "shape"),
                self._text(block, symbol, "dtype"),
                self._text(block, symbol, "initvalues"),
                self.strict,
            )
        row = TABLE["Variable"]
        rest = self._text(block, symbol, "attrs").text if symbol.attrs else ""
        known = tuple(symbol.attrs.items())
        attrs, notes = values.variable_attributes(row, rest, known, array.shape, array.dtype)
        self.result.notes += [Note(block.id, note) for note in notes]
        (output,) = self._scope(block).add(row, (), attrs, read=True).outputs
        self.result.variables[output.operation.name] = array
        return {"ref": output}

    def _placeholder(self, block: Block, symbol: Symbol) -> Tensors:
        dtype = values.dtype_of(self._text(block, symbol, "dtype"))
        attrs = self._optional(block, symbol)
        output = self._scope(block).op("Placeholder", dtype=dtype, **attrs)
        value = self._text(block, symbol, "value")
        if not value.is_empty:
            array = values.initial(value, dtype)
            if not fits(output.shape, array.shape):
                raise ArgumentError(
                    f"`value` must have shape {shape_spelled(output.shape)}, got {list(array.shape)}"
                )
            self.result.fed[block.id] = array
        return {"output": output}

    def _inputlist(self, block: Block, symbol: Symbol) -> Tensors:
        return {"output": self._wired(block, "outputlist")}

    def _operation(self, block: Block, symbol: Symbol) -> Tensors:
        wired = self._wired(block, "operation")
        if len(wired) != 1:
            raise ArgumentError(f"`operation` needs one wire, got {len(wired)}")
        return {"output": wired[0]}

    def _randomnormal_ex(self, block: Block, symbol: Symbol) -> Tensors:
        dtype = values.dtype_of(self._text(block, symbol, "dtype"))
        sizes, notes = values.bracketed(self._text(block, symbol, "shape"))
        self.result.notes += [Note(block.id, note) for note in notes]
        seeds = {} if self.strict else self._optional(block, symbol)
        return {"output": self._scope(block).op("RandomNormal", sizes, dtype=dtype, **seeds)}

    def _onehot(self, block: Block, symbol: Symbol) -> Tensors:
        row = TABLE["OneHot"]
        attrs = {} if self.strict else self._optional(block, symbol)
        node = self._scope(block).add(row, self._inputs(block, symbol, row), attrs)
        return {"output": node.outputs[0]}

    def _addsymbolicgradients(self, block: Block, symbol: Symbol) -> Tensors:
        ys, xs = self._wired(block, "outputs"), self._wired(block, "inputs")
        if not ys or not xs:
            raise ArgumentError(f"`{'inputs' if ys else 'outputs'}` needs a wire")
        inner = self._gradient_scope(block)
        return {"grad_outputs": add_symbolic_gradients(inner, ys, xs)}

    def _one(self, block: Block, pin: str) -> Output:
        wired = self._wired(block, pin)
        if len(wired) != 1:
            raise ArgumentError(f"`{pin}` needs one wire, got {len(wired)}")
        return wired[0]

    def _gradient_scope(self, block: Block) -> Scope:
        """Return the scope of a block's gradients; gradients of gradients double the graph each time."""
        count = len(self.result.scope.graph.nodes)
        if count > MOST_NODES:
            raise ArgumentError(
                f"the page has {count} nodes already, and gradients are added to {MOST_NODES} at most"
            )
        return self.result.scope.new_sub_scope(node_name(block.id))

    def _gradientcheck(self, block: Block, symbol: Symbol) -> Tensors:
        y, x = self._one(block, "y"), self._one(block, "x")
        epsilon = epsilon_of(self._text(block, symbol, "epsilon").text)
        inner = self._gradient_scope(block)
        weights, analytic = weighted(inner, y, x)
        self.result.checks.append(Check(block.id, y, x, epsilon, weights, analytic))
        return {"analytic": analytic}

    def _loop(self, block: Block, symbol: Symbol) -> Tensors:
        steps = count_of(self._text(block, symbol, "steps").text)
        self.result.loops[block.id] = Loop(self._one(block, "loss"), steps)
        return {}

    def _session(self, block: Block) -> None:
        found = Fetches(block.id)
        try:
            found.fetches = self._wired(block, "fetch_outputs")
            found.targets = self._operations(block)
        except _Waits as waits:
            self.result.problems[block.id] = str(waits)
            return
        except ConvgradError as error:
            self.result.problems[block.id] = _without_node(str(error))
            return
        starts = [wire.source for wire in self.wires.get((block.id, "fetch_outputs"), ())]
        found.blocks = upstream(starts, self.into)
        self.result.outputs[block.id] = {}
        self.result.sessions.append(found)

    def _operations(self, block: Block) -> list[Operation]:
        """Return what a session runs without fetching it; enuSpace takes it from blocks named Operation alone."""
        for wire in self.wires.get((block.id, "run_outputs"), ()) if self.strict else ():
            source = self.blocks[wire.source]
            if source.symbol != "Operation" and wire.source in self.result.outputs:
                raise ArgumentError(
                    f"`run_outputs` takes operations: put a block Operation behind {source.symbol} {wire.source!r}"
                )
        return [each.operation for each in self._wired(block, "run_outputs")]


_SPECIAL: dict[str, Callable[[_Builder, Block, Symbol], Tensors]] = {
    "AddSymbolicGradients": _Builder._addsymbolicgradients,
    "Const": _Builder._const,
    "Const_ex": _Builder._const_ex,
    "GradientCheck": _Builder._gradientcheck,
    "InputList": _Builder._inputlist,
    "Loop": _Builder._loop,
    "OneHot": _Builder._onehot,
    "Operation": _Builder._operation,
    "Placeholder": _Builder._placeholder,
    "RandomNormal_ex": _Builder._randomnormal_ex,
    "Variable": _Builder._variable,
}


@lru_cache(maxsize=8192)
def node_name(id: str) -> str:
    """Return a name a node may have.

    >>> node_name("ID_1eYS8f0"), node_name("my filter!"), node_name("")
    ('ID_1eYS8f0', 'my_filter_', 'block')
    """
    clean = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", id)
    if not clean:
        return "block"
    return clean if re.match(r"[A-Za-z0-9.]", clean) else f"b{clean}"


def _without_node(message: str) -> str:
    """Drop the node's name in front: a problem stands at its block."""
    return re.sub(r"^node '(?:[^'\\]|\\.)*': ", "", message)
