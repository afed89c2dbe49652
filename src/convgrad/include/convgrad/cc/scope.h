// Scope: where in a graph, and how, nodes are made.
#ifndef CONVGRAD_CC_SCOPE_H_
#define CONVGRAD_CC_SCOPE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convgrad/cc/graph.h"

namespace convgrad {

struct CompositeOpScopes;

// Copies are cheap and share the graph and its status. Where there is no memory, functions that
// make a scope return the one they were called on, and the status says it.
class Scope {
 public:
  Scope(const Scope& other) = default;
  Scope& operator=(const Scope& other) = default;
  ~Scope() = default;

  // A scope with a new, empty graph.
  static Scope NewRootScope() {
    CONVGRAD_TRY {
      auto impl = std::make_shared<Impl>();
      impl->shared = std::make_shared<Shared>();
      impl->shared->graph = std::make_shared<Graph>();
      impl->names = std::make_shared<NameMap>();
      return Scope(std::move(impl));
    }
    CONVGRAD_CATCH(return Scope(nullptr);)
  }

  // Names of nodes made in it begin with this scope's and its own; a second one of a name gets a
  // number.
  Scope NewSubScope(const std::string& child_scope_name) const {
    return With([&](Impl* impl) {
      impl->op_name.clear();
      impl->used.reset();
      if (child_scope_name.empty()) return;
      const std::string unique = Unique(*impl_, child_scope_name);
      impl->name = Joined(impl_->name, unique);
      impl->names = std::make_shared<NameMap>();
    });
  }
  template <class... Fragments>
  Scope WithOpName(Fragments... fragments) const {
    return With([&](Impl* impl) { impl->op_name = strings::StrCat(fragments...); });
  }
  // Nodes run behind these and what the scope had before; they run even if nobody reads their
  // outputs.
  Scope WithControlDependencies(gtl::ArraySlice<Operation> control_deps) const {
    return With([&](Impl* impl) {
      for (const Operation& op : control_deps) {
        bool known = op.node() == nullptr;
        for (const Operation& other : impl->control_deps) known = known || other == op;
        if (!known) impl->control_deps.push_back(op);
      }
    });
  }
  Scope WithControlDependencies(const Output& control_dep) const {
    const Operation op = control_dep.op();
    return WithControlDependencies(gtl::ArraySlice<Operation>(&op, 1));
  }
  Scope WithNoControlDependencies() const {
    return With([](Impl* impl) { impl->control_deps.clear(); });
  }
  // There is one device, the CPU: a run refuses nodes that were put on another.
  Scope WithDevice(const std::string& device) const {
    return With([&](Impl* impl) { impl->device = device; });
  }
  Scope WithAssignedDevice(const std::string& assigned_device) const {
    return With([&](Impl* impl) { impl->assigned_device = assigned_device; });
  }
  // A hint for a compiler that is not here.
  Scope WithXlaCluster(const std::string& xla_cluster) const {
    return With([&](Impl* impl) { impl->xla_cluster = xla_cluster; });
  }
  // On one device everything is together.
  Scope ColocateWith(const Operation&) const { return *this; }
  Scope ColocateWith(const Output& out) const { return ColocateWith(out.op()); }
  Scope ClearColocation() const { return *this; }
  // The first error ends the process, by the caller's wish.
  Scope ExitOnError() const {
    return With([](Impl* impl) { impl->exit_on_error = true; });
  }
  // No op has a second kernel: a run refuses nodes that ask for one.
  Scope WithKernelLabel(const std::string& kernel_label) const {
    return With([&](Impl* impl) { impl->kernel_label = kernel_label; });
  }

  std::string GetUniqueNameForOp(const std::string& default_name) const {
    if (impl_ == nullptr) return std::string();
    CONVGRAD_TRY {
      if (impl_->used != nullptr) {  // the last node of a composite op has the name of it
        if (*impl_->used) {
          UpdateStatus(errors::AlreadyExists(impl_->op_name,
                                             " already exists in the current scope"));
          return std::string();
        }
        *impl_->used = true;
        return impl_->op_name;
      }
      return Joined(impl_->name,
                    Unique(*impl_, impl_->op_name.empty() ? default_name : impl_->op_name));
    }
    CONVGRAD_CATCH(UpdateStatus(detail::OutOfMemory()); return std::string();)
  }

