"""Headers that stand in for TensorFlow's C++ client API, made from the table of ops.

They have the constructors, setters and members that the table implies, so that a compiler checks names, numbers and
types of arguments. `Const` prints its tensor, so that a program that runs shows the bits of its constants.
"""

from __future__ import annotations

from pathlib import Path

from convgrad._apps.graph import dtypes
from convgrad._apps.graph.row import Attr, OpRow
from convgrad._apps.graph.table import TABLE

_TYPES = {
    "bool": "bool",
    "float": "float",
    "int": "int64_t",
    "ints": "const gtl::ArraySlice<int>&",
    "shape": "PartialTensorShape",
    "string": "StringPiece",
    "type": "DataType",
}
_CPP = {
    "DT_HALF": "Eigen::half",
    "DT_BFLOAT16": "bfloat16",
    "DT_FLOAT": "float",
    "DT_DOUBLE": "double",
    "DT_BOOL": "bool",
}
INTERNAL = {"MaxPoolGrad", "ReluGrad", "SpreadReduced", "SumToShape"}
"""Classes of `nn_ops_internal.h`, and our own two that TensorFlow does not have."""
_HEAD = r"""#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace Eigen {
struct half {
  uint16_t bits = 0;
  half() = default;
  explicit half(float value) {  // exact for the numbers a half can be
    float size = std::fabs(value);
    if (size > 0) {
      int exponent = std::ilogb(size);
      bits = exponent < -14 ? uint16_t(std::ldexp(size, 24))
                            : uint16_t(((exponent + 15) << 10) + int(std::ldexp(size, 10 - exponent)) - 1024);
    }
    if (std::signbit(value)) bits |= 0x8000;
  }
};
}  // namespace Eigen

namespace tensorflow {
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    word += 0x7fff + ((word >> 16) & 1);
    bits = uint16_t(word >> 16);
  }
};
using StringPiece = std::string_view;
namespace gtl {
template <typename T>
class ArraySlice {
 public:
  ArraySlice(std::initializer_list<T>) {}
  ArraySlice(const std::vector<T>&) {}
};
}  // namespace gtl
%s
inline std::string DataTypeString(DataType) { return ""; }
class Status {
 public:
  bool ok() const { return true; }
  std::string ToString() const { return ""; }
  void Update(const Status&) {}
};
class TensorShape {
 public:
  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
  std::string DebugString() const { return ""; }
  std::vector<int64_t> sizes_;
};
class PartialTensorShape {
 public:
  PartialTensorShape() {}
  PartialTensorShape(std::initializer_list<int64_t>) {}
  PartialTensorShape(gtl::ArraySlice<int64_t>) {}
};
template <typename T>
struct Flat {
  T* data() const { return pointer; }
  T* pointer;
};
class Tensor {
 public:
  Tensor() = default;
  Tensor(DataType type, const TensorShape& shape) : type_(type), shape_(shape), bytes_(8 * NumElements()) {}
  template <typename T>
  Flat<T> flat() { size_ = sizeof(T); return {reinterpret_cast<T*>(bytes_.data())}; }
  DataType dtype() const { return type_; }
  const TensorShape& shape() const { return shape_; }
  int64_t NumElements() const { int64_t n = 1; for (int64_t each : shape_.sizes_) n *= each; return n; }
  void Print() const {
    std::printf("%%d [", int(type_));
    for (int64_t each : shape_.sizes_) std::printf(" %%lld", static_cast<long long>(each));
    std::printf(" ] ");
    for (int64_t at = 0; at < NumElements() * size_; ++at) std::printf("%%02x", bytes_[at]);
    std::printf("\n");
  }
 private:
  DataType type_{};
  TensorShape shape_;
  int64_t size_ = 0;
  std::vector<unsigned char> bytes_;
};
class Scope {
 public:
  static Scope NewRootScope() { return Scope(); }
  Scope WithOpName(const std::string&) const { return *this; }
  bool ok() const { return true; }
  Status status() const { return Status(); }
};
class Output {
 public:
  bool operator==(const Output&) const { return true; }
};
using OutputList = std::vector<Output>;
struct OutputHash { size_t operator()(const Output&) const { return 0; } };
class Input {
 public:
  struct Initializer {
    Initializer(const Tensor& tensor) : tensor(tensor) {}
    Tensor tensor;
  };
  Input(const Output&) {}
  Input(const Tensor&) {}
};
class InputList {
 public:
  InputList(const OutputList&) {}
};
class ClientSession {
 public:
  using FeedType = std::unordered_map<Output, Input::Initializer, OutputHash>;
  explicit ClientSession(const Scope&) {}
  Status Run(const std::vector<Output>&, std::vector<Tensor>*) const { return Status(); }
  Status Run(const FeedType&, const std::vector<Output>&, std::vector<Tensor>*) const { return Status(); }
};
namespace ops {
inline Output Const(const Scope&, const Input::Initializer& value) { value.tensor.Print(); return Output(); }
"""


