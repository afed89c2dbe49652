// Every allocation of a program's calls fails once, one after the other: each call must end in a Status, or do its work.
//
//   no_memory           the N-th allocation fails, for every N
//   no_memory all       the N-th and all that follow fail
#include <cstdlib>
#include <cstring>
#include <new>

#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace {

// Not atomic types: only the thread that counts is counted, so that a run is the same each time.
thread_local bool armed = false;
thread_local long left = 0;
thread_local bool failed = false;
bool all_after = false;

bool Fails() {
  if (!armed) return false;
  if (left-- > 0) return false;
  if (left < -1 && !all_after) return false;
  failed = true;
  return true;
}

void* Get(std::size_t size, std::size_t align) {
  if (Fails()) return nullptr;
  if (align <= alignof(std::max_align_t)) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(align, (size + align - 1) / align * align + (size == 0 ? align : 0));
}

void* OrThrow(void* found) {
  if (found == nullptr) throw std::bad_alloc();
  return found;
}

}  // namespace

void* operator new(std::size_t size) { return OrThrow(Get(size, 1)); }
void* operator new[](std::size_t size) { return OrThrow(Get(size, 1)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Get(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Get(size, 1); }
void* operator new(std::size_t size, std::align_val_t align) { return OrThrow(Get(size, static_cast<std::size_t>(align))); }
void* operator new[](std::size_t size, std::align_val_t align) { return OrThrow(Get(size, static_cast<std::size_t>(align))); }
void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept { return Get(size, static_cast<std::size_t>(align)); }
void* operator new[](std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept { return Get(size, static_cast<std::size_t>(align)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

// Allocations fail only while one of these lives: what the program itself builds, its vectors, is not the matter here.
class Armed {
 public:
  Armed() { armed = true; }
  ~Armed() { armed = false; }
};

struct Outcome {
  Status status;
  std::vector<Tensor> values;
};

// A graph with names, constants, a Variable, convolutions of both kinds, gradients, feeds and a refusal.
Outcome Work() {
  Outcome outcome;
  const std::vector<int> strides = {1, 2, 2, 1};
  const Tensor image = Numbers(DT_FLOAT, {1, 5, 5, 2}, 1);
  const Tensor filter = Numbers(DT_FLOAT, {3, 3, 2, 2}, 2);
  const std::string name = "a_name_that_is_too_long_to_be_kept_inside_a_string";
  std::vector<Output> outputs(1);
  std::vector<Output> inputs(2);
  std::vector<Output> wanted(4);
  std::vector<Output> grads;
  ClientSession::FeedType feeds;
  Armed now;
  Scope root = Scope::NewRootScope();
  Scope scope = root.NewSubScope(name).WithOpName(name.c_str());
  auto x = Placeholder(root.WithOpName("x"), DT_FLOAT, Placeholder::Shape({-1, 5, 5, 2}));
  auto w = Const(scope, filter);
  auto y = Conv2D(root, x, w, strides, "SAME");
  auto z = DepthwiseConv2dNative(root.WithOpName("depthwise"), x, w, strides, "SAME", DepthwiseConv2dNative::DataFormat("NHWC"));
  auto variable = Variable(root, {2}, DT_FLOAT);
  auto assign = Assign(root, variable, {1.f, 2.f});
  auto loss = AddN(root, {Input(L2Loss(root, Relu(root, y))), Input(Sum(root, z, {0, 1, 2, 3}))});
  if (!root.ok()) {
    outcome.status = root.status();
    return outcome;
  }
  armed = false;
  outputs[0] = loss;
  inputs[0] = x;
  inputs[1] = w;
  feeds.emplace(x, image);
  armed = true;
  outcome.status = AddSymbolicGradients(root, outputs, inputs, &grads);
  if (!outcome.status.ok()) return outcome;
  wanted[0] = loss;
  wanted[1] = grads[0];
  wanted[2] = grads[1];
  wanted[3] = assign;
  ClientSession session(root);
  outcome.status = session.Run(feeds, wanted, &outcome.values);
  if (!outcome.status.ok()) return outcome;
  (void)Conv2D(root, w, w, strides, "NONE");
  if (root.ok()) {
    armed = false;
    std::printf("a wrong padding was taken\n");
    std::abort();
  }
  return outcome;
}

bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].tensor_data() != b[i].tensor_data()) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  all_after = argc > 1 && std::strcmp(argv[1], "all") == 0;
  left = 1L << 40;
  const Outcome expected = Work();
  TF_CHECK_OK(expected.status);
  long at = 0;
  long refused = 0;
  for (; at < 100000; ++at) {
    left = at;
    failed = false;
    Outcome outcome;
    try {
      outcome = Work();
    } catch (const std::exception& error) {
      armed = false;
      std::printf("allocation %ld: an exception came out: %s\n", at, error.what());
      return 1;
    }
    armed = false;
    if (!failed) break;
    if (outcome.status.ok()) {
      if (!Same(outcome.values, expected.values)) {
        std::printf("allocation %ld: no error, and another result\n", at);
        return 1;
      }
    } else {
      ++refused;
      if (outcome.status.code() != absl::StatusCode::kResourceExhausted) {
        std::printf("allocation %ld: %s\n", at, outcome.status.ToString().c_str());
        return 1;
      }
    }
  }
  std::printf("%ld allocations failed, %ld refusals\n", at, refused);
  return at == 0;
}
