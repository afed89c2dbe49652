// The system gives no thread, or only some: the work is done by those there are, the caller's among them.
#include <cerrno>
#include <cstring>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace {

std::atomic<int> allowed{1 << 20};

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  if (allowed.fetch_sub(1) <= 0) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  void* found = dlsym(RTLD_NEXT, "pthread_create");
  Create create = nullptr;
  static_assert(sizeof create == sizeof found, "functions and data have addresses of one size");
  std::memcpy(&create, &found, sizeof create);
  return create(thread, attributes, start, argument);
}

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

Status Work(std::vector<Tensor>* values) {
  Scope root = Scope::NewRootScope();
  auto image = Const(root, Numbers(DT_FLOAT, {4, 24, 24, 8}, 1));
  auto filter = Const(root, Numbers(DT_FLOAT, {3, 3, 8, 8}, 2));
  auto dense = Conv2D(root, image, filter, {1, 1, 1, 1}, "SAME");
  auto depthwise = DepthwiseConv2dNative(root, image, Const(root, Numbers(DT_FLOAT, {3, 3, 8, 1}, 3)), {1, 1, 1, 1}, "SAME");
  TF_RETURN_IF_ERROR(root.status());
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(4);
  ClientSession session(root, options);
  return session.Run({dense, depthwise}, values);
}

}  // namespace

int main() {
  std::vector<Tensor> expected;
  TF_CHECK_OK(Work(&expected));
  for (int threads = 0; threads < 5; ++threads) {
    allowed = threads;
    std::vector<Tensor> values;
    const Status status = Work(&values);
    if (!status.ok()) {
      std::printf("%d threads: %s\n", threads, status.ToString().c_str());
      if (status.code() != absl::StatusCode::kResourceExhausted) return 1;
      continue;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].tensor_data() != expected[i].tensor_data()) {
        std::printf("%d threads: another result\n", threads);
        return 1;
      }
    }
    std::printf("%d threads: done\n", threads);
  }
  return 0;
}
