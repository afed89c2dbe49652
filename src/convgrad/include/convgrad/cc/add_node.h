// How a node is made: constants for numbers, names, attributes, types, shapes. All op classes go
// through here.
#ifndef CONVGRAD_CC_ADD_NODE_H_
#define CONVGRAD_CC_ADD_NODE_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/cc/node_text.h"
#include "convgrad/cc/scope.h"

namespace convgrad {
namespace detail {

// A node on its way into a graph.
class NodeBuilder {
 public:
  NodeBuilder(const Scope& scope, const OpRow& row, Attributes given)
      : scope_(scope), row_(row), given_(std::move(given)) {}

  Status Build(const std::vector<Input>& inputs, Node** made) {
    TF_RETURN_IF_ERROR(Connect(inputs));
    name_ = scope_.GetUniqueNameForOp(row_.name);
    TF_RETURN_IF_ERROR(scope_.status());
    TF_RETURN_IF_ERROR(CheckName());
    TF_RETURN_IF_ERROR(CheckTypes());
    TF_RETURN_IF_ERROR(ReadAttributes());
    std::vector<Spec> specs;
    TF_RETURN_IF_ERROR(Infer(&specs));
    NodeParts parts;
    parts.name = name_;
    parts.row = &row_;
    parts.attrs = std::move(attrs_);
    parts.inputs = std::move(inputs_);
    for (const Operation& op : scope_.control_deps()) {
      if (op.node()->graph() != scope_.graph()) {
        return errors::InvalidArgument("Control dependency '", op.node()->name(), "' of node '",
                                       name_, "' is of another graph");
      }
      parts.control_inputs.push_back(op.node());
    }
    parts.specs = std::move(specs);
    parts.device = scope_.device();
    parts.assigned_device = scope_.assigned_device();
    parts.kernel_label = scope_.kernel_label();
    *made = scope_.graph()->Add(std::move(parts));
    return Status();
  }

 private:
  // Numbers become Consts, in a scope of their own as TensorFlow names them.
  Status Connect(const std::vector<Input>& inputs) {
    const bool many = row_.num_inputs > 0 && row_.inputs[row_.num_inputs - 1].many;
    const std::size_t least = static_cast<std::size_t>(row_.num_inputs) - (many ? 1 : 0);
    if (inputs.size() < least || (!many && inputs.size() > least)) {
      return errors::InvalidArgument(row_.type, " has ", row_.num_inputs, " inputs, got ",
                                     inputs.size());
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i];
      TF_RETURN_IF_ERROR(input.status());
      Output from = input.output();
      if (input.is_constant()) {
        Attributes value;
        value.Set("value", DeepCopy(input.tensor()));
        from = AddNode(scope_.NewSubScope("Const"), *FindRow("Const"), {}, std::move(value))
                   .output(0);
        TF_RETURN_IF_ERROR(scope_.status());
      }
      const char* pin = PinOf(row_, static_cast<int>(i)).name;
      if (from.node() == nullptr || from.index() < 0 ||
          from.index() >= from.node()->num_outputs()) {
        return errors::InvalidArgument("Input '", pin, "' of ", row_.type,
                                       " is the output of no node");
      }
      if (from.node()->graph() != scope_.graph()) {
        return errors::InvalidArgument("Input '", pin, "' of ", row_.type, " is '", from.name(),
                                       "' of another graph");
      }
      inputs_.push_back(from);
    }
    return Status();
  }

  Status CheckName() const {
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '.';
    };
    bool good = !name_.empty() && plain(name_[0]);
    for (const char c : name_) {
      good = good && (plain(c) || c == '_' || c == '-' || c == '/' || c == '\\' || c == '>');
    }
    if (good) return Status();
    return errors::InvalidArgument("Node '", name_, "': Node name contains invalid characters");
  }

  const Spec& SpecOf(std::size_t i) const {
    return inputs_[i].node()->spec(inputs_[i].index());
  }
  std::string Building() const {
    return " while building NodeDef '" + name_ + "' using " + OpText(row_);
  }
  std::string Context() const { return "\n\t; NodeDef: {{node " + name_ + "}}; " + OpText(row_); }

