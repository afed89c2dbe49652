// Node, Graph, Operation, Output.
#ifndef CONVGRAD_CC_GRAPH_H_
#define CONVGRAD_CC_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "convgrad/cc/op_row.h"

namespace convgrad {

class Graph;
class Node;
class Output;

// A node of a graph; the graph owns it. One that is default-made stands for nothing.
class Operation {
 public:
  Operation() = default;
  explicit Operation(Node* node) : node_(node) {}

  std::int32_t num_inputs() const;
  DataType input_type(std::int32_t i) const;
  Output input(std::int32_t i) const;
  std::int32_t num_outputs() const;
  DataType output_type(std::int32_t i) const;
  Output output(std::int32_t i) const;
  Node* node() const { return node_; }
  std::uint64_t hash(std::int32_t index) const;

  bool operator==(const Operation& other) const { return node_ == other.node_; }
  bool operator!=(const Operation& other) const { return node_ != other.node_; }

 private:
  Node* node_ = nullptr;
};

class Output {
 public:
  Output() = default;
  explicit Output(Node* node) : op_(node) {}
  Output(Node* node, std::int32_t index) : op_(node), index_(index) {}
  Output(const Operation& op, std::int32_t index) : op_(op), index_(index) {}

  Operation op() const { return op_; }
  Node* node() const { return op_.node(); }
  std::int32_t index() const { return index_; }
  DataType type() const { return op_.output_type(index_); }
  std::string name() const;
  std::uint64_t hash() const { return op_.hash(index_); }

  bool operator==(const Output& other) const {
    return op_ == other.op_ && index_ == other.index_;
  }
  bool operator!=(const Output& other) const { return !(*this == other); }

 private:
  Operation op_;
  std::int32_t index_ = 0;
};

struct OutputHash {
  std::size_t operator()(const Output& output) const {
    return std::hash<Node*>()(output.node()) * 31 + static_cast<std::size_t>(output.index());
  }
};

namespace detail {

struct NodeParts {
  std::string name;
  const OpRow* row = nullptr;
  Attributes attrs;
  std::vector<Output> inputs;
  std::vector<Node*> control_inputs;
  std::vector<Spec> specs;
  std::string device, assigned_device, kernel_label;
};

}  // namespace detail

class Node {
 public:
  const std::string& name() const { return parts_.name; }
  // TensorFlow's name of the op, such as Neg of the class Negate.
  std::string type_string() const { return parts_.row->type; }
  int id() const { return id_; }
  int num_inputs() const { return static_cast<int>(parts_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(parts_.specs.size()); }
  DataType input_type(int i) const {
    const Output from = input(i);
    if (from.node() == nullptr) return DT_INVALID;
    const DataType type = from.node()->spec(from.index()).dtype;
    return detail::PinOf(*parts_.row, i).ref ? MakeRefType(type) : type;
  }
  DataType output_type(int i) const {
    if (i < 0 || i >= num_outputs()) return DT_INVALID;
    return detail::GivesRef(*parts_.row) ? MakeRefType(spec(i).dtype) : spec(i).dtype;
  }
  bool IsOp() const { return true; }
  const std::string& requested_device() const { return parts_.device; }
  const std::string& assigned_device_name() const { return parts_.assigned_device; }

  // What follows is not TensorFlow's.
  const detail::OpRow& row() const { return *parts_.row; }
  const detail::Attributes& attrs() const { return parts_.attrs; }
  Output input(int i) const {
    return i >= 0 && i < num_inputs() ? parts_.inputs[static_cast<std::size_t>(i)] : Output();
  }
  const std::vector<Output>& inputs() const { return parts_.inputs; }
  const std::vector<Node*>& control_inputs() const { return parts_.control_inputs; }
  const detail::Spec& spec(int i) const {
    static const detail::Spec kNone;
    return i >= 0 && i < num_outputs() ? parts_.specs[static_cast<std::size_t>(i)] : kNone;
  }
  const std::string& kernel_label() const { return parts_.kernel_label; }
  const Graph* graph() const { return graph_; }
  // The Variable whose value this is: of a chain of updates the first.
  const Node* variable() const {
    const Node* at = this;
    while (at->parts_.row->updates) at = at->parts_.inputs[0].node();
    return at;
  }

 private:
  friend class Graph;

  const Graph* graph_ = nullptr;
  int id_ = 0;
  detail::NodeParts parts_;
};

// Nodes in the order they were made, which is an order they can run in.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // TensorFlow counts two nodes of its own, the source and the sink; so do ids here.
  static constexpr int kFirstId = 2;

  int num_nodes() const { return num_op_nodes() + kFirstId; }
  int num_op_nodes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(nodes_.size());
  }
  int num_node_ids() const { return num_nodes(); }
  Node* FindNodeId(int id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int at = id - kFirstId;
    return at >= 0 && at < static_cast<int>(nodes_.size())
               ? const_cast<Node*>(&nodes_[static_cast<std::size_t>(at)])
               : nullptr;
  }
  std::vector<Node*> op_nodes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Node*> found;
    found.reserve(nodes_.size());
    for (const Node& node : nodes_) found.push_back(const_cast<Node*>(&node));
    return found;
  }
  std::vector<Node*> nodes() const { return op_nodes(); }

  // Not TensorFlow's: a node that was checked. It stays where it is. A name that is taken gets a
  // number.
  Node* Add(detail::NodeParts parts) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string wanted = parts.name;
    for (int number = 1; !names_.insert(parts.name).second; ++number) {
      parts.name = wanted + "_" + std::to_string(number);
    }
    Node& node = nodes_.emplace_back();
    node.graph_ = this;
    node.id_ = static_cast<int>(nodes_.size()) - 1 + kFirstId;
    node.parts_ = std::move(parts);
    return &node;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Node> nodes_;
  std::unordered_set<std::string> names_;
};

inline std::int32_t Operation::num_inputs() const { return node_ ? node_->num_inputs() : 0; }
inline DataType Operation::input_type(std::int32_t i) const {
  return node_ ? node_->input_type(i) : DT_INVALID;
}
inline Output Operation::input(std::int32_t i) const { return node_ ? node_->input(i) : Output(); }
inline std::int32_t Operation::num_outputs() const { return node_ ? node_->num_outputs() : 0; }
inline DataType Operation::output_type(std::int32_t i) const {
  return node_ ? node_->output_type(i) : DT_INVALID;
}
inline Output Operation::output(std::int32_t i) const {
  return node_ && i >= 0 && i < num_outputs() ? Output(node_, i) : Output();
}
inline std::uint64_t Operation::hash(std::int32_t index) const {
  return OutputHash()(Output(node_, index));
}
inline std::string Output::name() const {
  return node() ? node()->name() + ":" + std::to_string(index_) : std::string();
}

}  // namespace convgrad

#include "convgrad/cc/input.h"

#endif  // CONVGRAD_CC_GRAPH_H_
