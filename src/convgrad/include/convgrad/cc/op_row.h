// What the table says of an op, and what its shape rule and its kernel see.
#ifndef CONVGRAD_CC_OP_ROW_H_
#define CONVGRAD_CC_OP_ROW_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/cc/attributes.h"

namespace convgrad {

class Input;
class Operation;
class Output;
class Scope;

namespace detail {

struct OpRow;

constexpr std::int64_t kUnknown = -1;  // a size that is not known
constexpr std::int64_t kUnknownNumber = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMostNumbers = 64;

// What is known of a tensor before it is computed.
struct Spec {
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  // Of an integer scalar (one) or small vector: kUnknownNumber where one is not known.
  std::optional<std::vector<std::int64_t>> numbers;

  bool KnowsAllNumbers() const {
    if (!numbers.has_value() || !shape.IsFullyDefined() || shape.dims() > 1) return false;
    for (const std::int64_t number : *numbers) {
      if (number == kUnknownNumber) return false;
    }
    return static_cast<std::int64_t>(numbers->size()) == shape.num_elements();
  }
};

class InferenceContext {
 public:
  InferenceContext(const OpRow& row, const Attributes& attrs, std::vector<Spec> inputs, int outputs)
      : row_(row),
        attrs_(attrs),
        inputs_(std::move(inputs)),
        outputs_(static_cast<std::size_t>(outputs)) {}

  const OpRow& row() const { return row_; }
  const Attributes& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Spec& input(int i) const {
    static const Spec kNone;
    return i >= 0 && i < num_inputs() ? inputs_[static_cast<std::size_t>(i)] : kNone;
  }
  Spec& output(int i) { return outputs_[static_cast<std::size_t>(i)]; }

  std::vector<Spec> TakeOutputs() { return std::move(outputs_); }

 private:
  const OpRow& row_;
  const Attributes& attrs_;
  std::vector<Spec> inputs_;
  std::vector<Spec> outputs_;
};

class KernelContext {
 public:
  // `types` are the outputs', as the shape rule found them. Both lists must outlive the context.
  KernelContext(const OpRow& row, const Attributes& attrs, const std::string& node_name,
                std::vector<Tensor> inputs, gtl::ArraySlice<const Spec*> input_specs,
                gtl::ArraySlice<DataType> types, int threads)
      : row_(row),
        attrs_(attrs),
        node_name_(node_name),
        inputs_(std::move(inputs)),
        input_specs_(input_specs),
        types_(types),
        outputs_(types.size()),
        threads_(threads) {}

  const OpRow& row() const { return row_; }
  const Attributes& attrs() const { return attrs_; }
  const std::string& node_name() const { return node_name_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Tensor& input(int i) const {
    static const Tensor kNone;
    return i >= 0 && i < num_inputs() ? inputs_[static_cast<std::size_t>(i)] : kNone;
  }
  // What the graph knew of input i.
  const Spec& input_spec(int i) const {
    static const Spec kNone;
    return i >= 0 && i < static_cast<int>(input_specs_.size())
               ? *input_specs_[static_cast<std::size_t>(i)]
               : kNone;
  }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }

  // Memory for output i; RESOURCE_EXHAUSTED with TensorFlow's words where there is none.
  Status allocate_output(int i, const TensorShape& shape, Tensor** out) {
    if (i < 0 || i >= num_outputs()) return errors::Internal("there is no output ", i);
    return allocate_output(i, types_[static_cast<std::size_t>(i)], shape, out);
  }
  Status allocate_output(int i, DataType dtype, const TensorShape& shape, Tensor** out) {
    if (i < 0 || i >= num_outputs()) return errors::Internal("there is no output ", i);
    TF_RETURN_IF_ERROR(shape.Check());
    Tensor& place = outputs_[static_cast<std::size_t>(i)];
    place = Tensor(dtype, shape);
    if (!place.IsInitialized()) return NoRoom(dtype, shape);
    *out = &place;
    return Status();
  }
  // The same in the memory of an input of this type and shape that nobody needs behind this node.
  // For kernels that read an element of each input before they write there, and not again.
  Status allocate_over(std::initializer_list<int> inputs, int i, DataType dtype,
                       const TensorShape& shape, Tensor** out) {
    if (i < 0 || i >= num_outputs()) return errors::Internal("there is no output ", i);
    for (const int from : inputs) {
      const Tensor& tensor = input(from);
      if (tensor.dtype() != dtype || !tensor.RefCountIsOne() || tensor.shape() != shape) continue;
      Tensor& place = outputs_[static_cast<std::size_t>(i)];
      place = tensor;
      *out = &place;
      return Status();
    }
    return allocate_output(i, dtype, shape, out);
  }
  // Shares memory.
  void set_output(int i, const Tensor& value) {
    if (i >= 0 && i < num_outputs()) outputs_[static_cast<std::size_t>(i)] = value;
  }
  const Tensor& output(int i) const { return outputs_[static_cast<std::size_t>(i)]; }
  int threads() const { return threads_; }

