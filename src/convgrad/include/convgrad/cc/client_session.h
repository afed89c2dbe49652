// ClientSession: runs a graph. It keeps the values of Variables, and the ways through the graph it
// has prepared.
#ifndef CONVGRAD_CC_CLIENT_SESSION_H_
#define CONVGRAD_CC_CLIENT_SESSION_H_

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convgrad/cc/fp_mode.h"
#include "convgrad/cc/ops/op_class.h"
#include "convgrad/cc/session_options.h"
#include "convgrad/cc/steps.h"

namespace convgrad {
namespace detail {

using FeedMap = std::unordered_map<Output, Input::Initializer, OutputHash>;

// Whether a name of a device is one of the CPU's: "", "/cpu:0", "/job:localhost/.../device:CPU:0".
inline bool IsCpu(const std::string& device) {
  std::string lower;
  for (const char c : device) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.empty() || lower.find("cpu") != std::string::npos;
}

// One run: what was asked for, and the tensors as they come and go.
class Run {
 public:
  using Values = std::unordered_map<const Node*, Tensor>;

  Run(const Steps& way, const SessionOptions& options, const RunOptions& run_options)
      : way_(way), options_(options), values_(static_cast<std::size_t>(way.places)) {
    if (run_options.timeout_in_ms() > 0) {
      ends_ = std::chrono::steady_clock::now() +
              std::chrono::milliseconds(std::min<std::int64_t>(run_options.timeout_in_ms(),
                                                               std::int64_t{1} << 40));
      limited_ = true;
    }
  }

  // Fills in everything that is not computed. `variables` must not change meanwhile.
  Status Start(const std::vector<Tensor>& fed, const Values& variables) {
    for (const Node* node : way_.placeholders) return Unfed(*node);
    for (const auto& [at, constant] : way_.constants) {
      if (!constant.IsInitialized()) return NoRoom(constant.dtype(), constant.shape());
      Place(at) = constant;
    }
    for (std::size_t i = 0; i < fed.size(); ++i) Place(way_.feeds[i]) = fed[i];
    for (const Steps::Read& read : way_.variables) {
      const auto found = variables.find(read.variable);
      if (found != variables.end()) {
        Place(read.place) = found->second;
      } else if (!read.reader.empty()) {
        return errors::FailedPrecondition("Attempting to use uninitialized value ",
                                          read.variable->name(), "\n\t [[{{node ", read.reader,
                                          "}}]]");
      }
    }
    return Status();
  }

  Status Compute() {
    const DefaultMode mode;
    for (const Step& step : way_.steps) {
      if (limited_ && std::chrono::steady_clock::now() > ends_) {
        return errors::DeadlineExceeded("Timed out waiting for notification");
      }
      TF_RETURN_IF_ERROR(One(step));
    }
    return Status();
  }

  // What was fetched, and the new values of Variables. Nobody else has their memory.
  Status Finish(std::vector<Tensor>* fetched, Values* updates) {
    for (const int at : way_.fetches) fetched->push_back(Place(at));
    for (const auto& [variable, step] : pending_) (*updates)[variable] = Place(step->outputs[0]);
    values_.clear();
    for (Tensor& tensor : *fetched) TF_RETURN_IF_ERROR(Own(&tensor));
    for (auto& [variable, tensor] : *updates) TF_RETURN_IF_ERROR(Own(&tensor));
    return Status();
  }

 private:
  Tensor& Place(int at) { return values_[static_cast<std::size_t>(at)]; }

  static Status Unfed(const Node& node) {
    const PartialTensorShape& shape = node.spec(0).shape;
    return errors::InvalidArgument(
        "You must feed a value for placeholder tensor '", node.name(), "' with dtype ",
        DataTypeString(node.spec(0).dtype),
        shape.unknown_rank() ? std::string() : " and shape " + shape.DebugString(),
        "\n\t [[{{node ", node.name(), "}}]]");
  }

  static Status Own(Tensor* tensor) {
    if (tensor->TotalBytes() == 0 || tensor->RefCountIsOne()) return Status();
    *tensor = DeepCopy(*tensor);
    return tensor->IsInitialized() ? Status() : NoRoom(tensor->dtype(), tensor->shape());
  }

  Status One(const Step& step) {
    const Node& node = *step.node;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      Tensor& tensor = Place(step.inputs[i]);
      if (step.ends[i]) {  // nobody else has it then, and the kernel may write over it
        inputs_.push_back(std::move(tensor));
      } else {
        inputs_.push_back(tensor);
      }
    }
    KernelContext context(node.row(), node.attrs(), node.name(), std::move(inputs_),
                          step.input_specs, step.types,
                          options_.config.intra_op_parallelism_threads());
    const Status status = node.row().compute(&context);
    if (!status.ok()) return Located(status, node);
    inputs_ = context.TakeInputs();  // their memory ends; the list's is for the next step
    inputs_.clear();
    std::vector<Tensor> outputs = context.TakeOutputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (step.outputs[i] >= 0) Place(step.outputs[i]) = std::move(outputs[i]);
    }
    if (node.row().updates) TF_RETURN_IF_ERROR(NoteUpdate(step));
    for (const int at : step.frees) Place(at) = Tensor();
    return Status();
  }

