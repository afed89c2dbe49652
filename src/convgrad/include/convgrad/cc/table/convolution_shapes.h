// Shapes of convolutions before they run: TensorFlow's rules, step by step, so that the first thing
// that is wrong has TensorFlow's words.
#ifndef CONVGRAD_CC_TABLE_CONVOLUTION_SHAPES_H_
#define CONVGRAD_CC_TABLE_CONVOLUTION_SHAPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convgrad/cc/convolution_checks.h"
#include "convgrad/cc/op_row.h"

namespace convgrad {
namespace detail {
namespace table {

// ---- Sizes that may be unknown ----

inline Status AddSizes(std::int64_t a, std::int64_t b, std::int64_t* sum) {
  *sum = kUnknown;
  if (a == kUnknown) return Status();
  // In unsigned numbers, which may wrap around; a negative sum is what has.
  *sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  if (*sum >= 0) return Status();
  return errors::InvalidArgument("Dimension size overflow from adding ", a, " and ", b);
}

inline Status SubtractSizes(std::int64_t a, std::int64_t b, std::int64_t* rest) {
  *rest = kUnknown;
  if (a == kUnknown || b == kUnknown) return Status();
  *rest = a - b;
  if (a >= b) return Status();
  return errors::InvalidArgument("Negative dimension size caused by subtracting ", b, " from ", a);
}

inline Status MultiplySizes(std::int64_t a, std::int64_t b, std::int64_t* product) {
  *product = kUnknown;
  if (a == 0 || b == 0) {
    *product = 0;
    return Status();
  }
  if (a == kUnknown || b == kUnknown) return Status();
  if (CheckedMultiply(a, b, product)) return Status();
  return errors::InvalidArgument("Negative dimension size caused by overflow when multiplying ", a,
                                 " and ", b);
}

inline Status MergeSizes(std::int64_t a, std::int64_t b, std::int64_t* both) {
  *both = a == kUnknown ? b : a;
  if (a == b || a == kUnknown || b == kUnknown) return Status();
  return errors::InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
}

inline Status CheckRank(const PartialTensorShape& shape, int rank) {
  if (shape.dims() < 0 || shape.dims() == rank) return Status();
  return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", shape.dims());
}

inline Status FourSizesOf(const PartialTensorShape& shape, FourSizes* to) {
  TF_RETURN_IF_ERROR(CheckRank(shape, 4));
  for (int i = 0; i < 4; ++i) {
    (*to)[static_cast<std::size_t>(i)] = shape.dims() < 0 ? kUnknown : shape.dim_size(i);
  }
  return Status();
}

inline Status SetOutput(InferenceContext* context, const FourSizes& shape) {
  Spec& output = context->output(0);
  output.dtype = BaseType(context->input(context->num_inputs() - 1).dtype);
  output.shape = PartialTensorShape({shape[0], shape[1], shape[2], shape[3]});
  return Status();
}

// ---- Forward ----

struct WindowRule {
  std::int64_t stride, dilation;
  const std::string& padding;
  std::int64_t before, after;
};

inline Status WindowedSize(std::int64_t size, std::int64_t window, const WindowRule& rule,
                           std::int64_t* out) {
  if (rule.stride <= 0) {
    return errors::InvalidArgument("Stride must be > 0, but got ", rule.stride);
  }
  if (rule.dilation < 1) {
    return errors::InvalidArgument("Dilation rate must be >= 1, but got ", rule.dilation);
  }
  if (rule.padding == "SAME") {
    TF_RETURN_IF_ERROR(AddSizes(size, rule.stride - 1, out));
  } else {
    const auto pads = static_cast<std::int64_t>(static_cast<std::uint64_t>(rule.before) +
                                                static_cast<std::uint64_t>(rule.after));
    TF_RETURN_IF_ERROR(AddSizes(size, pads, &size));
    std::int64_t reach = window;
    if (rule.dilation > 1) {
      TF_RETURN_IF_ERROR(SubtractSizes(window, 1, &reach));
      TF_RETURN_IF_ERROR(MultiplySizes(reach, rule.dilation, &reach));
      TF_RETURN_IF_ERROR(AddSizes(reach, 1, &reach));
    }
    TF_RETURN_IF_ERROR(SubtractSizes(size, reach, out));
    TF_RETURN_IF_ERROR(AddSizes(*out, rule.stride, out));
  }
  if (*out != kUnknown) *out /= rule.stride;
  return Status();
}

// Whether strides and dilations are four 32-bit numbers.
inline Status CheckFourSteps(const Attributes& attrs, const char* name, const std::string& who) {
  const std::vector<std::int64_t>& list = attrs.Ints(name);
  TF_RETURN_IF_ERROR(CheckInt32(name, list));
  if (list.size() == 4) return Status();
  return errors::InvalidArgument(who, " attribute to contain 4 values, but got: ", list.size());
}

inline Status DenseDepths(std::int64_t in_c, const FourSizes& filter) {
  const std::int64_t depth = filter[2], out_c = filter[3];
  if (in_c == kUnknown || depth == kUnknown) return Status();
  if (depth == 0) return errors::InvalidArgument("Depth of filter must not be 0");
  if (in_c % depth != 0) {
    return errors::InvalidArgument("Depth of input (", in_c,
                                   ") is not a multiple of input depth of filter (", depth, ")");
  }
  const std::int64_t groups = in_c / depth;
  if (groups == 0) return errors::InvalidArgument("Number of groups must not be 0");
  if (out_c != kUnknown && out_c % groups != 0) {
    return errors::InvalidArgument("Depth of output (", out_c,
                                   ") is not a multiple of the number of groups (", groups, ")");
  }
  return Status();
}

inline Status InferForward(InferenceContext* context, bool depthwise) {
  const Attributes& attrs = context->attrs();
  FourSizes input{}, filter{};
  TF_RETURN_IF_ERROR(FourSizesOf(context->input(0).shape, &input));
  TF_RETURN_IF_ERROR(FourSizesOf(context->input(1).shape, &filter));
  const std::string& format = attrs.String("data_format");
  if (depthwise) {
    TF_RETURN_IF_ERROR(CheckFourSteps(attrs, "strides", "DepthwiseConv2D requires the stride"));
    TF_RETURN_IF_ERROR(
        CheckFourSteps(attrs, "dilations", "DepthwiseConv2D requires the dilations"));
  } else {
    TF_RETURN_IF_ERROR(CheckFourSteps(attrs, "dilations", "Conv2D requires the dilation"));
    TF_RETURN_IF_ERROR(CheckFourSteps(
        attrs, "strides", "Conv2D on data format " + format + " requires the stride"));
  }
  const bool nhwc = format == "NHWC";
  const std::size_t channels_at = nhwc ? 3 : 1, rows_at = nhwc ? 1 : 2;
  FourSizes result{};
  result[0] = input[0];
  result[channels_at] = filter[3];
  if (depthwise) {
    std::int64_t depth = kUnknown;
    TF_RETURN_IF_ERROR(MergeSizes(input[channels_at], filter[2], &depth));
    TF_RETURN_IF_ERROR(MultiplySizes(depth, filter[3], &result[channels_at]));
  } else {
    TF_RETURN_IF_ERROR(DenseDepths(input[channels_at], filter));
  }
  TF_RETURN_IF_ERROR(CheckPaddings(attrs, nhwc));
  const std::vector<std::int64_t>& pads = attrs.Ints("explicit_paddings");
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::size_t at = rows_at + axis;
    const WindowRule rule{attrs.Ints("strides")[at], attrs.Ints("dilations")[at],
                          attrs.String("padding"), pads.empty() ? 0 : pads[2 * at],
                          pads.empty() ? 0 : pads[2 * at + 1]};
    TF_RETURN_IF_ERROR(WindowedSize(input[at], filter[axis], rule, &result[at]));
  }
  return SetOutput(context, result);
}

// ---- Gradients ----

// Reads a vector that holds sizes, -1 being one that is unknown. The count is kUnknown where even
// that is; more than four sizes are counted only.
inline Status SizesOf(const Spec& vector, std::int64_t* count, FourSizes* sizes) {
  TF_RETURN_IF_ERROR(CheckRank(vector.shape, 1));
  *count = vector.shape.dims() < 0 ? kUnknown : vector.shape.dim_size(0);
  sizes->fill(kUnknown);
  if (!vector.numbers) return Status();
  *count = static_cast<std::int64_t>(vector.numbers->size());
  for (std::size_t i = 0; i < vector.numbers->size() && i < 4; ++i) {
    const std::int64_t number = (*vector.numbers)[i];
    (*sizes)[i] = number == kUnknownNumber ? kUnknown : number;
  }
  return Status();
}

inline Status CheckNumbers(const Spec& vector) {
  if (!vector.numbers) return Status();
  for (const std::int64_t number : *vector.numbers) {
    if (number < -1 && number != kUnknownNumber) {
      return errors::InvalidArgument("Invalid value in tensor used for shape: ", number);
    }
  }
  return Status();
}

// The gradient of a dense convolution's input. Its sizes may be rows and columns alone.
inline Status InferInputGradient(InferenceContext* context) {
  const bool nhwc = context->attrs().String("data_format") == "NHWC";
  const std::size_t channels_at = nhwc ? 3 : 1, rows_at = nhwc ? 1 : 2;
  FourSizes filter{}, grad{}, given{}, result{};
  TF_RETURN_IF_ERROR(FourSizesOf(context->input(2).shape, &grad));
  TF_RETURN_IF_ERROR(FourSizesOf(context->input(1).shape, &filter));
  std::int64_t merged = kUnknown, count = kUnknown;
  TF_RETURN_IF_ERROR(MergeSizes(grad[channels_at], filter[3], &merged));
  TF_RETURN_IF_ERROR(SizesOf(context->input(0), &count, &given));
  if (count != kUnknown && count != 2 && count != 4) {
    return errors::InvalidArgument(
        "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: ", count);
  }
  TF_RETURN_IF_ERROR(CheckNumbers(context->input(0)));
  if (count == 2) {
    result[rows_at] = given[0];
    result[rows_at + 1] = given[1];
    result[channels_at] = filter[2];
    result[0] = grad[0];
  } else {
    result = given;
    TF_RETURN_IF_ERROR(MergeSizes(given[0], grad[0], &result[0]));
  }
  return SetOutput(context, result);
}

// A gradient whose shape is a vector of four sizes; nothing else is looked at before it runs.
inline Status InferFromSizes(InferenceContext* context, int at) {
  std::int64_t count = kUnknown;
  FourSizes sizes{};
  TF_RETURN_IF_ERROR(SizesOf(context->input(at), &count, &sizes));
  if (count != kUnknown && count != 4) {
    return errors::InvalidArgument("Shape must be rank 4 but is rank ", count);
  }
  TF_RETURN_IF_ERROR(CheckNumbers(context->input(at)));
  return SetOutput(context, sizes);
}

inline Status InferConv2D(InferenceContext* c) { return InferForward(c, false); }
inline Status InferConv2DBackpropInput(InferenceContext* c) { return InferInputGradient(c); }
inline Status InferConv2DBackpropFilter(InferenceContext* c) { return InferFromSizes(c, 1); }
inline Status InferDepthwiseConv2dNative(InferenceContext* c) { return InferForward(c, true); }
inline Status InferDepthwiseConv2dNativeBackpropInput(InferenceContext* c) {
  return InferFromSizes(c, 0);
}
inline Status InferDepthwiseConv2dNativeBackpropFilter(InferenceContext* c) {
  return InferFromSizes(c, 1);
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_CONVOLUTION_SHAPES_H_
