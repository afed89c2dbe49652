// AddSymbolicGradients: nodes that compute how much each of some tensors changes others.
#ifndef CONVGRAD_CC_GRADIENTS_H_
#define CONVGRAD_CC_GRADIENTS_H_

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace detail {

// Walks back from the outputs, a node when all that was made from it has been there. Lists take the
// place of recursion: a chain may be as long as memory allows.
class GradientWalk {
 public:
  GradientWalk(const Scope& scope, const std::vector<Output>& outputs,
               const std::vector<Output>& inputs)
      : scope_(scope), outputs_(outputs), inputs_(inputs) {}

  Status Run(const std::vector<Output>& seeds, std::vector<Output>* grad_outputs) {
    TF_RETURN_IF_ERROR(FindWay());
    grad_outputs->assign(inputs_.size(), NoGradient());
    for (std::size_t i = 0; i < outputs_.size(); ++i) Arrive(seeds[i], outputs_[i]);
    while (!ready_.empty()) {
      Node* const node = ready_.front();
      ready_.pop_front();
      TF_RETURN_IF_ERROR(Visit(node, grad_outputs));
    }
    return Status();
  }

 private:
  // What is behind the outputs and before, or is, an input; and how many gradients each will get.
  Status FindWay() {
    std::vector<char> behind(static_cast<std::size_t>(scope_.graph()->num_node_ids()), 0);
    std::vector<Node*> open;
    const auto reach = [&](Node* node) {
      char& seen = behind[static_cast<std::size_t>(node->id())];
      if (!seen) open.push_back(node);
      seen = 1;
    };
    for (const Output& output : outputs_) reach(output.node());
    while (!open.empty()) {
      const Node* const node = open.back();
      open.pop_back();
      for (const Output& from : node->inputs()) reach(from.node());
    }
    depends_.assign(behind.size(), 0);
    pending_.assign(behind.size(), 0);
    for (const Output& input : inputs_) {
      if (!behind[static_cast<std::size_t>(input.node()->id())]) {
        return errors::InvalidArgument("Cannot compute the partial derivative for node '",
                                       input.node()->name(),
                                       "' as it's unreachable from the output node(s).");
      }
      depends_[static_cast<std::size_t>(input.node()->id())] = 1;
    }
    for (std::size_t id = Graph::kFirstId; id < behind.size(); ++id) {
      if (!behind[id]) continue;
      const Node* const node = scope_.graph()->FindNodeId(static_cast<int>(id));
      for (const Output& from : node->inputs()) {  // inputs have smaller numbers
        if (Depends(from.node())) depends_[id] = 1;
      }
      for (const Output& from : node->inputs()) {
        if (Depends(from.node())) ++pending_[static_cast<std::size_t>(from.node()->id())];
      }
    }
    for (const Output& output : outputs_) ++pending_[static_cast<std::size_t>(output.node()->id())];
    return Status();
  }

  bool Depends(const Node* node) const {
    return depends_[static_cast<std::size_t>(node->id())] != 0;
  }

  void Arrive(const Output& grad, const Output& at) {
    if (!Depends(at.node())) return;
    if (grad.node() != nullptr) parts_[at].push_back(grad);
    if (--pending_[static_cast<std::size_t>(at.node()->id())] == 0) ready_.push_back(at.node());
  }

  Status Visit(Node* node, std::vector<Output>* grad_outputs) {
    std::vector<Output> grads;
    bool any = false;
    for (int i = 0; i < node->num_outputs(); ++i) {
      const Output output(node, i);
      Output sum = NoGradient();
      TF_RETURN_IF_ERROR(Sum(output, &sum));
      any = any || sum.node() != nullptr;
      for (std::size_t at = 0; at < inputs_.size(); ++at) {
        if (inputs_[at] == output) (*grad_outputs)[at] = sum;
      }
      grads.push_back(sum);
    }
    bool further = false;
    for (const Output& from : node->inputs()) further = further || Depends(from.node());
    if (!further) return Status();
    std::vector<Output> found(node->inputs().size(), NoGradient());
    if (any) {
      const GradFunc gradient = node->row().gradient;
      if (gradient == nullptr) {
        return errors::NotFound(
            "No gradient defined for op: ", node->type_string(),
            ". Please see https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for "
            "instructions on how to add C++ gradients.");
      }
      found.clear();
      TF_RETURN_IF_ERROR(gradient(scope_, Operation(node), grads, &found));
      TF_RETURN_IF_ERROR(scope_.status());
      if (found.size() != node->inputs().size()) {
        return errors::Internal("the gradient of ", node->type_string(), " gave ", found.size(),
                                " tensors for ", node->inputs().size(), " inputs");
      }
    }
    for (std::size_t i = 0; i < found.size(); ++i) Arrive(found[i], node->inputs()[i]);
    return Status();
  }

  Status Sum(const Output& output, Output* sum) {
    const auto found = parts_.find(output);
    if (found == parts_.end()) return Status();
    const std::vector<Output> parts = std::move(found->second);
    parts_.erase(found);
    *sum = parts.size() == 1
               ? parts[0]
               : AddOp(scope_, "AddN", std::vector<Input>(parts.begin(), parts.end()));
    return scope_.status();
  }

  const Scope& scope_;
  const std::vector<Output>& outputs_;
  const std::vector<Output>& inputs_;
  std::vector<char> depends_;
  std::vector<std::int64_t> pending_;
  std::unordered_map<Output, std::vector<Output>, OutputHash> parts_;
  std::deque<Node*> ready_;
};

inline Status CheckTensors(const Scope& scope, const char* what,
                           const std::vector<Output>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Output& each = tensors[i];
    if (each.node() == nullptr || each.index() < 0 || each.index() >= each.op().num_outputs()) {
      return errors::InvalidArgument("AddSymbolicGradients: ", what, "[", i,
                                     "] is the output of no node");
    }
    if (each.node()->graph() != scope.graph()) {
      return errors::InvalidArgument("AddSymbolicGradients: ", what, "[", i, "] is '", each.name(),
                                     "' of another graph");
    }
  }
  return Status();
}

