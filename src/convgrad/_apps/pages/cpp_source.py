"""A graph as a C++17 program for TensorFlow's C++ client API, which convgrad's headers have without TensorFlow.

Ops that only gradients use are in `ops::internal`, as TensorFlow has them. Two of those, SumToShape and SpreadReduced,
are not TensorFlow's: gradients of broadcast or reduced tensors compile with convgrad's headers only. A run that reads a
Variable and changes it sees the old value here; TensorFlow leaves open which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from ..._base.dtypes import BFLOAT16, FLOATING, AnyArray
from ..graph import dtypes
from ..graph.operation import Graph, Operation, Output
from ..graph.row import Attr
from .program import MOST_SPELT, Program, is_seedless, prepare_program, stand_in
from .tensors import all_finite

_ACCEPTED = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./-]*")
"""Names that TensorFlow's graphs take."""
_TYPES = {
    **{f"DT_{row.tensorflow_name.upper()}": row.cpp for row in FLOATING},
    "DT_BOOL": "bool",
}
"""C++'s types; an integer's is its NumPy name with `_t`."""
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_OWN = """
bfloat16 eigen feeds fetches half i int8_t int16_t int32_t int64_t linux main ops output outputs root session size_t
status std tensor tensorflow uint8_t uint16_t uint32_t uint64_t unix errno stdin stdout stderr assert
"""
"""Words the program uses itself, and macros of common headers."""
_RESERVED = {*_KEYWORDS.split(), *_OWN.split()}

_BUILDING = [
    "//",
    "// With convgrad's headers, which need no TensorFlow; INCLUDE is what `convgrad info --include` prints:",
    "//   g++ -std=c++17 -O2 -IINCLUDE -IINCLUDE/shim program.cc -o program -pthread",
]
_HELPERS = """
using namespace tensorflow;  // NOLINT: as TensorFlow's own examples do

namespace {

// A tensor of these numbers, row by row.
template <typename T>
Tensor TensorOf(const TensorShape& shape, const std::vector<T>& values) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  std::copy(values.begin(), values.end(), tensor.flat<T>().data());
  return tensor;
}

// A tensor of these bits, row by row.
template <typename T, typename Word>
Tensor TensorOfBits(const TensorShape& shape, const std::vector<Word>& words) {
  static_assert(sizeof(T) == sizeof(Word), "one word per element");
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  std::memcpy(static_cast<void*>(tensor.flat<T>().data()), words.data(), words.size() * sizeof(Word));
  return tensor;
}

template <typename T>
Tensor Zeros(const TensorShape& shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  std::fill_n(tensor.flat<T>().data(), tensor.NumElements(), T(0));
  return tensor;
}

}  // namespace
"""
_TAIL = """
  if (!status.ok()) {
    std::cerr << status.ToString() << "\\n";
    return 1;
  }
  for (const Tensor& tensor : outputs) {
    std::cout << DataTypeString(tensor.dtype()) << " " << tensor.shape().DebugString() << "\\n";
  }
  return 0;
}
"""


def cpp_source(
    graph: Graph,
    fetches: Sequence[str] | None = None,
    feeds: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    name: str = "",
) -> str:
    """Return a program whose `main` builds the graph, runs a session and prints dtypes and shapes.

    Arguments are those of `python_source`. Random ops without a seed get the one their numbers come from here, so that
    TensorFlow draws the same.

    >>> from convgrad.graph import Scope, ops
    >>> scope = Scope.new_root_scope()
    >>> x = ops.Placeholder(scope.with_op_name("x"), "float32", [1, 4, 4, 2])
    >>> y = ops.MaxPool(scope.with_op_name("y"), x, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", data_format="NCHW")
    >>> print(cpp_source(scope.graph).partition("int main() {")[2].partition("if (")[0].strip())
    const Scope root = Scope::NewRootScope();
      auto x = ops::Placeholder(
          root.WithOpName("x"),
          DT_FLOAT,
          ops::Placeholder::Shape(PartialTensorShape(std::vector<int64_t>{1, 4, 4, 2})));
      auto y = ops::MaxPool(
          root.WithOpName("y"),
          x,
          {1, 1, 2, 2},
          {1, 1, 2, 2},
          "SAME",
          ops::MaxPool::DataFormat("NCHW"));
    """
    program = prepare_program("cpp_source", graph, fetches, feeds, initial, _RESERVED, _ACCEPTED)
    return _Writer(program).written(name)


