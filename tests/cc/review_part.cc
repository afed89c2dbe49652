// One of two parts of a program that both include everything; test_review.py links and loads them.
#include <memory>
#include <vector>

#include "review_parts.h"

using namespace tensorflow;  // NOLINT

namespace {

float Run(const Scope& root, const Output& output) {
  const ClientSession session(root);
  std::vector<Tensor> found;
  if (!session.Run({output}, &found).ok()) return -1;
  return found[0].flat<float>()(0);
}

// Before main, in whatever order parts are begun: graphs, sessions, threads, Variables.
float RunEarly() {
  const Scope root = Scope::NewRootScope();
  auto x = ops::Const(root, 1.0f, {4, 16, 16, 8});
  auto y = ops::Conv2D(root, x, ops::Const(root, 1.0f, {3, 3, 8, 8}), {1, 1, 1, 1}, "VALID");
  return Run(root, y);
}
const float kEarly = RunEarly();
const Scope kRoot = Scope::NewRootScope();
const Output kSum = ops::Add(kRoot.WithOpName("sum"), 1.0f, static_cast<float>(PART));

}  // namespace

#define CONVGRAD_NAME_OF(part) Part##part
#define CONVGRAD_NAME(part) CONVGRAD_NAME_OF(part)

// The Scope, Output and Status of another part are the same as those of this one.
extern "C" int CONVGRAD_NAME(PART)(const Given* given, Made* made) {
  if (kEarly != 72 || Run(kRoot, kSum) != 1.0f + PART) return 1;
  made->scope = &kRoot;
  made->output = kSum;
  if (given == nullptr) return 0;
  if (Run(*given->scope, given->output) != 4.0f - PART) return 2;
  const Output more = ops::Square(*given->scope, given->output);
  if (!given->scope->ok() || Run(*given->scope, more) != (4.0f - PART) * (4.0f - PART)) return 3;
  const Output mixed = ops::Add(kRoot, given->output, kSum);
  return kRoot.ok() || mixed.node() != nullptr ? 4 : 0;
}
