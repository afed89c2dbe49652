// Every check of a convolution's arguments when it runs, in TensorFlow's order and words. Where
// TensorFlow's kernels crash, or ignore what they were given, the words are those of the Python
// library.
#ifndef CONVGRAD_CC_CONVOLUTION_CHECKS_H_
#define CONVGRAD_CC_CONVOLUTION_CHECKS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "convgrad/cc/attributes.h"
#include "convgrad/cc/convolution.h"
#include "convgrad/cc/status.h"
#include "convgrad/cc/tensor_shape.h"

namespace convgrad {
namespace detail {

// What an operation is, and what TensorFlow's kernels call it and its sizes.
struct ConvRow {
  const char* op;
  std::int32_t kind;
  bool depthwise;
  const char* label;        // of its kernel
  const char* sizes_label;  // where the vector of sizes is refused
};

constexpr ConvRow kConvRows[] = {
    {"Conv2D", CG_FORWARD, false, "", ""},
    {"Conv2DBackpropInput", CG_INPUT_GRADIENT, false, "Conv2DCustomBackpropInput",
     "Conv2DBackpropInput"},
    {"Conv2DBackpropFilter", CG_FILTER_GRADIENT, false, "Conv2DCustomBackpropFilter",
     "Conv2DCustomBackpropFilter"},
    {"DepthwiseConv2dNative", CG_FORWARD, true, "", ""},
    {"DepthwiseConv2dNativeBackpropInput", CG_INPUT_GRADIENT, true, "DepthwiseConv2DBackpropInput",
     "Conv2DBackpropInput"},
    {"DepthwiseConv2dNativeBackpropFilter", CG_FILTER_GRADIENT, true,
     "DepthwiseConv2DBackpropFilter", "Conv2DBackpropFilter"},
};

constexpr std::int64_t kLargestInt32 = std::numeric_limits<std::int32_t>::max();

inline std::string ListText(const std::vector<std::int64_t>& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(list[i]);
  }
  return text + "]";
}

inline std::string SizesText(const FourSizes& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "[" : ",") + std::to_string(size);
  return text + "]";
}

// TensorFlow keeps strides and dilations in 32 bits.
inline Status CheckInt32(const char* name, const std::vector<std::int64_t>& list) {
  for (const std::int64_t number : list) {
    if (number > kLargestInt32 || number < std::numeric_limits<std::int32_t>::min()) {
      return errors::InvalidArgument("Attr ", name, " has value ", number,
                                     " out of range for an int32");
    }
  }
  return Status();
}

