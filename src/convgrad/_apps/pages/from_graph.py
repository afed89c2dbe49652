"""A graph as a page: every node a block, every input a wire, attributes as the texts people type.

It is how a graph is saved: `document.write(page_of(graph, name))` is a page file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, shown
from ..graph.operation import Graph, Operation
from ..graph.row import Attr
from ..graph.spec import Shape
from .layout import arrange
from .page import Block, Page, Value, Wire
from .program import fitting
from .setting_texts import VAR_TYPES, attributes_text, dtype_name, ints_text, shape_text

_TYPES = {dtype: name for name, dtype in VAR_TYPES.items()}


def page_of(graph: Graph, name: str, initial: Mapping[str, Any] | None = None) -> Page:
    """Return a graph as a page, its blocks arranged in columns.

    Block ids are the names of nodes. `initial` has values of Variables by name (`session.variables` has them); one
    that is not there has an empty pin `initvalues`. A list input gets one wire per tensor, in order.

    >>> from convgrad.graph import Scope, ops
    >>> scope = Scope.new_root_scope()
    >>> x = ops.Placeholder(scope.with_op_name("x"), "float32", [1, 8, 8, 2])
    >>> y = ops.MaxPool(scope.with_op_name("y"), x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    >>> page = page_of(scope.graph, "pool")
    >>> {pin: value.text for pin, value in page.blocks[1].pins.items()}
    {'ksize': '1,2,2,1', 'strides': '1,2,2,1', 'padding': 'SAME', 'attrs': ''}
    >>> page.wires
    [Wire(source='x', source_pin='output', source_index=None, target='y', target_pin='input', hidden=False)]
    """
    values = dict(initial or {})
    page = Page(name)
    for node in graph.nodes:
        if not node.name.isprintable():
            raise ArgumentError(
                f"page_of: the name of a node must be one line of printable text, got {shown(node.name)}."
            )
        page.blocks.append(Block(node.name, node.type, _pins(node, values)))
        page.wires += [
            Wire(each.operation.name, each.pin, None, node.name, node.row.pin_of(at).name)
            for at, each in enumerate(node.inputs)
        ]
    if values:
        raise ArgumentError(
            f"page_of: `initial` must name Variables of the graph, got {shown(sorted(values)[0])}."
        )
    arrange(page)
    return page


def _pins(node: Operation, initial: dict[str, Any]) -> dict[str, Value]:
    if node.type == "Const":
        return {"val": _stored(node.attrs["value"])}
    try:
        pins = {attr.name: Value(_text(attr, node.attrs[attr.name])) for attr in node.row.required}
        set_ = {
            f"{attr.name}_": _spelt(attr, node.attrs[attr.name])
            for attr in node.row.optional
            if node.attrs[attr.name] != attr.default
        }
        if node.row.optional:
            # Written even if it is empty: what is not there means enuSpace's default, `axis_ = 0` of OneHot say.
            pins["attrs"] = Value(attributes_text(set_))
    except ArgumentError as error:
        raise ArgumentError(f"page_of: node {node.name!r}: {error}") from None
    if node.type == "Variable":
        pins["initvalues"] = Value()
        if node.name in initial:
            given, where = initial.pop(node.name), f"initial[{shown(node.name)}]"
            pins["initvalues"] = _stored(fitting("page_of", where, given, node.specs[0]))
    return pins


def _stored(array: AnyArray) -> Value:
    name = _TYPES.get(array.dtype) or dtype_name(array.dtype)
    return Value("", name, array.shape, array)


def _text(attr: Attr, value: Any) -> str:
    """Return the text of a pin of its own."""
    if attr.kind == "ints":
        return ints_text(value)[1:-1]
    if attr.kind == "type":
        return dtype_name(value)
    if attr.kind == "shape":
        return _sizes(attr.name, value)
    assert attr.kind == "string", attr  # no row has another kind that is required
    return str(value)


def _spelt(attr: Attr, value: Any) -> Any:
    """Return what `attributes_text` writes for an attribute."""
    if attr.kind != "shape":
        return value
    return _sizes(attr.name, value) if value else ()


def _sizes(name: str, shape: Shape) -> str:
    if shape is None:
        raise ArgumentError(f"`{name}`: no text stands for a shape of unknown rank")
    return shape_text(-1 if size is None else size for size in shape)