  std::vector<Tensor> TakeInputs() { return std::move(inputs_); }
  std::vector<Tensor> TakeOutputs() { return std::move(outputs_); }

 private:
  const OpRow& row_;
  const Attributes& attrs_;
  const std::string& node_name_;
  std::vector<Tensor> inputs_;
  gtl::ArraySlice<const Spec*> input_specs_;
  gtl::ArraySlice<DataType> types_;
  std::vector<Tensor> outputs_;
  int threads_;
};

using InferFunc = Status (*)(InferenceContext*);
using ComputeFunc = Status (*)(KernelContext*);
// `grads` has one entry per output, without a node where there is none; `grad_inputs` gets one per
// input.
using GradFunc = Status (*)(const Scope& scope, const Operation& op,
                            const std::vector<Output>& grads, std::vector<Output>* grad_inputs);

enum class AttrKind { kBool, kFloat, kInt, kInts, kShape, kString, kTensor, kType };

struct Pin {
  const char* name;
  std::uint32_t allowed;  // Bit(DT_FLOAT) | ...
  char same;              // inputs of one letter have one type; 0 for none
  bool many;              // takes a list of tensors; only the last may
  bool ref;               // must be a Variable, or what updates one
};

struct AttrRow {
  const char* name;
  AttrKind kind;
  const char* words;  // "SAME,VALID": the only values there are; "" for any
  bool required;
  // The default of an optional one, by its kind.
  std::int64_t number;   // kBool, kInt, kType; bits allowed of a kType are in `allowed`
  const char* text;      // kString; kInts as "1,1,1,1"
  std::uint32_t allowed; // types a kType may have; 0 for any
};

struct OpRow {
  const char* name;  // TensorFlow's C++ class
  const Pin* inputs;
  int num_inputs;
  const char* const* outputs;
  int num_outputs;
  const AttrRow* attrs;
  int num_attrs;
  InferFunc infer;
  ComputeFunc compute;  // null for what the session itself provides
  GradFunc gradient;    // null if it must not be differentiated through
  bool elementwise, alias, updates, internal;
  bool eager;        // needs no more than its input's shape, so it runs as soon as it can
  const char* type;  // TensorFlow's name of the op: Neg of the class Negate
  const char* types;  // attributes that are inputs' types: "T:0,Tidx:1"
  const char* gives;  // the type of outputs: "T", "Ref(T)", "bool"
};

inline bool IsVariable(const OpRow& row) { return std::string_view(row.name) == "Variable"; }
// Whether its output stands for a Variable.
inline bool GivesRef(const OpRow& row) { return row.updates || IsVariable(row); }

inline const Pin& PinOf(const OpRow& row, int i) {
  return row.inputs[i < row.num_inputs ? i : row.num_inputs - 1];
}

// In table/rows.h; null if there is none.
CONVGRAD_TABLE_INLINE const OpRow* FindRow(std::string_view name);

// How a node is made: all op classes and all gradients go through it. A null Operation after an
// error, which scope.status() says. In scope.h.
inline Operation AddNode(const Scope& scope, const OpRow& row, const std::vector<Input>& inputs,
                         Attributes attrs);
// The first output of a node by the name of its op. Attributes not given have their defaults; those
// of another op, which a gradient hands on, are left out.
inline Output AddOp(const Scope& scope, std::string_view name, const std::vector<Input>& inputs,
                    Attributes attrs);
inline Output AddOp(const Scope& scope, std::string_view name, const std::vector<Input>& inputs);
// The gradient of what no output depends on smoothly.
inline Status NoGradients(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                          std::vector<Output>* grad_inputs);

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_OP_ROW_H_