  Status CheckTypes() const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Pin& pin = PinOf(row_, static_cast<int>(i));
      const DataType type = SpecOf(i).dtype;
      if (pin.ref && !GivesRef(inputs_[i].node()->row())) {
        return errors::InvalidArgument("Input '", pin.name, "' passed ", DataTypeString(type),
                                       " expected ref type", Building());
      }
      // Of a list, the first stands for all: a gradient may add up thousands of tensors.
      const std::size_t before_list = std::min(i, static_cast<std::size_t>(row_.num_inputs));
      for (std::size_t j = 0; pin.same && j < before_list; ++j) {
        const Pin& before = PinOf(row_, static_cast<int>(j));
        if (before.same != pin.same || SpecOf(j).dtype == type) continue;
        if (pin.many) {
          return errors::InvalidArgument("Input '", pin.name, "' passed ", DataTypeString(type),
                                         " expected ", DataTypeString(SpecOf(j).dtype),
                                         Building());
        }
        return errors::InvalidArgument(
            "Inconsistent values for attr '", TypeAttrOf(row_, static_cast<int>(i)), "' ",
            DataType_Name(SpecOf(j).dtype), " vs. ", DataType_Name(type), Building());
      }
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Pin& pin = PinOf(row_, static_cast<int>(i));
      const DataType type = SpecOf(i).dtype;
      if (pin.allowed & Bit(type)) continue;
      const std::string attr = TypeAttrOf(row_, static_cast<int>(i));
      if (attr.empty()) {
        return errors::InvalidArgument("Input '", pin.name, "' passed ", DataTypeString(type),
                                       " expected ", DataTypeString(TypesOf(pin.allowed).front()),
                                       Building());
      }
      return errors::InvalidArgument("Value for attr '", attr, "' of ", DataTypeString(type),
                                     " is not in the list of allowed values: ",
                                     ListOfTypes(pin.allowed), Context());
    }
    if (row_.num_inputs > 0 && row_.inputs[row_.num_inputs - 1].many &&
        inputs_.size() < static_cast<std::size_t>(row_.num_inputs)) {
      return errors::InvalidArgument("Value for attr 'N' of 0 must be at least minimum 1",
                                     Context());
    }
    return Status();
  }

  Status ReadAttributes() {
    for (int i = 0; i < row_.num_attrs; ++i) {
      const AttrRow& attr = row_.attrs[i];
      const AttrValue* found = given_.Find(attr.name);
      if (found == nullptr && attr.required) {
        return errors::InvalidArgument("NodeDef missing attr '", attr.name, "' from ",
                                       OpText(row_), "; NodeDef: {{node ", name_, "}}");
      }
      AttrValue value = found == nullptr ? DefaultOf(attr) : *found;
      if (value.index() != DefaultOf(attr).index()) {
        return errors::InvalidArgument("AttrValue had value with another type when '",
                                       KindText(attr.kind), "' expected\n\t for attr '", attr.name,
                                       "'", Context());
      }
      TF_RETURN_IF_ERROR(CheckAttribute(attr, value));
      attrs_.Set(attr.name, std::move(value));
    }
    return Status();
  }

  Status CheckAttribute(const AttrRow& attr, const AttrValue& value) const {
    if (const DataType* type = std::get_if<DataType>(&value)) {
      if (*type == DT_INVALID || IsRefType(*type)) {
        return errors::InvalidArgument("AttrValue has invalid DataType\n\t for attr '", attr.name,
                                       "'", Context());
      }
      if (!(attr.allowed & Bit(*type))) {
        return errors::InvalidArgument("Value for attr '", attr.name, "' of ",
                                       DataTypeString(*type),
                                       " is not in the list of allowed values: ",
                                       ListOfTypes(attr.allowed), Context());
      }
    }
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && *attr.words) {
      for (const std::string& word : Split(attr.words, ',')) {
        if (word == *text) return Status();
      }
      return errors::InvalidArgument("Value for attr '", attr.name, "' of \"", *text,
                                     "\" is not in the list of allowed values: ",
                                     ListOfWords(attr.words), Context());
    }
    if (const auto* shape = std::get_if<PartialTensorShape>(&value)) {
      if (!shape->IsValid()) {
        return errors::InvalidArgument("Shape ", shape->DebugString(),
                                       " is not valid\n\t for attr '", attr.name, "'", Context());
      }
    }
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
      TF_RETURN_IF_ERROR(tensor->shape().Check());
      if (DataTypeSize(tensor->dtype()) == 0) {
        return errors::Unimplemented("convgrad has no tensors of type ",
                                     DataTypeString(tensor->dtype()), Context());
      }
      if (!tensor->IsInitialized()) return NoRoom(tensor->dtype(), tensor->shape());
    }
    return Status();
  }

  Status Infer(std::vector<Spec>* specs) {
    std::vector<Spec> known;
    for (std::size_t i = 0; i < inputs_.size(); ++i) known.push_back(SpecOf(i));
    InferenceContext context(row_, attrs_, std::move(known), row_.num_outputs);
    const Status status = row_.infer(&context);
    if (!status.ok()) return Located(status);
    *specs = context.TakeOutputs();
    return Status();
  }

  // A shape rule's error with the node and what was known of its inputs.
  Status Located(const Status& status) const {
    std::vector<std::string> shapes, tensors, partial;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Spec& spec = SpecOf(i);
      shapes.push_back(spec.shape.unknown_rank() ? "?" : spec.shape.DebugString());
      if (!spec.numbers.has_value()) continue;
      std::vector<std::string> numbers;
      for (const std::int64_t number : *spec.numbers) {
        numbers.push_back(number == kUnknownNumber || number < 0 ? "?" : std::to_string(number));
      }
      const std::string_view pin = PinOf(row_, static_cast<int>(i)).name;
      const std::string at = "input[" + std::to_string(i) + "] = ";
      if (pin == "shape" || pin == "input_sizes" || pin == "filter_sizes") {
        partial.push_back(at + "[" + Joined(numbers, ",") + "]");
      } else if (spec.KnowsAllNumbers()) {
        for (std::size_t j = 0; j < numbers.size(); ++j) {
          numbers[j] = std::to_string((*spec.numbers)[j]);
        }
        tensors.push_back(at + "<" + Joined(numbers, " ") + ">");
      }
    }
    std::string text = status.error_message();
    text += " for '" + NodeText(name_, row_, attrs_, inputs_) +
            "' with input shapes: " + Joined(shapes, ", ");
    if (!tensors.empty()) text += " and with computed input tensors: " + Joined(tensors, ", ");
    if (!partial.empty()) {
      text += " and with input tensors computed as partial shapes: " + Joined(partial, ",");
    }
    return WithMessage(status, text + ".");
  }

  const Scope& scope_;
  const OpRow& row_;
  Attributes given_;
  Attributes attrs_;
  std::string name_;
  std::vector<Output> inputs_;
};

