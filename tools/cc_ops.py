"""Write the op classes of the C++ headers, and the table they are made from, out of the table of ops.

    python tools/cc_ops.py [--check]

`--check` writes nothing and fails if a file is not what the table says.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from convgrad._apps.graph import dtypes
from convgrad._apps.graph.row import Attr, OpRow, Pin, no_gradient
from convgrad._apps.graph.table import GROUPS, TABLE

INCLUDE = Path(__file__).resolve().parents[1] / "src" / "convgrad" / "include"
CC = INCLUDE / "convgrad" / "cc"

HEADERS = {
    "math_ops": (
        "Cast Add Subtract Multiply Div AddN Equal Negate Square Sqrt Exp Log Tanh Sigmoid MatMul Sum Mean ArgMax "
        "Range SpreadReduced"
    ),
    "array_ops": "Placeholder Shape Reshape Transpose InvertPermutation OneHot BroadcastTo SumToShape",
    "random_ops": "RandomNormal RandomUniform",
    "state_ops": "Variable Assign",
    "training_ops": "ApplyGradientDescent",
}
"""In which of TensorFlow's headers a class is; all others are in nn_ops."""
SUBJECTS = {
    "nn_ops": "Ops of networks",
    "array_ops": "Ops on shapes and the order of elements",
    "math_ops": "Arithmetic",
    "random_ops": "Random numbers",
    "state_ops": "Variables",
    "training_ops": "Updates of Variables",
}
ALIASES = {
    "Multiply": "Mul",
    "Negate": "Neg",
    "Subtract": "Sub",
    "Mean": "ReduceMean",
    "Sum": "ReduceSum",
}
"""Second names TensorFlow's headers have."""
TYPES = {
    "Multiply": "Mul",
    "Negate": "Neg",
    "Subtract": "Sub",
    "RandomNormal": "RandomStandardNormal",
    "Variable": "VariableV2",
}
"""TensorFlow's name of the op where its class has another."""
TYPE_ATTRS = {
    "Const": "",
    "Placeholder": "",
    "Variable": "",
    "Conv2DBackpropInput": "T:1",
    "DepthwiseConv2dNativeBackpropInput": "T:1",
    "Range": "Tidx:0",
    "Reshape": "T:0,Tshape:1",
    "Transpose": "T:0,Tperm:1",
    "Cast": "SrcT:0",
    "OneHot": "T:2,TI:0",
    "BroadcastTo": "T:0,Tidx:1",
    "SumToShape": "T:0,Tshape:1",
    "Sum": "T:0,Tidx:1",
    "Mean": "T:0,Tidx:1",
    "SpreadReduced": "T:0,Tidx:1,Tshape:2",
    "ArgMax": "T:0,Tidx:1",
}
"""Which attribute of TensorFlow's op is the type of which input; `T:0` of all others."""
GIVES = {
    "Const": "dtype",
    "Placeholder": "dtype",
    "Variable": "Ref(dtype)",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "Shape": "out_type",
    "Cast": "DstT",
    "ArgMax": "output_type",
    "Equal": "bool",
    "Range": "Tidx",
    "Assign": "Ref(T)",
    "ApplyGradientDescent": "Ref(T)",
}
"""The type of outputs, `T` of all others."""
WORDS = {"padding": "SAME,VALID,EXPLICIT", "data_format": "NHWC,NCHW"}
"""Values TensorFlow checks when a node is made; the table leaves convolutions' to their own rules."""
ATTR_TYPES = {
    "out_type": dtypes.INDICES,
    "output_type": dtypes.INDICES,
    "dtype RandomNormal": dtypes.FLOATS,
    "dtype RandomUniform": dtypes.FLOATS,
}
"""What an attribute that is a type may be, if not any."""

KINDS = {
    "bool": ("bool", "bool", "kBool"),
    "float": ("float", "float", "kFloat"),
    "int": ("std::int64_t", "std::int64_t", "kInt"),
    "ints": ("const gtl::ArraySlice<int>&", "::convgrad::detail::IntList", "kInts"),
    "shape": ("PartialTensorShape", "PartialTensorShape", "kShape"),
    "string": ("StringPiece", "std::string", "kString"),
    "tensor": ("const Tensor&", "Tensor", "kTensor"),
    "type": ("DataType", "DataType", "kType"),
}
"""By kind of attribute: how it is given, how it is kept, and its name in the table."""

