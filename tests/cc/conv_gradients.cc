// First and second derivatives of all six operations against central differences, in double. Prints the worst error of
// each and how many settings were tried; every one has random strides, dilations, paddings, layout and groups.
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "convgrad/cc/convgrad.h"

using namespace convgrad;

namespace {

std::mt19937 generator(16);

int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); }

Tensor Random(const TensorShape& shape) {
  Tensor tensor(DT_DOUBLE, shape);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < tensor.NumElements(); ++i) {
    static_cast<double*>(tensor.data())[i] = normal(generator);
  }
  return tensor;
}

Tensor Moved(const Tensor& at, const Tensor& by, double step) {
  Tensor tensor(DT_DOUBLE, at.shape());
  for (std::int64_t i = 0; i < at.NumElements(); ++i) {
    static_cast<double*>(tensor.data())[i] =
        static_cast<const double*>(at.data())[i] + step * static_cast<const double*>(by.data())[i];
  }
  return tensor;
}

double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.NumElements(); ++i) {
    sum += static_cast<const double*>(a.data())[i] * static_cast<const double*>(b.data())[i];
  }
  return sum;
}

struct Setting {
  bool depthwise = false;
  detail::Attributes attrs;
  TensorShape input, filter, output;
};

bool Draw(Setting* to) {
  const bool nhwc = Pick(0, 1) == 0, depthwise = Pick(0, 1) == 0;
  const std::int64_t groups = Pick(1, 2), depth = Pick(1, 2), each = Pick(1, 2);
  const auto four = [&](std::int64_t rows, std::int64_t cols) {
    return nhwc ? std::vector<std::int64_t>{1, rows, cols, 1}
                : std::vector<std::int64_t>{1, 1, rows, cols};
  };
  const char* const words[] = {"SAME", "VALID", "EXPLICIT"};
  const std::string padding = words[Pick(0, 2)];
  std::vector<std::int64_t> pads;
  if (padding == "EXPLICIT") {
    pads.assign(8, 0);
    for (std::size_t i = nhwc ? 2 : 4, end = i + 4; i < end; ++i) pads[i] = Pick(0, 2);
  }
  to->depthwise = depthwise;
  to->attrs.Set("strides", four(Pick(1, 2), Pick(1, 2)));
  to->attrs.Set("dilations", four(Pick(1, 2), Pick(1, 2)));
  to->attrs.Set("padding", padding);
  to->attrs.Set("explicit_paddings", pads);
  to->attrs.Set("data_format", std::string(nhwc ? "NHWC" : "NCHW"));
  detail::ConvSettings settings;
  const detail::ConvRow& row = detail::kConvRows[depthwise ? 3 : 0];
  if (!detail::ReadSettings(row, to->attrs, &settings).ok()) return false;
  const std::int64_t rows = Pick(2, 5), cols = Pick(2, 5), channels = groups * depth;
  const detail::FourSizes input = nhwc ? detail::FourSizes{2, rows, cols, channels}
                                       : detail::FourSizes{2, channels, rows, cols};
  const detail::FourSizes filter = {Pick(1, 3), Pick(1, 3), depthwise ? channels : depth,
                                    depthwise ? each : groups * each};
  detail::Convolution conv;
  if (!detail::BuildConvolution(row, settings, DT_DOUBLE, input, filter, nullptr, &conv).ok()) {
    return false;
  }
  if (conv.IsEmpty()) return false;
  const detail::FourSizes output = conv.OutputShape();
  to->input = TensorShape({input[0], input[1], input[2], input[3]});
  to->filter = TensorShape({filter[0], filter[1], filter[2], filter[3]});
  to->output = TensorShape({output[0], output[1], output[2], output[3]});
  return true;
}

Tensor SizesTensor(const TensorShape& shape) {
  Tensor tensor(DT_INT32, TensorShape({4}));
  for (int i = 0; i < 4; ++i) {
    static_cast<std::int32_t*>(tensor.data())[i] = static_cast<std::int32_t>(shape.dim_size(i));
  }
  return tensor;
}

