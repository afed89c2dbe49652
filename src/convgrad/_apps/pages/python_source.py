"""A graph as a Python program that builds it again and runs it, to the same bits."""

from __future__ import annotations

import base64
import builtins
import keyword
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._base.dtypes import BFLOAT16, AnyArray
from ..graph.operation import Graph, Operation, Output
from ..graph.row import Attr
from .program import MOST_SPELT, Program, prepare_program, stand_in, wrapped

_WIDE = 92
"""Characters of a line of base64."""
_ACCEPTED = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
"""Names that `Scope.with_op_name` takes."""
_OWN = "array base64 feeds fetches ml_dtypes main np ops run scope session zlib l o i"
"""Words the program uses itself, builtins it calls, and letters that linters refuse."""
_RESERVED = {*keyword.kwlist, *keyword.softkwlist, *_OWN.split(), *dir(builtins)}

_DECODER = '''
def array(dtype, shape, data):
    """Return an array from its bytes: little-endian, compressed, in base64."""
    return np.frombuffer(zlib.decompress(base64.b64decode(data)), dtype).reshape(shape)
'''
_TAIL = '''

def main():
    """Run the graph once and print what it gives."""
    {call}
    for name, value in results.items():
        print(name, value.dtype.name, list(value.shape))
        if value.size <= 16:
            print(value)


if __name__ == "__main__":
    main()
'''


def python_source(
    graph: Graph,
    fetches: Sequence[str] | None = None,
    feeds: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    name: str = "",
) -> str:
    """Return a program that imports numpy and convgrad.graph, builds the graph and runs it.

    Its function `run` takes the placeholders' values as arguments and returns the fetched arrays by name; `main` runs
    it and prints them. Results have the bits that a session of this graph gives.

    Parameters
    ----------
    graph : Graph
    fetches : list of str, optional
        Nodes or outputs: ``"conv"``, ``"loss:1"``. By default everything that nothing else uses; then Assigns of
        constants to Variables run first.
    feeds : dict, optional
        Values that `main` gives placeholders, by name; the others get zeros.
    initial : dict, optional
        First values of Variables, by name. One that needs a value and has none becomes an argument too.
    name : str
        Of the graph, for the comment at the top.

    >>> from convgrad.graph import Scope, ops
    >>> scope = Scope.new_root_scope()
    >>> x = ops.Placeholder(scope.with_op_name("x"), "float32", [2])
    >>> y = ops.Square(scope.with_op_name("y"), x)
    >>> print(python_source(scope.graph, name="square").partition("def main")[0].rstrip())
    # Graph "square", written by convgrad: 2 nodes.
    <BLANKLINE>
    import numpy as np
    <BLANKLINE>
    from convgrad.graph import ClientSession, Scope, ops
    <BLANKLINE>
    <BLANKLINE>
    def run(
        x,  # float32[2], placeholder "x"
    ):
        \"\"\"Build the graph, run a session, and return what was fetched by name.\"\"\"
        scope = Scope.new_root_scope()
        x_node = ops.Placeholder(scope.with_op_name("x"), "float32", [2])
        y = ops.Square(scope.with_op_name("y"), x_node)
    <BLANKLINE>
        session = ClientSession(scope)
        feeds = {x_node: x}
        fetches = {"y:0": y}
        return dict(zip(fetches, session.run(fetches.values(), feeds)))
    """
    program = prepare_program("python_source", graph, fetches, feeds, initial, _RESERVED, _ACCEPTED)
    return _Writer(program).written(name)


def literal(text: str) -> str:
    r"""Write a text as a literal of Python: one line of ASCII, whatever is in it.

    >>> print(literal("conv"), literal('a"b'), literal("line\n"))
    "conv" 'a"b' 'line\n'
    """
    plain = text.isascii() and text.isprintable() and not re.search(r'["\\]', text)
    return f'"{text}"' if plain else ascii(text)