  static Status Located(const Status& status, const Node& node) {
    return WithMessage(status, strings::StrCat(status.error_message(), "\n\t [[{{node ",
                                               node.name(), "}}]]"));
  }

  // A second update of a Variable must build on the first: there is no order between them
  // otherwise.
  Status NoteUpdate(const Step& step) {
    if (step.outputs[0] < 0) return Status();
    const auto [at, is_new] = pending_.emplace(step.node->variable(), &step);
    if (!is_new && step.node->input(0).node() != at->second->node) {
      return Located(errors::InvalidArgument(
                         "Variable '", at->first->name(),
                         "' must not be changed twice in one run, by '", at->second->node->name(),
                         "' and '", step.node->name(),
                         "'; give the second the first's output"),
                     *step.node);
    }
    at->second = &step;
    return Status();
  }

  const Steps& way_;
  const SessionOptions& options_;
  std::vector<Tensor> values_;
  std::vector<Tensor> inputs_;  // of one step
  std::unordered_map<const Node*, const Step*> pending_;
  std::chrono::steady_clock::time_point ends_;
  bool limited_ = false;
};

}  // namespace detail

// A run computes what is fetched and nothing else. All of it sees Variables as they were before;
// new values are kept when everything has been computed, so a run that fails changes nothing.
// Several threads may run one session.
class ClientSession {
 public:
  using FeedType = detail::FeedMap;

