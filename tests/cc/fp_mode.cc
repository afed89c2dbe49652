// Ops compute in the default floating-point mode, whatever the caller's is or was when threads were
// started, and leave the caller's as it is.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;       // NOLINT
using namespace tensorflow::ops;  // NOLINT

namespace {

// The register, and what is set in it beyond the default: flushing, and rounding upward, downward
// and toward zero.
#if defined(__x86_64__)
std::uint64_t Mode() { return __builtin_ia32_stmxcsr(); }
void SetMode(std::uint64_t mode) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(mode)); }
const std::uint64_t kModes[] = {0x8040, 2 << 13, 1 << 13, 3 << 13, 0x8040 | 2 << 13};
#elif defined(__aarch64__)
std::uint64_t Mode() {
  std::uint64_t mode;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void SetMode(std::uint64_t mode) { __asm__ __volatile__("msr fpcr, %0" : : "r"(mode)); }
const std::uint64_t kModes[] = {1 << 24, 1 << 22, 2 << 22, 3 << 22, 1 << 24 | 1 << 22};
#endif

Tensor Numbers(const TensorShape& shape, float scale) {
  Tensor tensor(DT_FLOAT, shape);
  std::uint32_t word = 1;
  for (int i = 0; i < tensor.NumElements(); ++i) {
    word = word * 1664525u + 1013904223u;
    tensor.flat<float>()(i) = (1 + static_cast<float>(word >> 9) / 8388608.0f) * scale;
  }
  return tensor;
}

bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(a[i].tensor_data().data(), b[i].tensor_data().data(), a[i].TotalBytes()) != 0) {
      return false;
    }
  }
  return a.size() == b.size();
}

}  // namespace

int main() {
#if defined(__x86_64__) || defined(__aarch64__)
  const Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT);
  auto f = Const(root, Input::Initializer(Numbers(TensorShape({3, 3, 32, 1}), 1)));
  auto y = DepthwiseConv2dNative(root, x, f, {1, 1, 1, 1}, "SAME");
  auto product = Multiply(root, x, x);
  auto sum = Sum(root, product, {0, 1, 2});
  auto soft = Tanh(root, y);
  SessionOptions alone, shared;
  alone.config.set_intra_op_parallelism_threads(1);
  shared.config.set_intra_op_parallelism_threads(3);
  const ClientSession one(root, alone), three(root, shared);
  int failures = 0;
  {
    // Threads begin with the mode of whoever starts them.
    const std::uint64_t usual = Mode();
    SetMode(usual | kModes[4]);
    ::convgrad::detail::ForChunks(3, 3, [](std::int64_t, int) {});
    SetMode(usual);
  }
  for (const float scale : {1.0f, 0x1p-140f}) {
    const Tensor fed = Numbers(TensorShape({2, 32, 32, 32}), scale);
    std::vector<Tensor> expected, out;
    TF_CHECK_OK(one.Run({{x, fed}}, {y, sum, soft, product}, &expected));
    for (int i = 0; i < expected[0].NumElements(); ++i) {
      if (expected[0].flat<float>()(i) == 0) ++failures;
    }
    const std::uint64_t usual = Mode();
    for (const std::uint64_t mode : kModes) {
      for (const ClientSession* session : {&three, &one, &three}) {
        SetMode(usual | mode);
        const Status status = session->Run({{x, fed}}, {y, sum, soft, product}, &out);
        const std::uint64_t after = Mode();
        SetMode(usual);
        if (!status.ok() || after != (usual | mode) || !Same(out, expected)) {
          std::printf("mode %llx, scale %g: %s, then %llx\n", static_cast<unsigned long long>(mode),
                      static_cast<double>(scale), Same(out, expected) ? "right" : "other bits",
                      static_cast<unsigned long long>(after));
          ++failures;
        }
      }
    }
    TF_CHECK_OK(three.Run({{x, fed}}, {y, sum, soft, product}, &out));
    if (!Same(out, expected)) ++failures;
  }
  if (failures != 0) return 1;
#endif
  std::puts("ok");
  return 0;
}