class _Writer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []
        self.modules: set[str] = set()
        # A caller sees the arguments: they have the plain names, and their nodes longer ones.
        self.names = dict(program.names)
        self.arguments = {node: program.names[node] for node in program.arguments}
        taken = {*program.names.values(), *_RESERVED}
        for node, argument in self.arguments.items():
            word = f"{argument}_node"
            while word in taken:
                word += "_"
            taken.add(word)
            self.names[node] = word

    def written(self, name: str) -> str:
        program = self.program
        body = self.body()
        values = [self.value(node) for node in program.arguments]
        count = len(program.graph.nodes)
        title = f"Graph {literal(name)}" if name else "A graph"
        head = [f"# {title}, written by convgrad: {count} {'node' if count == 1 else 'nodes'}.", ""]
        head += [f"import {module}" for module in sorted(self.modules & {"base64", "zlib"})]
        head += (
            ["", "import ml_dtypes"] if "ml_dtypes" in self.modules else [""] * bool(self.modules)
        )
        head += ["import numpy as np", "", "from convgrad.graph import ClientSession, Scope, ops"]
        if "zlib" in self.modules:
            head += ["", _DECODER.rstrip()]
        tail = _TAIL.replace("    {call}", wrapped("results = run(", values, ")", 4))
        # Without arrays of its own a program has no use for numpy.
        if not re.search(r"\bnp\.", "\n".join(body) + tail + "\n".join(head)):
            head.remove("import numpy as np")
        return "\n".join([*head, "", "", *body]) + "\n" + tail

    def body(self) -> list[str]:
        program, names = self.program, self.names
        lines = ["def run("]
        for node, argument in self.arguments.items():
            what = "placeholder" if node.type == "Placeholder" else "first value of Variable"
            lines.append(f"    {argument},  # {node.specs[0]}, {what} {literal(node.name)}")
        lines = [*lines, "):"] if self.arguments else ["def run():"]
        lines += ['    """Build the graph, run a session, and return what was fetched by name."""']
        lines += ["    scope = Scope.new_root_scope()"]
        used = program.used
        for node in program.graph.nodes:
            if program.titles[node] != node.name:
                lines.append(f"    # {literal(node.name)}")
            target = f"{names[node]} = " if node in used else ""
            lines.append(wrapped(f"{target}ops.{node.type}(", self.call(node), ")", 4))
        lines += ["", "    session = ClientSession(scope)"]
        lines += self.variables()
        lines += [f"    session.run([{names[node]}])" for node in program.first]
        feeds = [f"{names[node]}: {self.arguments[node]}" for node in program.placeholders]
        lines.append(wrapped("feeds = {", feeds, "}", 4))
        fetched = [f"{literal(each.name)}: {self.reference(each)}" for each in program.fetches]
        lines.append(wrapped("fetches = {", fetched, "}", 4))
        lines.append("    return dict(zip(fetches, session.run(fetches.values(), feeds)))")
        return lines

    def variables(self) -> list[str]:
        titles = self.program.titles
        rows = [
            f"{literal(titles[node])}: {self.array(value)}"
            for node, value in self.program.initial.items()
        ]
        rows += [f"{literal(titles[node])}: {self.arguments[node]}" for node in self.program.unset]
        return [wrapped("session.set_variables({", rows, "})", 4)] if rows else []

    def reference(self, output: Output) -> str:
        name = self.names[output.operation]
        return name if len(output.operation.outputs) == 1 else f"{name}.{output.pin}"

    def call(self, node: Operation) -> list[str]:
        """Return the arguments of the call that makes a node."""
        program = self.program
        words = [f"scope.with_op_name({literal(program.titles[node])})"]
        if node.type == "Const":
            value, dtype = self.constant(node.attrs["value"])
            return [*words, value, *dtype]
        words += [
            each if isinstance(each, str) else f"[{', '.join(each)}]"
            for each in program.inputs(node, self.reference)
        ]
        words += [_attribute(attr, node.attrs[attr.name]) for attr in node.row.required]
        kinds = {attr.name: attr for attr in node.row.optional}
        for name, value in program.optional(node).items():
            written = _attribute(kinds[name], value)
            words.append(written if node.type == "Placeholder" else f"{name}={written}")
        return words

    def constant(self, array: AnyArray) -> tuple[str, list[str]]:
        """Return a constant's value and, where that does not say it, its dtype."""
        dtype = [literal(array.dtype.name)]
        if array.dtype == np.uint64:  # NumPy makes floats of a list of large and small ones
            return self.array(array), []
        if not array.size:
            return f"np.zeros({array.shape})", dtype
        spelt = _spelt(array)
        if spelt is not None:
            return spelt, dtype
        return self.bits(array), []

    def array(self, array: AnyArray) -> str:
        """Write an expression that is an array, or what one is made of for a Variable."""
        if not array.size:
            return f"np.zeros({array.shape}, {self.dtype(array)})"
        spelt = _spelt(array)
        return self.bits(array) if spelt is None else f"np.array({spelt}, {self.dtype(array)})"

    def dtype(self, array: AnyArray) -> str:
        if array.dtype == BFLOAT16.numpy:
            self.modules.add("ml_dtypes")
            return "ml_dtypes.bfloat16"
        return literal(array.dtype.name)

    def bits(self, array: AnyArray) -> str:
        self.modules |= {"base64", "zlib"}
        narrow = array.dtype == BFLOAT16.numpy
        plain = np.ascontiguousarray(array).view(np.uint16) if narrow else array
        stored = plain.astype(plain.dtype.newbyteorder("<"))
        data = base64.b64encode(zlib.compress(stored.tobytes(), 9)).decode("ascii")
        parts = [data[at : at + _WIDE] for at in range(0, len(data), _WIDE)]
        inside = "".join(f'\n        "{part}"' for part in parts)
        found = f'array(\n        "{stored.dtype.str}",\n        {array.shape},{inside},\n    )'
        if not narrow:
            return found
        return f"{found}.view({self.dtype(array)})"

    def value(self, node: Operation) -> str:
        """Return what `main` gives an argument."""
        given = self.program.feeds.get(node)
        if given is not None:
            return self.array(given)
        zeros = np.zeros(0, node.specs[0].dtype)
        return f"np.zeros({stand_in(node.specs[0])}, {self.dtype(zeros)})"


def _spelt(array: AnyArray) -> str | None:
    """Write numbers one by one, or return None if there are too many or Python has no digits for them."""
    if array.size > MOST_SPELT:
        return None
    if array.dtype.kind in "biu":
        return repr(array.tolist())
    if not np.isfinite(array).all():
        return None
    with np.errstate(over="ignore"):  # fewer digits of the largest number are more than it
        return _nested(array)


def _nested(array: AnyArray) -> str:
    if array.ndim:
        return "[" + ", ".join(_nested(part) for part in array) + "]"
    wide = float(array)
    for digits in range(1, 18):
        text = f"{wide:.{digits}g}"
        if float(array.dtype.type(float(text))) == wide:
            return repr(float(text))
    raise AssertionError(wide)  # 17 digits are enough for every double


def _attribute(attr: Attr, value: Any) -> str:
    if attr.kind == "type":
        return literal(value.name)
    if attr.kind == "string":
        return literal(value)
    if attr.kind in ("ints", "shape"):
        return repr(None if value is None else list(value))
    return repr(value)
