// The way through a graph: which nodes run, in which order, and behind which step each tensor ends.
#ifndef CONVGRAD_CC_STEPS_H_
#define CONVGRAD_CC_STEPS_H_

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convgrad/cc/graph.h"

namespace convgrad {
namespace detail {

// One node to run, on numbered places for tensors.
struct Step {
  const Node* node = nullptr;
  std::vector<int> inputs;
  std::vector<int> outputs;  // -1 for one that was fed
  std::vector<int> frees;    // places nobody needs behind this step
  std::vector<char> ends;    // by input: whether its place is one of those, and not a later input
  std::vector<const Spec*> input_specs;
  std::vector<DataType> types;
};

struct Steps {
  struct Read {
    const Node* variable;
    int place;
    std::string reader;  // the first that needs its value; "" if all of them write over it
  };

  std::vector<Step> steps;
  int places = 0;
  std::vector<std::pair<int, Tensor>> constants;
  std::vector<int> feeds;  // in the order they were given
  std::vector<Read> variables;
  std::vector<const Node*> placeholders;  // needed, and not fed
  std::vector<int> fetches;
  std::vector<const Node*> nodes;  // all that are needed, in order
};

// A tensor whose numbers the graph knows already; not initialized without memory.
inline Tensor Known(const Spec& spec) {
  TensorShape shape;
  spec.shape.AsTensorShape(&shape);
  Tensor tensor(spec.dtype, shape);
  if (tensor.data() == nullptr) return tensor;
  ForType(spec.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = static_cast<T*>(tensor.data());
    for (const std::int64_t number : *spec.numbers) *to++ = static_cast<T>(number);
  }).IgnoreError();
  return tensor;
}

class WayFinder {
 public:
  WayFinder(const Graph& graph, const std::vector<Output>& feeds,
            const std::vector<Output>& fetches, const std::vector<const Node*>& targets)
      : feeds_(feeds), fetches_(fetches), targets_(targets) {
    const auto ids = static_cast<std::size_t>(graph.num_node_ids());
    wanted_.assign(ids, 0);
    doubtful_.assign(ids, 0);
    for (const Output& feed : feeds) place_[feed] = count_++;
    FindDoubtful(graph);
  }

  Steps Find() {
    Steps way;
    for (const Output& feed : feeds_) way.feeds.push_back(place_[feed]);
    way.nodes = Ordered();
    std::vector<const Node*> run;
    for (const Node* node : way.nodes) {
      if (AllFed(*node)) continue;
      if (std::string_view(node->row().name) == "Const") {
        way.constants.emplace_back(Place(node, 0), node->attrs().Value("value"));
      } else if (AllKnown(*node)) {
        for (int i = 0; i < node->num_outputs(); ++i) {
          way.constants.emplace_back(Place(node, i), Known(node->spec(i)));
        }
      } else if (IsVariable(node->row())) {
        way.variables.push_back({node, Place(node, 0), std::string()});
      } else if (node->row().compute == nullptr) {
        way.placeholders.push_back(node);
        Place(node, 0);
      } else {
        run.push_back(node);
      }
    }
    AddSteps(run, &way);
    return way;
  }