BY_WHOM = "Written by tools/cc_ops.py from the table of ops: change the table, not this file."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is stale"
    )
    stale = []
    check = parser.parse_args().check
    for path, text in files().items():
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(path)
        if not check:
            path.write_text(text)
    for path in stale:
        print(f"{path.relative_to(INCLUDE)} {'is not what the table says' if check else 'written'}")
    if check and stale:
        print("run: python tools/cc_ops.py")
    return 1 if check and stale else 0


def files() -> dict[Path, str]:
    """Return what every file must be, by its path."""
    found = {CC / "table" / "rows.h": rows_header()}
    for header in SUBJECTS:
        rows = [row for row in TABLE.values() if header_of(row) == header and row.name != "Const"]
        public = [row for row in rows if not row.internal]
        internal = [row for row in rows if row.internal]
        found[CC / "ops" / f"{header}.h"] = classes_header(header, SUBJECTS[header], public, False)
        if internal:
            name = f"{header}_internal"
            subject = f"{SUBJECTS[header]}, those that only gradients need"
            found[CC / "ops" / f"{name}.h"] = classes_header(name, subject, internal, True)
    return found


def header_of(row: OpRow) -> str:
    for header, names in HEADERS.items():
        if row.name in names.split():
            return header
    return "nn_ops"


def comment(text: str, indent: int = 0) -> list[str]:
    """Return lines of a comment that fit."""
    start = " " * indent + "// "
    return textwrap.wrap(text, 100, initial_indent=start, subsequent_indent=start)


def wrapped(start: str, parts: list[str], end: str) -> list[str]:
    """Return `start(a, b, c)end` in lines that fit, parts below one another."""
    one = f"{start}{', '.join(parts)}{end}"
    if len(one) <= 100:
        return [one]
    lines, line = [], start
    pad = " " * len(start)
    for at, part in enumerate(parts):
        piece = part + (end if at == len(parts) - 1 else ",")
        if len(line) > len(pad) and line != start and len(line) + 1 + len(piece) > 100:
            lines.append(line)
            line = pad + piece
        else:
            line += piece if line in (start, pad) else f" {piece}"
    return [*lines, line]


# The table.


def rows_header() -> str:
    lines = [
        "// The table of ops as data.",
        f"// {BY_WHOM}",
        "#ifndef CONVGRAD_CC_TABLE_ROWS_H_",
        "#define CONVGRAD_CC_TABLE_ROWS_H_",
        "",
        "#include <algorithm>",
        "#include <iterator>",
        "#include <string_view>",
        "",
        '#include "convgrad/cc/scope.h"',
    ]
    sources = {
        "arithmetic": ["arithmetic", "matmul"],
        "arrays": ["arrays", "casts", "repeats"],
        "network": ["network", "pooling", "softmax"],
        "training": ["states"],
    }
    names = sorted(name for group in GROUPS for name in sources.get(group, [group]))
    lines += [f'#include "convgrad/cc/table/{name}.h"' for name in names]
    lines += ["", "namespace convgrad {", "namespace detail {", "namespace table {", ""]
    for name in sorted(TABLE):
        lines += row_parts(TABLE[name])
    lines += ["// Sorted by name.", "inline constexpr OpRow kRows[] = {"]
    for name in sorted(TABLE):
        lines += row_entry(TABLE[name])
    lines += ["};", "", "}  // namespace table", ""]
    lines += [
        "CONVGRAD_TABLE_INLINE const OpRow* FindRow(std::string_view name) {",
        "  const auto* const found =",
        "      std::lower_bound(std::begin(table::kRows), std::end(table::kRows), name,",
        "                       [](const OpRow& row, std::string_view wanted) {",
        "                         return std::string_view(row.name) < wanted;",
        "                       });",
        "  const bool there = found != std::end(table::kRows) && name == found->name;",
        "  return there ? found : nullptr;",
        "}",
        "",
        "}  // namespace detail",
        "}  // namespace convgrad",
        "",
        "#endif  // CONVGRAD_CC_TABLE_ROWS_H_",
        "",
    ]
    return "\n".join(lines)


def row_parts(row: OpRow) -> list[str]:
    lines = []
    if row.inputs:
        lines += [f"inline constexpr Pin k{row.name}Inputs[] = {{"]
        lines += [f"    {pin_entry(pin)}," for pin in row.inputs] + ["};"]
    outputs = ", ".join(f'"{name}"' for name in row.outputs)
    lines += [f"inline constexpr const char* k{row.name}Outputs[] = {{{outputs}}};"]
    if row.attrs:
        lines += [f"inline constexpr AttrRow k{row.name}Attrs[] = {{"]
        for attr in row.attrs:
            lines += wrapped("    {", attr_entry(row, attr), "},")
        lines += ["};"]
    return [*lines, ""]


