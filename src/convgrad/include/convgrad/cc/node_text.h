// Ops and nodes as TensorFlow's messages write them.
#ifndef CONVGRAD_CC_NODE_TEXT_H_
#define CONVGRAD_CC_NODE_TEXT_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/cc/graph.h"

namespace convgrad {
namespace detail {

inline std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i ? between : "") + parts[i];
  return text;
}

// The parts of "a,b", in order; none of "".
inline std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

inline std::vector<DataType> TypesOf(std::uint32_t allowed) {
  // In the order TensorFlow's messages list them.
  static constexpr DataType kOrder[] = {DT_HALF,  DT_BFLOAT16, DT_FLOAT,  DT_DOUBLE, DT_INT8,
                                        DT_INT16, DT_INT32,    DT_INT64,  DT_UINT8,  DT_UINT16,
                                        DT_UINT32, DT_UINT64,  DT_BOOL};
  std::vector<DataType> found;
  for (const DataType type : kOrder) {
    if (allowed & Bit(type)) found.push_back(type);
  }
  return found;
}

inline std::string ListOfTypes(std::uint32_t allowed) {
  std::vector<std::string> names;
  for (const DataType type : TypesOf(allowed)) names.push_back(DataTypeString(type));
  return Joined(names, ", ");
}

inline std::string ListOfWords(const char* words) {
  std::vector<std::string> quoted;
  for (const std::string& word : Split(words, ',')) quoted.push_back('"' + word + '"');
  return Joined(quoted, ", ");
}

// The attribute an input's type is: T of most. "" if it has none.
inline std::string TypeAttrOf(const OpRow& row, int input) {
  int pin = input < row.num_inputs ? input : row.num_inputs - 1;
  for (int i = 0; pin >= 0 && row.inputs[pin].same && i < pin; ++i) {
    if (row.inputs[i].same == row.inputs[pin].same) pin = i;
  }
  for (const std::string& entry : Split(row.types, ',')) {
    const std::size_t colon = entry.find(':');
    if (entry.substr(colon + 1) == std::to_string(pin)) return entry.substr(0, colon);
  }
  return std::string();
}

inline const char* KindText(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kFloat:
      return "float";
    case AttrKind::kInt:
      return "int";
    case AttrKind::kInts:
      return "list(int)";
    case AttrKind::kShape:
      return "shape";
    case AttrKind::kString:
      return "string";
    case AttrKind::kTensor:
      return "tensor";
    case AttrKind::kType:
      return "type";
  }
  return "";
}

inline std::string ValueText(const AttrValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const float* real = std::get_if<float>(&value)) return ShortNumber(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return '"' + *text + '"';
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    std::vector<std::string> parts;
    for (const std::int64_t each : *list) parts.push_back(std::to_string(each));
    return "[" + Joined(parts, ", ") + "]";
  }
  if (const auto* type = std::get_if<DataType>(&value)) return DataType_Name(*type);
  if (const auto* shape = std::get_if<PartialTensorShape>(&value)) return shape->DebugString();
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    return "Tensor<type: " + DataTypeString(tensor->dtype()) +
           " shape: " + tensor->shape().DebugString() + " values: " + tensor->SummarizeValue(3) +
           ">";
  }
  return "<unknown>";
}

inline AttrValue DefaultOf(const AttrRow& attr) {
  switch (attr.kind) {
    case AttrKind::kBool:
      return attr.number != 0;
    case AttrKind::kFloat:
      return static_cast<float>(attr.number);
    case AttrKind::kInt:
      return attr.number;
    case AttrKind::kInts: {
      std::vector<std::int64_t> list;
      for (const std::string& part : Split(attr.text, ',')) {
        list.push_back(std::strtoll(part.c_str(), nullptr, 10));
      }
      return list;
    }
    case AttrKind::kShape:
      return PartialTensorShape();
    case AttrKind::kString:
      return std::string(attr.text);
    case AttrKind::kTensor:
      return Tensor();
    case AttrKind::kType:
      return static_cast<DataType>(attr.number);
  }
  return AttrValue();
}

// "Op<name=Add; signature=x:T, y:T -> z:T; attr=T:type,allowed=[...]>"
inline std::string OpText(const OpRow& row) {
  std::vector<std::string> inputs, outputs;
  for (int i = 0; i < row.num_inputs; ++i) {
    const Pin& pin = row.inputs[i];
    std::string type = TypeAttrOf(row, i);
    if (type.empty()) type = DataTypeString(TypesOf(pin.allowed).front());
    if (pin.many) type = "N*" + type;
    if (pin.ref) type = "Ref(" + type + ")";
    inputs.push_back(pin.name + (":" + type));
  }
  for (int i = 0; i < row.num_outputs; ++i) {
    outputs.push_back(row.outputs[i] + (std::string(":") + row.gives));
  }
  std::string text = std::string("Op<name=") + row.type + "; signature=" + Joined(inputs, ", ") +
                     " -> " + Joined(outputs, ", ");
  for (int i = 0; i < row.num_inputs; ++i) {
    if (row.inputs[i].many) text += "; attr=N:int,min=1";
  }
  for (const std::string& entry : Split(row.types, ',')) {
    const std::size_t colon = entry.find(':');
    const Pin& pin = row.inputs[std::strtol(entry.c_str() + colon + 1, nullptr, 10)];
    std::vector<std::string> names;
    for (const DataType type : TypesOf(pin.allowed)) names.push_back(DataType_Name(type));
    text += "; attr=" + entry.substr(0, colon) + ":type,allowed=[" + Joined(names, ", ") + "]";
  }
  for (int i = 0; i < row.num_attrs; ++i) {
    const AttrRow& attr = row.attrs[i];
    text += std::string("; attr=") + attr.name + ":" + KindText(attr.kind);
    if (!attr.required) text += ",default=" + ValueText(DefaultOf(attr));
    if (*attr.words) text += ",allowed=[" + ListOfWords(attr.words) + "]";
    if (attr.allowed) {
      std::vector<std::string> names;
      for (const DataType type : TypesOf(attr.allowed)) names.push_back(DataType_Name(type));
      text += ",allowed=[" + Joined(names, ", ") + "]";
    }
  }
  return text + ">";
}

// "{{node c}} = Conv2D[T=DT_FLOAT, padding="SAME"](a, b:1)"
inline std::string NodeText(const std::string& name, const OpRow& row, const Attributes& attrs,
                            const std::vector<Output>& inputs) {
  std::map<std::string, std::string> sorted;
  for (int i = 0; i < row.num_attrs; ++i) {
    const AttrValue* value = attrs.Find(row.attrs[i].name);
    if (value != nullptr) sorted[row.attrs[i].name] = ValueText(*value);
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Output& from = inputs[i];
    names.push_back(from.node()->name() +
                    (from.index() ? ":" + std::to_string(from.index()) : std::string()));
    const std::string type = TypeAttrOf(row, static_cast<int>(i));
    if (!type.empty()) sorted[type] = DataType_Name(from.node()->spec(from.index()).dtype);
    if (PinOf(row, static_cast<int>(i)).many) sorted["N"] = std::to_string(inputs.size());
  }
  std::vector<std::string> parts;
  for (const auto& [attr, value] : sorted) parts.push_back(attr + "=" + value);
  return "{{node " + name + "}} = " + row.type + "[" + Joined(parts, ", ") + "](" +
         Joined(names, ", ") + ")";
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_NODE_TEXT_H_