 private:
  static Output Of(const Node* node, int i) { return Output(const_cast<Node*>(node), i); }
  int Place(const Node* node, int i) {
    const auto [at, is_new] = place_.emplace(Of(node, i), count_);
    count_ += is_new;
    return at->second;
  }
  bool Fed(const Output& output) const {
    const auto at = place_.find(output);
    return at != place_.end() && at->second < static_cast<int>(feeds_.size());
  }
  bool AllFed(const Node& node) const {
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!Fed(Of(&node, i))) return false;
    }
    return node.num_outputs() > 0;
  }
  bool AllKnown(const Node& node) const {
    if (doubtful_[At(node)]) return false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!node.spec(i).KnowsAllNumbers()) return false;
    }
    return true;
  }
  static std::size_t At(const Node& node) { return static_cast<std::size_t>(node.id()); }

  // Nodes behind a fed tensor whose numbers the graph was built on: what is known of them may not
  // hold.
  void FindDoubtful(const Graph& graph) {
    int first = -1;
    for (const Output& feed : feeds_) {
      if (!feed.node()->spec(feed.index()).numbers.has_value()) continue;
      first = first < 0 ? feed.node()->id() : std::min(first, feed.node()->id());
    }
    for (int id = first + 1; first >= 0 && id < static_cast<int>(doubtful_.size()); ++id) {
      const Node* const node = graph.FindNodeId(id);
      for (const Output& from : node->inputs()) {
        const bool changed =
            Fed(from) && from.node()->spec(from.index()).numbers.has_value();
        if (changed || doubtful_[At(*from.node())]) doubtful_[At(*node)] = 1;
      }
    }
  }

  // What must run, by number; nodes that need a shape alone run as soon as they can, so that the
  // tensor can end.
  std::vector<const Node*> Ordered() {
    std::vector<const Node*> open, found;
    const auto want = [&](const Node* node) {
      if (!std::exchange(wanted_[At(*node)], 1)) open.push_back(node);
    };
    for (const Output& fetch : fetches_) {
      if (!Fed(fetch)) want(fetch.node());
    }
    for (const Node* target : targets_) want(target);
    while (!open.empty()) {
      const Node* const node = open.back();
      open.pop_back();
      found.push_back(node);
      for (const Node* before : node->control_inputs()) want(before);
      if (AllKnown(*node) || AllFed(*node)) continue;
      for (const Output& from : node->inputs()) {
        if (!Fed(from)) want(from.node());
      }
    }
    std::sort(found.begin(), found.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    std::unordered_map<const Node*, std::vector<const Node*>> early;
    std::vector<const Node*> late;
    for (const Node* node : found) {
      const bool moved = node->row().eager && node->control_inputs().empty() &&
                         wanted_[At(*node->input(0).node())];
      if (moved) {
        early[node->input(0).node()].push_back(node);
      } else {
        late.push_back(node);
      }
    }
    std::vector<const Node*> ordered;
    for (const Node* node : late) {
      std::vector<const Node*> following = {node};
      for (std::size_t i = 0; i < following.size(); ++i) {  // a shape may be asked of a shape
        ordered.push_back(following[i]);
        const auto more = early.find(following[i]);
        if (more != early.end()) {
          following.insert(following.end(), more->second.begin(), more->second.end());
        }
      }
    }
    return ordered;
  }

  void AddSteps(const std::vector<const Node*>& run, Steps* way) {
    for (const Node* node : run) {
      Step step;
      step.node = node;
      for (const Output& from : node->inputs()) {
        step.inputs.push_back(Place(from.node(), from.index()));
        step.input_specs.push_back(&from.node()->spec(from.index()));
      }
      for (int i = 0; i < node->num_outputs(); ++i) {
        step.outputs.push_back(Fed(Of(node, i)) ? -1 : Place(node, i));
        step.types.push_back(node->spec(i).dtype);
      }
      way->steps.push_back(std::move(step));
    }
    for (const Output& fetch : fetches_) {
      way->fetches.push_back(Place(fetch.node(), fetch.index()));
    }
    way->places = count_;
    FindEnds(way);
    FindReaders(way);
  }

  void FindEnds(Steps* way) const {
    std::vector<char> kept(static_cast<std::size_t>(count_), 0);
    for (const int at : way->fetches) kept[static_cast<std::size_t>(at)] = 1;
    for (const Step& step : way->steps) {  // the Variable has it at the end
      if (step.node->row().updates && step.outputs[0] >= 0) {
        kept[static_cast<std::size_t>(step.outputs[0])] = 1;
      }
    }
    for (std::size_t i = way->steps.size(); i-- > 0;) {
      Step& step = way->steps[i];
      const auto last = [&](int at) {
        if (at < 0 || std::exchange(kept[static_cast<std::size_t>(at)], 1)) return false;
        step.frees.push_back(at);
        return true;
      };
      for (const int at : step.outputs) last(at);
      step.ends.assign(step.inputs.size(), 0);
      for (std::size_t j = step.inputs.size(); j-- > 0;) step.ends[j] = last(step.inputs[j]);
    }
  }

  void FindReaders(Steps* way) const {
    for (Steps::Read& read : way->variables) {
      for (const Step& step : way->steps) {
        const bool writes_over = std::string_view(step.node->row().name) == "Assign";
        for (std::size_t i = writes_over ? 1 : 0; i < step.inputs.size(); ++i) {
          if (step.inputs[i] == read.place && read.reader.empty()) read.reader = step.node->name();
        }
      }
      if (!read.reader.empty()) continue;
      for (std::size_t i = 0; i < way->fetches.size(); ++i) {
        if (way->fetches[i] == read.place && read.reader.empty()) {
          read.reader = strings::StrCat("_retval_", read.variable->name(), "_0_", i);
        }
      }
    }
  }

  const std::vector<Output>& feeds_;
  const std::vector<Output>& fetches_;
  const std::vector<const Node*>& targets_;
  std::vector<char> wanted_, doubtful_;
  std::unordered_map<Output, int, OutputHash> place_;
  int count_ = 0;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_STEPS_H_