  // Keeps the first error of all scopes of the graph.
  void UpdateStatus(const Status& status) const {
    if (impl_ == nullptr || status.ok()) return;
    {
      const std::lock_guard<std::mutex> lock(impl_->shared->mutex);
      impl_->shared->status.Update(status);
    }
    if (impl_->exit_on_error) detail::Die(__FILE__, __LINE__, status);
  }

  CompositeOpScopes GetCompositeOpScopes(const std::string& composite_op_name) const;

  bool ok() const { return status().ok(); }
  Graph* graph() const { return impl_ == nullptr ? nullptr : impl_->shared->graph.get(); }
  std::shared_ptr<Graph> graph_as_shared_ptr() const {
    return impl_ == nullptr ? nullptr : impl_->shared->graph;
  }
  Status status() const {
    if (impl_ == nullptr) return detail::OutOfMemory();
    const std::lock_guard<std::mutex> lock(impl_->shared->mutex);
    return impl_->shared->status;
  }
  // Shapes are inferred when a node is made.
  Status DoShapeInference(Node*) const { return Status(); }
  const std::vector<Operation>& control_deps() const {
    static const std::vector<Operation> kNone;
    return impl_ == nullptr ? kNone : impl_->control_deps;
  }

  // What follows is not TensorFlow's.
  std::string device() const { return impl_ == nullptr ? std::string() : impl_->device; }
  std::string assigned_device() const {
    return impl_ == nullptr ? std::string() : impl_->assigned_device;
  }
  std::string kernel_label() const {
    return impl_ == nullptr ? std::string() : impl_->kernel_label;
  }

 private:
  using NameMap = std::unordered_map<std::string, int>;
  // What all scopes of a graph have together.
  struct Shared {
    std::shared_ptr<Graph> graph;
    std::mutex mutex;
    Status status;
  };
  struct Impl {
    std::shared_ptr<Shared> shared;
    std::shared_ptr<NameMap> names;  // taken in this scope, and the last number of each
    std::shared_ptr<bool> used;      // of a scope for one node only
    std::string name, op_name;
    std::vector<Operation> control_deps;
    std::string device, assigned_device, xla_cluster, kernel_label;
    bool exit_on_error = false;
  };

  explicit Scope(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  template <class F>
  Scope With(F change) const {
    if (impl_ == nullptr) return *this;
    CONVGRAD_TRY {
      auto impl = std::make_shared<Impl>(*impl_);
      change(impl.get());
      return Scope(std::move(impl));
    }
    CONVGRAD_CATCH(UpdateStatus(detail::OutOfMemory()); return *this;)
  }

  static std::string Joined(const std::string& prefix, const std::string& name) {
    return prefix.empty() || name.empty() ? prefix + name : prefix + "/" + name;
  }
  // The name given, or the next free one with a number behind it.
  static std::string Unique(const Impl& impl, const std::string& name) {
    const std::lock_guard<std::mutex> lock(impl.shared->mutex);
    const auto [entry, is_new] = impl.names->emplace(name, 0);
    if (is_new) return name;
    for (;;) {
      const int number = ++impl.names->find(name)->second;
      std::string found = name + "_" + std::to_string(number);
      if (impl.names->emplace(found, 0).second) return found;
    }
  }

  std::shared_ptr<const Impl> impl_;
};

// For ops made of several nodes: the last has the name of the whole.
struct CompositeOpScopes {
  Scope child;
  Scope last;
};

inline CompositeOpScopes Scope::GetCompositeOpScopes(const std::string& composite_op_name) const {
  if (impl_ == nullptr) return {*this, *this};
  if (impl_->op_name.empty() && composite_op_name.empty()) {
    UpdateStatus(errors::InvalidArgument("Cannot create composite op scopes with empty name"));
    return {*this, *this};
  }
  if (impl_->used != nullptr) {
    Scope child = With([&](Impl* impl) {
      impl->name = impl->op_name;
      impl->op_name.clear();
      impl->used.reset();
      impl->names = std::make_shared<NameMap>();
    });
    return {child, *this};
  }
  const Scope child =
      NewSubScope(impl_->op_name.empty() ? composite_op_name : impl_->op_name);
  const Scope last = child.With([&](Impl* impl) {
    impl->op_name = impl->name;
    impl->used = std::make_shared<bool>(false);
  });
  return {child, last};
}

}  // namespace convgrad

#include "convgrad/cc/add_node.h"

#endif  // CONVGRAD_CC_SCOPE_H_