def pin_entry(pin: Pin) -> str:
    same = f"'{pin.same}'" if pin.same else "0"
    return f'{{"{pin.name}", {bits(pin.allowed)}, {same}, {flag(pin.many)}, {flag(pin.ref)}}}'


def bits(allowed: frozenset[dtypes.Dtype]) -> str:
    """Return a set of types as the number the headers have: a bit by TensorFlow's number."""
    return f"0x{sum(1 << NUMBERS[dtypes.name(each)] for each in allowed):x}u"


NUMBERS = {
    "DT_FLOAT": 1,
    "DT_DOUBLE": 2,
    "DT_INT32": 3,
    "DT_UINT8": 4,
    "DT_INT16": 5,
    "DT_INT8": 6,
    "DT_INT64": 9,
    "DT_BOOL": 10,
    "DT_BFLOAT16": 14,
    "DT_UINT16": 17,
    "DT_HALF": 19,
    "DT_UINT32": 22,
    "DT_UINT64": 23,
}


def flag(value: bool) -> str:
    return "true" if value else "false"


def attr_entry(row: OpRow, attr: Attr) -> list[str]:
    number, text = "0", ""
    if attr.kind in ("bool", "int") and attr.default is not None:
        number = str(int(attr.default))
    elif attr.kind == "type" and attr.default is not None:
        number = dtypes.name(attr.default)
    elif attr.kind == "string":
        text = attr.default or ""
    elif attr.kind == "ints":
        text = ",".join(map(str, attr.default or ()))
    elif attr.kind == "float" and attr.default:
        raise NotImplementedError(f"{row.name}.{attr.name}: there is no column for this default")
    words = ",".join(attr.words)
    if attr.kind == "string":
        words = WORDS.get(attr.name, words)
    allowed = "0u"
    if attr.kind == "type":
        narrow = ATTR_TYPES.get(f"{attr.name} {row.name}", ATTR_TYPES.get(attr.name, dtypes.ANY))
        allowed = bits(narrow)
    return [
        f'"{attr.name}"',
        f"AttrKind::{KINDS[attr.kind][2]}",
        f'"{words}"',
        flag(attr in row.required),
        number,
        f'"{text}"',
        allowed,
    ]


def row_entry(row: OpRow) -> list[str]:
    name = row.name
    gradient = "nullptr"
    if row.gradient is no_gradient:
        gradient = "NoGradients"
    elif row.gradient is not None:
        gradient = f"Grad{name}"
    parts = [
        f'"{name}"',
        f"k{name}Inputs" if row.inputs else "nullptr",
        str(len(row.inputs)),
        f"k{name}Outputs",
        str(len(row.outputs)),
        f"k{name}Attrs" if row.attrs else "nullptr",
        str(len(row.attrs)),
        f"Infer{name}",
        "nullptr" if row.compute is None else f"Compute{name}",
        gradient,
        *(flag(each) for each in (row.elementwise, row.alias, row.updates, row.internal)),
        flag(row.eager),
        f'"{TYPES.get(name, name)}"',
        f'"{TYPE_ATTRS.get(name, "T:0")}"',
        f'"{GIVES.get(name, "T")}"',
    ]
    return wrapped("    {", parts, "},")


# The classes.


def classes_header(name: str, subject: str, rows: list[OpRow], internal: bool) -> str:
    guard = f"CONVGRAD_CC_OPS_{name.upper()}_H_"
    lines = [
        f"// {subject}.",
        f"// {BY_WHOM}",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <cstdint>",
        "#include <string>",
        "#include <utility>",
        "",
        '#include "convgrad/cc/ops/op_class.h"',
        "",
        "namespace convgrad {",
        "namespace ops {",
        *(["namespace internal {"] if internal else []),
        "",
    ]
    for row in sorted(rows, key=lambda each: each.name):
        lines += op_class(row)
    lines += [
        *(["}  // namespace internal"] if internal else []),
        "}  // namespace ops",
        "}  // namespace convgrad",
        "",
        f"#endif  // {guard}",
        "",
    ]
    return "\n".join(lines)