// The sum of an operation's result times a constant, of two operands; its gradients; and, of those times constants, the
// gradients again. Returns the worst distance from central differences, or -1.
double Try(const Setting& setting, int kind) {
  const Scope scope = Scope::NewRootScope();
  const Output a = ops::Placeholder(scope, DT_DOUBLE), b = ops::Placeholder(scope, DT_DOUBLE);
  const TensorShape& shape_a = kind == 1 ? setting.filter : setting.input;
  const TensorShape& shape_b = kind == 0 ? setting.filter : setting.output;
  const TensorShape& shape_y = kind == 0 ? setting.output : kind == 1 ? setting.input : setting.filter;
  const char* const name = detail::kConvRows[(setting.depthwise ? 3 : 0) + kind].op;
  std::vector<Input> inputs;
  if (kind == 0) inputs = {Input(a), Input(b)};
  if (kind == 1) inputs = {Input(SizesTensor(setting.input)), Input(a), Input(b)};
  if (kind == 2) inputs = {Input(a), Input(SizesTensor(setting.filter)), Input(b)};
  const Output y = detail::AddOp(scope, name, inputs, setting.attrs);
  const Tensor weight_y = Random(shape_y), weight_a = Random(shape_a), weight_b = Random(shape_b);
  std::vector<Output> first, second;
  const Output u = ops::Const(scope, weight_y);
  Status status = AddSymbolicGradients(scope, {y}, {a, b}, {u}, &first);
  if (!status.ok()) {
    std::printf("%s: %s\n", name, status.ToString().c_str());
    return -1;
  }
  // Second: of <grad a, weight a> + <grad b, weight b>.
  const Output wa = ops::Const(scope, weight_a), wb = ops::Const(scope, weight_b);
  status = AddSymbolicGradients(scope, first, {a, b}, {wa, wb}, &second);
  if (!status.ok()) {
    std::printf("%s, second: %s\n", name, status.ToString().c_str());
    return -1;
  }
  const Tensor at_a = Random(shape_a), at_b = Random(shape_b);
  const Tensor by_a = Random(shape_a), by_b = Random(shape_b);
  ClientSession session(scope);
  const auto run = [&](double step, std::vector<Tensor>* out) {
    return session.Run({{a, Moved(at_a, by_a, step)}, {b, Moved(at_b, by_b, step)}},
                       {y, first[0], first[1], second[0], second[1]}, out);
  };
  std::vector<Tensor> here, plus, minus;
  const double step = 1e-4;
  for (const Status& each : {run(0, &here), run(step, &plus), run(-step, &minus)}) {
    if (!each.ok()) {
      std::printf("%s: %s\n", name, each.ToString().c_str());
      return -1;
    }
  }
  const double slope = (Dot(plus[0], weight_y) - Dot(minus[0], weight_y)) / (2 * step);
  const double ours = Dot(here[1], by_a) + Dot(here[2], by_b);
  const auto total = [&](const std::vector<Tensor>& of) {
    return Dot(of[1], weight_a) + Dot(of[2], weight_b);
  };
  const double slope2 = (total(plus) - total(minus)) / (2 * step);
  const double ours2 = Dot(here[3], by_a) + Dot(here[4], by_b);
  return std::max(std::fabs(slope - ours) / (1 + std::fabs(ours)),
                  std::fabs(slope2 - ours2) / (1 + std::fabs(ours2)));
}

}  // namespace

int main() {
  double worst = 0;
  int tried = 0;
  while (tried < 240) {
    Setting setting;
    if (!Draw(&setting)) continue;
    const double error = Try(setting, tried % 3);
    if (error < 0) return 1;
    worst = std::max(worst, error);
    ++tried;
  }
  std::printf("%d settings, worst error %.3g\n", tried, worst);
  return worst < 1e-6 ? 0 : 2;
}