def literal(text: str) -> str:
    r"""Write a text as a string literal: one line of ASCII, UTF-8 inside, whatever is in it.

    Octal escapes end by themselves; hexadecimal ones would swallow letters behind them.

    >>> print(literal("conv"), literal('a"b\\'), literal("é?"))
    "conv" "a\"b\\" "\303\251\077"
    """
    found = []
    for byte in text.encode("utf-8", "surrogatepass"):
        mark = chr(byte)
        if mark in '"\\':
            found.append("\\" + mark)
        elif 32 <= byte < 127 and mark != "?":  # two of those and a third mark are a trigraph
            found.append(mark)
        else:
            found.append(f"\\{byte:03o}")
    return f'"{"".join(found)}"'


class _Writer:
    def __init__(self, program: Program) -> None:
        self.program = program

    def written(self, name: str) -> str:
        program = self.program
        count = len(program.graph.nodes)
        title = f"Graph {literal(name)}" if name else "A graph"
        lines = [f"// {title}, written by convgrad: {count} {'node' if count == 1 else 'nodes'}."]
        lines += _BUILDING
        lines += [f"#include <{each}>" for each in ("algorithm", "cstdint", "cstring", "iostream")]
        lines += ["#include <vector>", ""]
        lines += [
            f'#include "tensorflow/{each}.h"'
            for each in (
                "cc/client/client_session",
                "cc/framework/scope",
                "cc/ops/standard_ops",
                *(["cc/ops/nn_ops_internal"] if self.has_internal() else []),
                "core/framework/tensor",
            )
        ]
        lines += [_HELPERS, "int main() {", "  const Scope root = Scope::NewRootScope();"]
        for node in program.graph.nodes:
            lines += self.statement(node)
        lines += self.running()
        return "\n".join(lines) + _TAIL

    def has_internal(self) -> bool:
        return any(_class(node).startswith("ops::internal::") for node in self.program.graph.nodes)

    def statement(self, node: Operation) -> list[str]:
        title = self.program.titles[node]
        comment = [f"  // {literal(node.name)}"] if title != node.name else []
        before = f"auto {self.program.names[node]} = {_class(node)}("
        return [
            *comment,
            _statement(before, [f"root.WithOpName({literal(title)})", *self.call(node)]),
        ]

    def call(self, node: Operation) -> list[str]:
        """Return the arguments behind the scope."""
        if node.type == "Const":
            return [_tensor(node.attrs["value"])]
        words = [
            each if isinstance(each, str) else f"OutputList{{{', '.join(each)}}}"
            for each in self.program.inputs(node, self.reference)
        ]
        words += [_attribute(attr, node.attrs[attr.name]) for attr in node.row.required]
        given = self.program.optional(node)
        if is_seedless(node):
            given.setdefault("seed", crc32(node.name.encode("utf-8", "surrogatepass")))
        by_name = {attr.name: attr for attr in node.row.optional}
        set_ = [
            f"{by_name[name].setter}({_attribute(by_name[name], value)})"
            for name, value in given.items()
        ]
        return [*words, *([f"{_class(node)}::{'.'.join(set_)}"] if set_ else [])]

    def reference(self, output: Output) -> str:
        name = self.program.names[output.operation]
        return name if len(output.operation.outputs) == 1 else f"{name}.{output.pin}"

    def running(self) -> list[str]:
        """Return the statements that give Variables their first values, and run the session."""
        program, lines = self.program, [""]
        firsts = [program.names[node] for node in program.first]
        values = {node: _tensor(value) for node, value in program.initial.items()}
        values |= {node: self.value(node) for node in program.unset}
        for at, (node, text) in enumerate(values.items()):
            # Behind all nodes, whose names are taken by now: this one gets another if it must.
            arguments = ['root.WithOpName("first_value")', program.names[node], text]
            firsts.append(f"FirstValue{at}")
            lines.append(_statement(f"auto {firsts[-1]} = ops::Assign(", arguments))
        lines += ["  if (!root.ok()) {", '    std::cerr << root.status().ToString() << "\\n";']
        lines += ["    return 1;", "  }", "  ClientSession session(root);"]
        lines += ["  std::vector<Tensor> outputs;", "  Status status;"]
        for first in firsts:
            lines += [f"  status.Update(session.Run({{{first}}}, &outputs));"]
        feeds = [f"{{{program.names[node]}, {self.value(node)}}}" for node in program.placeholders]
        fetched = [self.reference(each) for each in program.fetches]
        lines.append(_statement("const ClientSession::FeedType feeds = {", feeds, "};"))
        lines.append(_statement("const std::vector<Output> fetches = {", fetched, "};"))
        return [*lines, "  status.Update(session.Run(feeds, fetches, &outputs));"]

    def value(self, node: Operation) -> str:
        """Return what is given to a placeholder, or a Variable without a first value: zeros, mostly."""
        given = self.program.feeds.get(node)
        if given is not None:
            return _tensor(given)
        spec = node.specs[0]
        return f"Zeros<{_type(spec.dtype)}>({_shape(stand_in(spec))})"