  ClientSession(const Scope& scope, const std::string& target)
      : ClientSession(scope, OptionsOf(target)) {}
  explicit ClientSession(const Scope& scope) : ClientSession(scope, SessionOptions()) {}
  ClientSession(const Scope& scope, const SessionOptions& session_options) {
    CONVGRAD_TRY { impl_ = std::make_unique<Impl>(scope, session_options); }
    CONVGRAD_CATCH(impl_ = nullptr;)
  }
  ~ClientSession() = default;
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  Status Run(const std::vector<Output>& fetch_outputs, std::vector<Tensor>* outputs) const {
    return Run(FeedType{}, fetch_outputs, {}, outputs);
  }
  Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
             std::vector<Tensor>* outputs) const {
    return Run(inputs, fetch_outputs, {}, outputs);
  }
  Status Run(const FeedType& inputs, const std::vector<Output>& fetch_outputs,
             const std::vector<Operation>& run_outputs, std::vector<Tensor>* outputs) const {
    return Run(RunOptions(), inputs, fetch_outputs, run_outputs, outputs, nullptr);
  }
  Status Run(const RunOptions& run_options, const FeedType& inputs,
             const std::vector<Output>& fetch_outputs, const std::vector<Operation>& run_outputs,
             std::vector<Tensor>* outputs, RunMetadata* run_metadata) const {
    static_cast<void>(run_metadata);  // says nothing without a trace, which is refused below
    if (impl_ == nullptr) return detail::OutOfMemory();
    CONVGRAD_TRY {
      return impl_->Run(run_options, inputs, fetch_outputs, run_outputs, outputs);
    }
    CONVGRAD_CATCH(return detail::OutOfMemory();)
  }

 private:
  class Impl {
   public:
    Impl(const Scope& scope, const SessionOptions& options)
        : scope_(scope), graph_(scope.graph_as_shared_ptr()), options_(options) {}

    Status Run(const RunOptions& run_options, const FeedType& inputs,
               const std::vector<Output>& fetches, const std::vector<Operation>& run_outputs,
               std::vector<Tensor>* outputs) {
      TF_RETURN_IF_ERROR(Check(run_options));
      std::vector<Output> fed;
      std::vector<Tensor> values;
      TF_RETURN_IF_ERROR(ReadFeeds(inputs, &fed, &values));
      for (const Output& fetch : fetches) {
        TF_RETURN_IF_ERROR(Own(fetch, "FetchOutputs node "));
        if (inputs.count(fetch) != 0) {
          return errors::InvalidArgument(fetch.name(), " is both fed and fetched.");
        }
      }
      std::vector<const Node*> targets;
      for (const Operation& op : run_outputs) {
        TF_RETURN_IF_ERROR(Own(Output(op, 0), "PruneForTargets: target "));
        targets.push_back(op.node());
      }
      if (fetches.empty() && targets.empty()) {
        return errors::InvalidArgument("Must specify at least one target to fetch or execute.");
      }
      std::shared_ptr<const detail::Steps> way;
      TF_RETURN_IF_ERROR(FindWay(fed, fetches, targets, &way));
      detail::Run run(*way, options_, run_options);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        TF_RETURN_IF_ERROR(run.Start(values, variables_));
      }
      values.clear();
      TF_RETURN_IF_ERROR(run.Compute());
      std::vector<Tensor> fetched;
      detail::Run::Values updates;
      TF_RETURN_IF_ERROR(run.Finish(&fetched, &updates));
      if (!updates.empty()) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& [variable, value] : updates) variables_[variable];  // all or none
        for (auto& [variable, value] : updates) variables_[variable] = std::move(value);
      }
      if (outputs != nullptr) *outputs = std::move(fetched);
      return Status();
    }

   private:
    using Key = std::vector<std::int64_t>;

    Status Check(const RunOptions& run_options) const {
      if (graph_ == nullptr) return scope_.status();
      if (!options_.target.empty() && options_.target != "local") {
        return errors::NotFound("No session factory registered for the given session options: ",
                                "{target: \"", options_.target,
                                "\" config: } Registered factories are {DIRECT_SESSION}.");
      }
      if (run_options.trace_level() != RunOptions::NO_TRACE) {
        return errors::Unimplemented("convgrad records no traces: trace_level must be NO_TRACE");
      }
      return Status();
    }

    Status Own(const Output& output, const char* what) const {
      if (output.node() == nullptr) {
        TF_RETURN_IF_ERROR(scope_.status());  // why there is none
        return errors::InvalidArgument(what, "is the output of no node");
      }
      if (output.node()->graph() != graph_.get() || output.index() < 0 ||
          output.index() >= output.node()->num_outputs()) {
        return errors::NotFound(what, output.name(), ": not found");
      }
      return Status();
    }

    Status ReadFeeds(const FeedType& inputs, std::vector<Output>* fed,
                     std::vector<Tensor>* values) const {
      std::vector<const FeedType::value_type*> sorted;
      for (const auto& feed : inputs) {
        TF_RETURN_IF_ERROR(Own(feed.first, "FeedInputs: unable to find feed output "));
        TF_RETURN_IF_ERROR(feed.second.status);
        sorted.push_back(&feed);
      }
      std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
        const int first = a->first.node()->id(), second = b->first.node()->id();
        return first != second ? first < second : a->first.index() < b->first.index();
      });
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        const Output& output = sorted[i]->first;
        const Tensor& value = sorted[i]->second.tensor;
        const detail::Spec& spec = output.node()->spec(output.index());
        if (value.dtype() != spec.dtype) {
          return errors::InvalidArgument("Expects arg[", i, "] to be ", DataTypeString(spec.dtype),
                                         " but ", DataTypeString(value.dtype()), " is provided");
        }
        TF_RETURN_IF_ERROR(value.shape().Check());
        if (!value.IsInitialized()) {
          return errors::InvalidArgument("The tensor fed for '", output.name(),
                                         "' is not initialized");
        }
        if (!spec.shape.IsCompatibleWith(value.shape())) {
          return errors::InvalidArgument("Cannot feed value of shape ",
                                         value.shape().DebugString(), " for Tensor '",
                                         output.name(), "', which has shape ",
                                         spec.shape.DebugString());
        }
        fed->push_back(output);
        values->push_back(value);
      }
      return Status();
    }

    Status FindWay(const std::vector<Output>& fed, const std::vector<Output>& fetches,
                   const std::vector<const Node*>& targets,
                   std::shared_ptr<const detail::Steps>* way) {
      Key key;
      const auto add = [&](const std::vector<Output>& outputs) {
        for (const Output& output : outputs) {
          key.push_back(output.node()->id());
          key.push_back(output.index());
        }
        key.push_back(-1);
      };
      add(fed);
      add(fetches);
      for (const Node* target : targets) key.push_back(target->id());
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = ways_.find(key);
        if (found != ways_.end()) {
          *way = found->second;
          return Status();
        }
      }
      auto made = std::make_shared<detail::Steps>(
          detail::WayFinder(*graph_, fed, fetches, targets).Find());
      for (const Node* node : made->nodes) TF_RETURN_IF_ERROR(CheckPlace(*node));
      made->nodes.clear();
      *way = made;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ways_.size() >= kMostWays) ways_.clear();
      ways_[std::move(key)] = std::move(made);
      return Status();
    }

    Status CheckPlace(const Node& node) const {
      for (const std::string& device : {node.requested_device(), node.assigned_device_name()}) {
        if (detail::IsCpu(device) || options_.config.allow_soft_placement()) continue;
        return errors::InvalidArgument(
            "Cannot assign a device for operation ", node.name(), ": {{node ", node.name(),
            "}} was explicitly assigned to ", device,
            " but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make "
            "sure the device specification refers to a valid device.");
      }
      if (!node.kernel_label().empty()) {
        return errors::NotFound("No registered '", node.type_string(),
                                "' OpKernel with the label '", node.kernel_label(),
                                "'\n\t [[{{node ", node.name(), "}}]]");
      }
      return Status();
    }

    static constexpr std::size_t kMostWays = 256;

    const Scope scope_;
    const std::shared_ptr<Graph> graph_;
    const SessionOptions options_;
    std::mutex mutex_;
    detail::Run::Values variables_;
    std::map<Key, std::shared_ptr<const detail::Steps>> ways_;
  };

  static SessionOptions OptionsOf(const std::string& target) {
    SessionOptions options;
    options.target = target;
    return options;
  }

  std::unique_ptr<Impl> impl_;
};

}  // namespace convgrad

#endif  // CONVGRAD_CC_CLIENT_SESSION_H_
