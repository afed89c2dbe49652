// What tools/pack_speed.py calls: entries of a pack as C++ programs run them, and whole sessions.
#include <cstdint>
#include <memory>
#include <vector>

#include "convgrad/cc/convgrad.h"
#include "timed.h"

CONVGRAD_USE_PACK(timed)

namespace {

using convgrad::ClientSession;
using convgrad::DataType;
using convgrad::Output;
using convgrad::Scope;
using convgrad::Tensor;
using convgrad::TensorShape;

// A graph of one convolution, whose operands are constants and so not copied.
struct Graph {
  Scope scope = Scope::NewRootScope();
  Output output;
  std::unique_ptr<ClientSession> session;
};

}  // namespace

extern "C" {

// On memory of the caller's, as a kernel of a session runs it.
int speed_run(std::int64_t entry, const void* first, const void* second, void* result, int threads) {
  return convgrad::detail::RunEntry(*timed.entries[entry], first, second, result, threads).ok() ? 0 : 1;
}

// Runs a session that fetches one convolution, whose result is new memory each time.
int speed_session(void* graph) {
  auto* const made = static_cast<Graph*>(graph);
  std::vector<Tensor> found;
  return made->session->Run({made->output}, &found).ok() ? 0 : 1;
}

void* speed_graph(const char* op, const void* first, const std::int64_t* first_sizes,
                  const void* second, const std::int64_t* second_sizes,
                  const std::int64_t* result_sizes, const int* strides, const int* dilations,
                  const int* pads, int nchw, int threads) {
  auto made = std::make_unique<Graph>();
  const auto tensor = [](const void* from, const std::int64_t* sizes) {
    Tensor found(DataType::DT_FLOAT, TensorShape({sizes[0], sizes[1], sizes[2], sizes[3]}));
    std::memcpy(found.data(), from, found.TotalBytes());
    return found;
  };
  std::vector<convgrad::Input> inputs{tensor(first, first_sizes), tensor(second, second_sizes)};
  if (result_sizes != nullptr) {
    Tensor sizes(DataType::DT_INT32, TensorShape({4}));
    for (int i = 0; i < 4; ++i) {
      sizes.flat<std::int32_t>()(i) = static_cast<std::int32_t>(result_sizes[i]);
    }
    const bool to_input = std::string_view(op).find("BackpropInput") != std::string_view::npos;
    inputs.insert(inputs.begin() + (to_input ? 0 : 1), sizes);
  }
  const auto four = [nchw](const int* pair) {
    return nchw ? std::vector<std::int64_t>{1, 1, pair[0], pair[1]}
                : std::vector<std::int64_t>{1, pair[0], pair[1], 1};
  };
  std::vector<std::int64_t> paddings(8, 0);
  for (std::size_t i = 0; i < 4; ++i) paddings[(nchw ? 4 : 2) + i] = pads[i];
  convgrad::detail::Attributes attrs;
  attrs.Set("strides", four(strides));
  attrs.Set("dilations", four(dilations));
  attrs.Set("padding", std::string("EXPLICIT"));
  attrs.Set("explicit_paddings", paddings);
  attrs.Set("data_format", std::string(nchw ? "NCHW" : "NHWC"));
  made->output = convgrad::detail::AddOp(made->scope, op, inputs, attrs);
  convgrad::SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  made->session = std::make_unique<ClientSession>(made->scope, options);
  return made->scope.ok() ? made.release() : nullptr;
}

const char* speed_line(std::int64_t entry) {
  return entry < static_cast<std::int64_t>(timed.count) ? timed.entries[entry]->line : nullptr;
}

std::int64_t speed_on_packs() { return convgrad::Convolutions().packs; }
}