def _statement(before: str, arguments: list[str], behind: str = ");") -> str:
    """Write a call that is a statement, as TensorFlow's style breaks lines."""
    line = f"  {before}{', '.join(arguments)}{behind}"
    if len(line) <= 80 or not arguments:
        return line
    return f"  {before}\n      " + ",\n      ".join(arguments) + behind


def _class(node: Operation) -> str:
    space = "ops::internal" if node.row.internal else "ops"
    return f"{space}::{node.type}"


def _attribute(attr: Attr, value: Any) -> str:
    if attr.kind == "type":
        return dtypes.name(value)
    if attr.kind == "string":
        return literal(value)
    if attr.kind == "bool":
        return "true" if value else "false"
    if attr.kind == "shape":
        if value is None:
            return "PartialTensorShape()"
        sizes = ", ".join("-1" if size is None else str(size) for size in value)
        # A vector: `{}` alone would be taken for the default, a shape of unknown rank.
        return f"PartialTensorShape(std::vector<int64_t>{{{sizes}}})"
    if attr.kind == "ints":
        return f"{{{', '.join(map(str, value))}}}"
    return _whole(value)


def _whole(value: int) -> str:
    """Write a whole number of 64 bits; the smallest has no literal of its own."""
    return "INT64_MIN" if value == -(2**63) else str(value)


def _type(dtype: np.dtype[Any]) -> str:
    return _TYPES.get(dtypes.name(dtype), f"{dtype.name}_t")


def _shape(sizes: Sequence[int]) -> str:
    return f"TensorShape({{{', '.join(map(str, sizes))}}})" if sizes else "TensorShape()"


def _tensor(array: AnyArray) -> str:
    """Write an expression that is a tensor: small ones number by number, others as bits."""
    kind, shape = _type(array.dtype), _shape(array.shape)
    if not array.size:
        return f"Tensor({dtypes.name(array.dtype)}, {shape})"
    flat = np.ascontiguousarray(array).reshape(-1)
    real = array.dtype in dtypes.FLOATS
    if real and (array.size > MOST_SPELT or not all_finite(flat)):
        bits = 8 * array.dtype.itemsize
        words = [f"0x{word:0{bits // 4}x}" for word in flat.view(f"u{bits // 8}").tolist()]
        return f"TensorOfBits<{kind}, uint{bits}_t>({shape}, {_braces(words)})"
    if real:
        words = [_real(value, array.dtype) for value in flat]
    elif array.dtype.kind == "b":
        words = ["true" if value else "false" for value in flat]
    elif array.dtype == np.uint64:
        words = [f"{value}u" for value in flat.tolist()]
    else:
        words = [_whole(value) for value in flat.tolist()]
    return f"TensorOf<{kind}>({shape}, {_braces(words)})"


def _braces(words: list[str]) -> str:
    """Write a list, a few on each line if there are many."""
    rows = [", ".join(words[at : at + 8]) for at in range(0, len(words), 8)]
    return "{" + ",\n          ".join(rows) + "}"


def _real(value: Any, dtype: np.dtype[Any]) -> str:
    wide = float(value)
    text = repr(wide) if dtype == np.float64 else str(np.float32(wide))
    if dtype == np.float64:
        return text
    found = f"{text}f"
    if dtype == np.float32:
        return found
    return f"bfloat16({found})" if dtype == BFLOAT16.numpy else f"Eigen::half({found})"