// The words that both shape rules and kernels have for explicit paddings.
inline Status CheckPaddings(const Attributes& attrs, bool nhwc) {
  const std::vector<std::int64_t>& pads = attrs.Ints("explicit_paddings");
  if (attrs.String("padding") != "EXPLICIT") {
    if (pads.empty()) return Status();
    return errors::InvalidArgument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  if (pads.size() != 8) {
    return errors::InvalidArgument("explicit_paddings attribute must contain 8 values, but got: ",
                                   pads.size());
  }
  for (const std::int64_t pad : pads) {
    if (pad < 0) {
      return errors::InvalidArgument("All elements of explicit_paddings must be nonnegative");
    }
  }
  const std::size_t channels = nhwc ? 6 : 2;
  if (pads[0] != 0 || pads[1] != 0 || pads[channels] != 0 || pads[channels + 1] != 0) {
    return errors::InvalidArgument(
        "Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
  return Status();
}

// One of strides and dilations, as a kernel reads it.
inline Status ReadSteps(const ConvRow& row, const Attributes& attrs, const char* name, bool nhwc,
                        const char* too_small, std::int64_t* to) {
  const std::vector<std::int64_t>& list = attrs.Ints(name);
  TF_RETURN_IF_ERROR(CheckInt32(name, list));
  if (list.size() != 4) {
    return errors::InvalidArgument("Sliding window ", name, " field must specify 4 dimensions");
  }
  if (list[0] != 1 || list[nhwc ? 3 : 1] != 1) {
    const auto words = strings::StrCat("Current implementation does not yet support ", name,
                                       " in the batch and depth dimensions.");
    return row.depthwise || row.kind == CG_FILTER_GRADIENT ? errors::InvalidArgument(words)
                                                           : errors::Unimplemented(words);
  }
  to[0] = list[nhwc ? 1 : 2];
  to[1] = list[nhwc ? 2 : 3];
  if (to[0] < 1 || to[1] < 1) return errors::InvalidArgument(too_small);
  return Status();
}

inline Status ReadSettings(const ConvRow& row, const Attributes& attrs, ConvSettings* to) {
  const std::string& format = attrs.String("data_format");
  if (format != "NHWC" && format != "NCHW") return errors::InvalidArgument("Invalid data format");
  to->nhwc = format == "NHWC";
  TF_RETURN_IF_ERROR(ReadSteps(row, attrs, "strides", to->nhwc,
                               "Row and column strides should be larger than 0.", to->strides));
  TF_RETURN_IF_ERROR(ReadSteps(row, attrs, "dilations", to->nhwc,
                               "Dilated rates should be larger than 0.", to->dilations));
  TF_RETURN_IF_ERROR(CheckPaddings(attrs, to->nhwc));
  const std::string& padding = attrs.String("padding");
  if (padding == "SAME") {
    to->padding = PaddingKind::kSame;
  } else if (padding == "VALID") {
    to->padding = PaddingKind::kValid;
  } else if (padding == "EXPLICIT") {
    to->padding = PaddingKind::kExplicit;
    const std::vector<std::int64_t>& pads = attrs.Ints("explicit_paddings");
    const std::size_t rows = to->nhwc ? 2 : 4;
    for (std::size_t i = 0; i < 4; ++i) {
      to->pads[i / 2][i % 2] = pads[rows + i];
    }
  } else {
    return errors::InvalidArgument(row.op, ": `padding` must be 'SAME', 'VALID' or 'EXPLICIT', got '",
                                   padding, "'.");
  }
  return Status();
}

inline Status SolveRowsOrColumns(const ConvRow& row, const ConvSettings& settings, int at,
                                 std::int64_t size, std::int64_t window, Axis* axis) {
  axis->size = size;
  axis->window = window;
  axis->stride = settings.strides[at];
  axis->dilation = settings.dilations[at];
  axis->before = settings.pads[at][0];
  axis->after = settings.pads[at][1];
  for (const std::int64_t pad : settings.pads[at]) {
    if (pad > kLargestInt32) {
      return errors::InvalidArgument(row.op, ": all elements of `explicit_paddings` must be below ",
                                     "2**31, got ", pad, ".");
    }
  }
  if (!SolveAxis(settings.padding, axis)) {
    return errors::InvalidArgument(row.op, ": ", at == 0 ? "rows" : "columns",
                                   " plus padding and reach must stay below 2**62 (input ", size,
                                   ", filter ", window, ", stride ", axis->stride, ", dilation ",
                                   axis->dilation, ").");
  }
  if (axis->out < 0) {
    return errors::InvalidArgument("Computed output size would be negative: ", axis->out,
                                   " [input_size: ", size, ", effective_filter_size: ", axis->reach,
                                   ", stride: ", axis->stride, "]");
  }
  return Status();
}

// Elements are counted in 63 bits, bytes too.
inline Status CheckElements(const FourSizes& shape, std::int64_t itemsize) {
  std::int64_t bytes = itemsize;
  for (const std::int64_t size : shape) {
    if (!CheckedMultiply(bytes, size > 0 ? size : 1, &bytes)) {
      return errors::InvalidArgument("Shape ", SizesText(shape),
                                     " would have more than 2**63 - 1 elements");
    }
  }
  return Status();
}

// How many groups there are, and whether the channels fit together.
inline Status CheckChannels(const ConvRow& row, std::int64_t in_c, const FourSizes& filter,
                            cg_problem* to) {
  const std::int64_t depth = filter[2];
  const bool forward = row.kind == CG_FORWARD;
  to->in_c = in_c;
  if (row.depthwise) {
    if (in_c != depth) {
      if (!forward) {
        return errors::InvalidArgument(row.label, ": input and filter must have the same in_depth");
      }
      return errors::InvalidArgument("input and filter must have the same depth: ", in_c, " vs ",
                                     depth);
    }
    to->groups = in_c;
    if (!CheckedMultiply(in_c, filter[3], &to->out_c)) {
      return errors::InvalidArgument("Encountered overflow when multiplying ", in_c, " with ",
                                     filter[3], ", result: -1");
    }
    return Status();
  }
  if (depth < 1) {
    if (!forward) {
      return errors::InvalidArgument(row.label, ": filter depth must be strictly greated than zero");
    }
    return errors::InvalidArgument("filter depth must be stricly positive, got ", depth);
  }
  if (in_c % depth != 0) {
    if (!forward) {
      return errors::InvalidArgument(row.label,
                                     ": input depth must be evenly divisible by filter depth");
    }
    return errors::InvalidArgument("input depth must be evenly divisible by filter depth: ", in_c,
                                   " vs ", depth);
  }
  if (in_c < 1) {  // TensorFlow would divide by the number of groups
    return errors::InvalidArgument(row.op, ": `",
                                   row.kind == CG_INPUT_GRADIENT ? "input_sizes" : "input",
                                   "` must have at least 1 channel, got 0.");
  }
  to->groups = in_c / depth;
  to->out_c = filter[3];
  return Status();
}

// TensorFlow's forward kernel refuses an empty window, and its depthwise ones read past the filter.
inline Status CheckWindow(const ConvRow& row, const FourSizes& filter) {
  if (filter[0] > 0 && filter[1] > 0) return Status();
  if (row.depthwise) {
    return errors::InvalidArgument(
        row.op, ": `", row.kind == CG_FILTER_GRADIENT ? "filter_sizes" : "filter",
        "` must have at least 1 row and 1 column, got shape ",
        ListText({filter[0], filter[1], filter[2], filter[3]}), ".");
  }
  if (row.kind != CG_FORWARD) return Status();
  return errors::InvalidArgument(
      "filter must not have zero elements (i.e. all dimensions must be non-zero)");
}

inline Status CheckGradient(const ConvRow& row, const ConvSettings& settings,
                            const Convolution& conv, const FourSizes& grad) {
  for (int axis = 0; axis < 2; ++axis) {
    const Axis& solved = axis == 0 ? conv.rows : conv.cols;
    const int at = settings.rows_at() + axis;
    const std::int64_t size = grad[static_cast<std::size_t>(at)];
    if (size == solved.out) continue;
    if (row.depthwise) {
      return errors::InvalidArgument(row.label, ": Number of ", axis == 0 ? "rows" : "cols",
                                     " of out_backprop doesn't match computed: actual = ", size,
                                     ", computed = ", solved.out);
    }
    return errors::InvalidArgument(row.label, ": Size of out_backprop doesn't match computed: ",
                                   "actual = ", size, ", computed = ", solved.out,
                                   " spatial_dim: ", at, " input: ", solved.size, " filter: ",
                                   solved.window, " output: ", size, " stride: ", solved.stride,
                                   " dilation: ", solved.dilation);
  }
  return Status();
}

// Checks four sizes each against each other and describes the convolution; `grad` is null forward.
inline Status BuildConvolution(const ConvRow& row, const ConvSettings& settings, DataType dtype,
                               const FourSizes& input, const FourSizes& filter,
                               const FourSizes* grad, Convolution* to) {
  const auto channels_at = static_cast<std::size_t>(settings.channels_at());
  const auto rows_at = static_cast<std::size_t>(settings.rows_at());
  cg_problem& p = to->problem;
  p.kind = row.kind;
  p.dtype = static_cast<std::int32_t>(dtype);
  p.layout = settings.nhwc ? CG_NHWC : CG_NCHW;
  p.depthwise = row.depthwise ? 1 : 0;
  p.batch = input[0];
  if (grad != nullptr && (*grad)[0] != p.batch) {
    const auto words = strings::StrCat(row.label,
                                       ": input and out_backprop must have the same batch size");
    if (row.depthwise) return errors::InvalidArgument(words);
    return errors::InvalidArgument(words, ". Input batch: ", p.batch, ", outbackprop batch: ",
                                   (*grad)[0], ", batch_dim: 0");
  }
  TF_RETURN_IF_ERROR(CheckChannels(row, input[channels_at], filter, &p));
  if (grad != nullptr && (*grad)[channels_at] != p.out_c) {
    return errors::InvalidArgument(
        row.label, row.depthwise ? ": depth_multiplier * in_depth not equal to out_depth"
                                 : ": filter and out_backprop must have the same out_depth");
  }
  to->multiplier = filter[3];
  TF_RETURN_IF_ERROR(
      SolveRowsOrColumns(row, settings, 0, input[rows_at], filter[0], &to->rows));
  TF_RETURN_IF_ERROR(
      SolveRowsOrColumns(row, settings, 1, input[rows_at + 1], filter[1], &to->cols));
  if (grad != nullptr) TF_RETURN_IF_ERROR(CheckGradient(row, settings, *to, *grad));
  TF_RETURN_IF_ERROR(CheckWindow(row, filter));
  if (!row.depthwise && p.out_c % p.groups != 0) {
    return errors::InvalidArgument("output depth must be evenly divisible by number of groups: ",
                                   p.out_c, " vs ", p.groups);
  }
  p.in_h = to->rows.size;
  p.in_w = to->cols.size;
  p.filter_h = to->rows.window;
  p.filter_w = to->cols.window;
  p.stride_h = to->rows.stride;
  p.stride_w = to->cols.stride;
  p.dilation_h = to->rows.dilation;
  p.dilation_w = to->cols.dilation;
  p.pad_top = to->rows.before;
  p.pad_bottom = to->rows.after;
  p.pad_left = to->cols.before;
  p.pad_right = to->cols.after;
  const std::int64_t itemsize = DataTypeSize(dtype);
  TF_RETURN_IF_ERROR(CheckElements(to->InputShape(), itemsize));
  TF_RETURN_IF_ERROR(CheckElements(to->FilterShape(), itemsize));
  return CheckElements(to->OutputShape(), itemsize);
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_CONVOLUTION_CHECKS_H_