// A node of ones, under the name TensorFlow's has.
inline Status OnesLike(const Scope& scope, const Output& tensor, Output* ones) {
  const Spec& spec = tensor.node()->spec(tensor.index());
  if (spec.dtype == DT_BOOL || DataTypeSize(spec.dtype) == 0) {
    return errors::InvalidArgument("AddSymbolicGradients: '", tensor.name(), "' of type ",
                                   DataTypeString(spec.dtype), " has no gradient");
  }
  Tensor one;
  TF_RETURN_IF_ERROR(Tensor::BuildTensor(spec.dtype, TensorShape(), &one));
  TF_RETURN_IF_ERROR(ForType(spec.dtype, [&](auto zero) {
    using T = decltype(zero);
    *static_cast<T*>(one.data()) = static_cast<T>(1);
  }));
  const CompositeOpScopes scopes = scope.GetCompositeOpScopes("OnesLike");
  const Output shape = AddOp(scopes.child, "Shape", {tensor});
  *ones = AddOp(scopes.last, "BroadcastTo", {one, shape});
  return scope.status();
}

inline Status AddGradients(const Scope& scope, const std::vector<Output>& outputs,
                           const std::vector<Output>& inputs, const std::vector<Output>* given,
                           std::vector<Output>* grad_outputs) {
  CONVGRAD_TRY {
    TF_RETURN_IF_ERROR(scope.status());
    TF_RETURN_IF_ERROR(CheckTensors(scope, "outputs", outputs));
    TF_RETURN_IF_ERROR(CheckTensors(scope, "inputs", inputs));
    std::vector<Output> seeds;
    if (given != nullptr) {
      if (given->size() != outputs.size()) {
        return errors::InvalidArgument("Must specify a gradient input for each output.");
      }
      TF_RETURN_IF_ERROR(CheckTensors(scope, "grad_inputs", *given));
      seeds = *given;
      for (std::size_t i = 0; i < seeds.size(); ++i) {
        const Spec& wanted = outputs[i].node()->spec(outputs[i].index());
        const Spec& seed = seeds[i].node()->spec(seeds[i].index());
        if (seed.dtype != wanted.dtype || !seed.shape.IsCompatibleWith(wanted.shape)) {
          return errors::InvalidArgument(
              "AddSymbolicGradients: grad_inputs[", i, "] must be ", DataTypeString(wanted.dtype),
              " of shape ", wanted.shape.DebugString(), " as '", outputs[i].name(), "', got ",
              DataTypeString(seed.dtype), " of shape ", seed.shape.DebugString());
        }
      }
    } else {
      seeds.resize(outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        TF_RETURN_IF_ERROR(OnesLike(scope, outputs[i], &seeds[i]));
      }
    }
    return GradientWalk(scope, outputs, inputs).Run(seeds, grad_outputs);
  }
  CONVGRAD_CATCH(return OutOfMemory();)
}

}  // namespace detail

// Adds nodes for the gradients of the sum of `outputs`, weighted by `grad_inputs`, with respect to
// each of `inputs`. NoGradient() for one that is only reached through ops without a gradient;
// INVALID_ARGUMENT for one that no output depends on. The results can be differentiated again.
inline Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                   const std::vector<Output>& inputs,
                                   const std::vector<Output>& grad_inputs,
                                   std::vector<Output>* grad_outputs) {
  return detail::AddGradients(scope, outputs, inputs, &grad_inputs, grad_outputs);
}

// The same with ones for weights.
inline Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                   const std::vector<Output>& inputs,
                                   std::vector<Output>* grad_outputs) {
  return detail::AddGradients(scope, outputs, inputs, nullptr, grad_outputs);
}

}  // namespace convgrad

#endif  // CONVGRAD_CC_GRADIENTS_H_