def op_class(row: OpRow) -> list[str]:
    name = row.name
    lines = [*comment(row.summary), f"class {name} {{", " public:"]
    if row.optional:
        lines += attrs_struct(row)
    parameters = ["const ::convgrad::Scope& scope"]
    parameters += [
        f"::convgrad::{'InputList' if pin.many else 'Input'} {pin.name}" for pin in row.inputs
    ]
    parameters += [f"{KINDS[attr.kind][0]} {attr.name}" for attr in row.required]
    arguments = ["scope", *(pin.name for pin in row.inputs), *(a.name for a in row.required)]
    explicit = "explicit " if len(parameters) == 1 else ""
    if row.optional:
        lines += wrapped(f"  {explicit}{name}(", parameters, ")")
        lines += wrapped(f"      : {name}(", [*arguments, "Attrs()"], ") {}")
        parameters.append(f"const {name}::Attrs& attrs")
    lines += wrapped(f"  {explicit}{name}(", parameters, ") {")
    lines += body(row)
    lines += ["  }", ""]
    first = row.outputs[0]
    if len(row.outputs) == 1:
        lines += [
            f"  operator ::convgrad::Output() const {{ return {first}; }}",
            f"  operator ::convgrad::Input() const {{ return {first}; }}",
            f"  ::convgrad::Node* node() const {{ return {first}.node(); }}",
            "",
        ]
    for attr in row.optional:
        start = f"  static Attrs {attr.setter}({KINDS[attr.kind][0]} x) {{"
        lines += [start, f"    return Attrs().{attr.setter}(x);", "  }"]
    lines += [""] if row.optional else []
    lines += ["  ::convgrad::Operation operation;"]
    lines += [f"  ::convgrad::Output {output};" for output in row.outputs]
    lines += ["};"]
    if name in ALIASES:
        lines += [f"using {ALIASES[name]} = {name};"]
    return [*lines, ""]


def attrs_struct(row: OpRow) -> list[str]:
    lines = ["  // What may be left out; every setter returns a new one."]
    lines += ["  struct Attrs {"]
    for attr in row.optional:
        given = KINDS[attr.kind][0]
        value = "std::string(x)" if attr.kind == "string" else "x"
        lines += [
            f"    TF_MUST_USE_RESULT Attrs {attr.setter}({given} x) const {{",
            "      Attrs ret = *this;",
            f"      ret.{attr.name}_ = {value};",
            "      return ret;",
            "    }",
        ]
    lines += [""]
    for attr in row.optional:
        lines += [f"    {KINDS[attr.kind][1]} {attr.name}_{default_text(attr)};"]
    return [*lines, "  };"]


def default_text(attr: Attr) -> str:
    if attr.kind == "bool":
        return f" = {flag(bool(attr.default))}"
    if attr.kind == "int":
        return f" = {attr.default}"
    if attr.kind == "type":
        return f" = {dtypes.name(attr.default)}"
    if attr.kind == "string":
        return f' = "{attr.default}"' if attr.default else ""
    if attr.kind == "ints" and attr.default:
        return "{" + ", ".join(map(str, attr.default)) + "}"
    return ""


def body(row: OpRow) -> list[str]:
    lines = ["    CONVGRAD_TRY {", "      ::convgrad::detail::Attributes given;"]
    for attr in row.attrs:
        value = attr.name if attr in row.required else f"attrs.{attr.name}_"
        if attr.kind == "ints":
            value = f"::convgrad::detail::Numbers({value})"
        elif attr.kind == "string" and attr in row.required:
            value = f"std::string({value})"
        lines += [f'      given.Set("{attr.name}", {value});']
    if any(pin.many for pin in row.inputs):
        assert len(row.inputs) == 1, "a list beside other inputs is not written yet"
        name = row.inputs[0].name
        lines += [
            f"      if (!{name}.status().ok()) {{",
            f"        scope.UpdateStatus({name}.status());",
            "        return;",
            "      }",
        ]
        lines += [f"      const std::vector<::convgrad::Input> from({name}.begin(), {name}.end());"]
    else:
        names = ", ".join(pin.name for pin in row.inputs)
        lines += [f"      const std::vector<::convgrad::Input> from = {{{names}}};"]
    start = "      operation = ::convgrad::detail::Make("
    lines += wrapped(start, ["scope", f'"{row.name}"', "from", "std::move(given)"], ");")
    lines += [f"      {name} = operation.output({at});" for at, name in enumerate(row.outputs)]
    lines += ["    }", "    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)"]
    return lines


if __name__ == "__main__":
    sys.exit(main())