inline Operation AddNode(const Scope& scope, const OpRow& row, const std::vector<Input>& inputs,
                         Attributes attrs) {
  if (!scope.ok()) return Operation();
  CONVGRAD_TRY {
    Node* made = nullptr;
    const Status status = NodeBuilder(scope, row, std::move(attrs)).Build(inputs, &made);
    scope.UpdateStatus(status);
    return Operation(made);
  }
  CONVGRAD_CATCH(scope.UpdateStatus(OutOfMemory()); return Operation();)
}

inline Output AddOp(const Scope& scope, std::string_view name, const std::vector<Input>& inputs,
                    Attributes attrs) {
  const OpRow* row = FindRow(name);
  if (row == nullptr) {
    scope.UpdateStatus(errors::NotFound("Op type not registered '", name, "'"));
    return Output();
  }
  return AddNode(scope, *row, inputs, std::move(attrs)).output(0);
}

inline Output AddOp(const Scope& scope, std::string_view name, const std::vector<Input>& inputs) {
  return AddOp(scope, name, inputs, Attributes());
}

inline Status NoGradients(const Scope&, const Operation& op, const std::vector<Output>&,
                          std::vector<Output>* grad_inputs) {
  const auto count = static_cast<std::size_t>(op.num_inputs());
  CONVGRAD_TRY { grad_inputs->assign(count, Output(nullptr, -1)); }
  CONVGRAD_CATCH(return OutOfMemory();)
  return Status();
}

}  // namespace detail

// Says that there is no gradient.
inline Output NoGradient() { return Output(nullptr, -1); }

}  // namespace convgrad

#endif  // CONVGRAD_CC_ADD_NODE_H_
