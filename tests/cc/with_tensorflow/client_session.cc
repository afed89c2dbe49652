// The class ClientSession for programs linked with TensorFlow's Python wheel.
//
// The wheel has the header of this class and every op, but not its definition. The class is a thin cover of
// tensorflow::Session, which the wheel has: nodes that are new since the last run are handed over, and outputs
// are named. Only the golden outputs are taken with it; nothing of it is part of convgrad.
#include "tensorflow/cc/client/client_session.h"

#include <mutex>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

class ClientSession::Impl {
 public:
  Impl(Session* session, std::shared_ptr<Graph> graph) : session_(session), graph_(std::move(graph)) {}

  absl::Status HandOver() const {
    std::lock_guard<std::mutex> lock(guard_);
    const int now = graph_->num_node_ids();
    if (now <= seen_) return absl::OkStatus();
    GraphDef added;
    graph_->ToGraphDefSubRange(&added, seen_);
    const absl::Status status = session_->Extend(added);
    if (status.ok()) seen_ = now;
    return status;
  }

  Session* session() const { return session_.get(); }

 private:
  std::unique_ptr<Session> session_;
  std::shared_ptr<Graph> graph_;
  mutable std::mutex guard_;
  mutable int seen_ = 0;
};

ClientSession::ClientSession(const Scope& scope, const SessionOptions& options) {
  Session* session = nullptr;
  TF_CHECK_OK(NewSession(options, &session));
  impl_.reset(new Impl(session, scope.graph_as_shared_ptr()));
}

namespace {
SessionOptions AtTarget(const std::string& target) {
  SessionOptions options;
  options.target = target;
  return options;
}
}  // namespace

ClientSession::ClientSession(const Scope& scope, const std::string& target)
    : ClientSession(scope, AtTarget(target)) {}
ClientSession::ClientSession(const Scope& scope) : ClientSession(scope, SessionOptions()) {}
ClientSession::~ClientSession() = default;

absl::Status ClientSession::Run(const std::vector<Output>& fetches, std::vector<Tensor>* results) const {
  return Run(FeedType{}, fetches, {}, results);
}

absl::Status ClientSession::Run(const FeedType& feeds, const std::vector<Output>& fetches,
                                std::vector<Tensor>* results) const {
  return Run(feeds, fetches, {}, results);
}

absl::Status ClientSession::Run(const FeedType& feeds, const std::vector<Output>& fetches,
                                const std::vector<Operation>& targets, std::vector<Tensor>* results) const {
  RunMetadata unused;
  return Run(RunOptions(), feeds, fetches, targets, results, &unused);
}

absl::Status ClientSession::Run(const RunOptions& options, const FeedType& feeds,
                                const std::vector<Output>& fetches, const std::vector<Operation>& targets,
                                std::vector<Tensor>* results, RunMetadata* metadata) const {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const auto& [output, value] : feeds) {
    if (!value.status.ok()) return value.status;
    named.emplace_back(output.name(), value.tensor);
  }
  std::vector<std::string> wanted;
  for (const Output& output : fetches) wanted.push_back(output.name());
  std::vector<std::string> reached;
  for (const Operation& target : targets) reached.push_back(target.node()->name());
  const absl::Status status = impl()->HandOver();
  if (!status.ok()) return status;
  return impl()->session()->Run(options, named, wanted, reached, results, metadata);
}

}  // namespace tensorflow