def write_headers(folder: Path) -> None:
    """Put the headers where programs include them from."""
    enum = ", ".join(f"{name} = {at}" for at, name in enumerate(dtypes.BY_NAME, 1))
    traits = "".join(
        f"template <> struct DataTypeToEnum<{_CPP.get(name, f'{dtype.name}_t')}> "
        f"{{ static constexpr DataType value = {name}; }};\n"
        for name, dtype in dtypes.BY_NAME.items()
    )
    types = f"enum DataType {{ {enum} }};\ntemplate <typename T> struct DataTypeToEnum;\n{traits}"
    rows = [row for row in TABLE.values() if row.name != "Const"]
    public = "".join(class_of(row) for row in rows if row.name not in INTERNAL)
    internal = "".join(class_of(row) for row in rows if row.name in INTERNAL)
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow/all.h").write_text(
        f"{_HEAD % types}{public}}}  // namespace ops\n}}  // namespace tensorflow\n"
    )
    (folder / "tensorflow/internal.h").write_text(
        '#pragma once\n#include "tensorflow/all.h"\n'
        f"namespace tensorflow {{ namespace ops {{ namespace internal {{\n{internal}}} }} }}\n"
    )
    for name in (
        "cc/client/client_session",
        "cc/framework/scope",
        "cc/ops/standard_ops",
        "cc/ops/nn_ops_internal",
        "core/framework/tensor",
    ):
        path = folder / f"tensorflow/{name}.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "internal" if "internal" in name else "all"
        path.write_text(f'#pragma once\n#include "tensorflow/{content}.h"\n')


def class_of(row: OpRow) -> str:
    """Return the class of an op."""
    inputs = [f"{'InputList' if pin.many else 'Input'}" for pin in row.inputs]
    arguments = ", ".join(["const Scope&", *inputs, *(_TYPES[each.kind] for each in row.required)])
    setters = "".join(_setter(attr) for attr in row.optional)
    statics = "".join(
        f"  static Attrs {attr.setter}({_TYPES[attr.kind]} x) {{ return Attrs().{attr.setter}(x); }}\n"
        for attr in row.optional
    )
    attrs = f"  struct Attrs {{\n{setters}  }};\n" if row.optional else ""
    second = f"  {row.name}({arguments}, const Attrs&) {{}}\n" if row.optional else ""
    one = (
        f"  operator Output() const {{ return {row.outputs[0]}; }}\n"
        f"  operator Input() const {{ return {row.outputs[0]}; }}\n"
    )
    members = "".join(f"  Output {name};\n" for name in row.outputs)
    return (
        f"class {row.name} {{\n public:\n{attrs}  explicit {row.name}({arguments}) {{}}\n{second}"
        f"{one if len(row.outputs) == 1 else ''}{statics}{members}}};\n"
    )


def _setter(attr: Attr) -> str:
    return f"    Attrs {attr.setter}({_TYPES[attr.kind]}) const {{ return *this; }}\n"
