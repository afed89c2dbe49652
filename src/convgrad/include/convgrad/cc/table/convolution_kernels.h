// Kernels of the six operations: reading tensors, and handing them to packs or plain loops.
#ifndef CONVGRAD_CC_TABLE_CONVOLUTION_KERNELS_H_
#define CONVGRAD_CC_TABLE_CONVOLUTION_KERNELS_H_

#include <cstdint>

#include "convgrad/cc/convolution_checks.h"
#include "convgrad/cc/op_row.h"
#include "convgrad/cc/packs.h"
#include "convgrad/cc/tensor.h"

namespace convgrad {
namespace detail {
namespace table {

inline FourSizes FourOf(const TensorShape& shape) {
  return {shape.dim_size(0), shape.dim_size(1), shape.dim_size(2), shape.dim_size(3)};
}

// The numbers of a vector of sizes; more than 4 are counted only.
struct SizesGiven {
  std::int64_t count = 0;
  FourSizes sizes = {0, 0, 0, 0};
};

inline Status ReadSizes(const ConvRow& row, const char* name, const Tensor& tensor,
                        SizesGiven* to) {
  if (tensor.dims() != 1) {
    return errors::InvalidArgument(row.sizes_label, ": ", name, " input must be 1-dim, not ",
                                   tensor.dims());
  }
  to->count = tensor.dim_size(0);
  const bool dense_input = row.kind == CG_INPUT_GRADIENT && !row.depthwise;
  if (dense_input && to->count != 4 && to->count != 2) {
    return errors::InvalidArgument(
        "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: ",
        to->count);
  }
  for (std::int64_t i = 0; i < to->count; ++i) {
    const std::int64_t size =
        tensor.dtype() == DT_INT64
            ? static_cast<const std::int64_t*>(tensor.data())[i]
            : std::int64_t{static_cast<const std::int32_t*>(tensor.data())[i]};
    if (i < 4) to->sizes[static_cast<std::size_t>(i)] = size;
    if (size >= 0 || (dense_input && to->count == 2)) continue;  // two have words of their own
    if (!row.depthwise) return errors::InvalidArgument("Dimension ", size, " must be >= 0");
    return errors::InvalidArgument("Dimension ", i, " of ", name, " must be >= 0");
  }
  return to->count == 4 ? CheckElements(to->sizes, 1) : Status();
}

inline Status FourDimensions(const ConvRow& row, const char* name, const TensorShape& shape) {
  if (shape.dims() == 4) return Status();
  return errors::InvalidArgument(row.label, ": ", name, " must be 4-dimensional");
}

// Reads the shapes of a forward operation and refuses those of other ranks.
inline Status ForwardShapes(KernelContext* context, const ConvRow& row, FourSizes* input,
                            FourSizes* filter) {
  const TensorShape& x = context->input(0).shape();
  const TensorShape& f = context->input(1).shape();
  const char* const who = row.depthwise ? "" : "convolution ";
  if (x.dims() != 4) {
    return errors::InvalidArgument(who, "input must be 4-dimensional", row.depthwise ? "" : ": ",
                                   x.DebugString());
  }
  if (f.dims() != 4) {
    return errors::InvalidArgument(who, "filter must be 4-dimensional: ", f.DebugString());
  }
  *input = FourOf(x);
  *filter = FourOf(f);
  return Status();
}

inline Status InputGradientShapes(KernelContext* context, const ConvRow& row, bool nhwc,
                                  FourSizes* input, FourSizes* filter) {
  const TensorShape& f = context->input(1).shape();
  const TensorShape& g = context->input(2).shape();
  if (!row.depthwise && g.dims() != 4) {
    return errors::InvalidArgument("input_sizes must be 4-dimensional, got: ", g.dims());
  }
  SizesGiven given;
  TF_RETURN_IF_ERROR(ReadSizes(row, "input_sizes", context->input(0), &given));
  if (row.depthwise && given.count != 4) {
    return errors::InvalidArgument(row.label, ": input must be 4-dimensional");
  }
  TF_RETURN_IF_ERROR(FourDimensions(row, "filter", f));
  TF_RETURN_IF_ERROR(FourDimensions(row, "out_backprop", g));
  *filter = FourOf(f);
  *input = given.sizes;
  if (given.count == 2) {
    const std::int64_t rows = given.sizes[0], cols = given.sizes[1];
    if (rows < 0 || cols < 0) {
      return errors::InvalidArgument("Conv2DBackpropInput: elements of input_sizes must be >= 0, ",
                                     "not ", rows, "x", cols);
    }
    // One group: the channels are the filter's.
    *input = nhwc ? FourSizes{g.dim_size(0), rows, cols, f.dim_size(2)}
                  : FourSizes{g.dim_size(0), f.dim_size(2), rows, cols};
    return CheckElements(*input, 1);
  }
  return Status();
}

inline Status FilterGradientShapes(KernelContext* context, const ConvRow& row, FourSizes* input,
                                   FourSizes* filter) {
  const TensorShape& x = context->input(0).shape();
  SizesGiven given;
  TF_RETURN_IF_ERROR(ReadSizes(row, "filter_sizes", context->input(1), &given));
  TF_RETURN_IF_ERROR(FourDimensions(row, "input", x));
  if (given.count != 4) {
    return errors::InvalidArgument(row.label, ": filter must be 4-dimensional");
  }
  TF_RETURN_IF_ERROR(FourDimensions(row, "out_backprop", context->input(2).shape()));
  *input = FourOf(x);
  *filter = given.sizes;
  return Status();
}

template <int kRow>
Status ComputeConvolution(KernelContext* context) {
  constexpr ConvRow row = kConvRows[kRow];
  ConvSettings settings;
  TF_RETURN_IF_ERROR(ReadSettings(row, context->attrs(), &settings));
  FourSizes input{}, filter{}, grad{};
  if (row.kind == CG_FORWARD) {
    TF_RETURN_IF_ERROR(ForwardShapes(context, row, &input, &filter));
  } else if (row.kind == CG_INPUT_GRADIENT) {
    TF_RETURN_IF_ERROR(InputGradientShapes(context, row, settings.nhwc, &input, &filter));
  } else {
    TF_RETURN_IF_ERROR(FilterGradientShapes(context, row, &input, &filter));
  }
  const int last = row.kind == CG_FORWARD ? 1 : 2;
  if (last == 2) grad = FourOf(context->input(2).shape());
  const DataType dtype = context->input(last).dtype();
  Convolution conv;
  TF_RETURN_IF_ERROR(BuildConvolution(row, settings, dtype, input, filter,
                                      last == 2 ? &grad : nullptr, &conv));
  const FourSizes shape = conv.ResultShape();
  Tensor* result = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(
      0, dtype, TensorShape({shape[0], shape[1], shape[2], shape[3]}), &result));
  const Tensor& first = context->input(row.kind == CG_INPUT_GRADIENT ? 1 : 0);
  return RunConvolution(conv, first.data(), context->input(last).data(), result->data(),
                        result->TotalBytes(), context->threads());
}

inline Status ComputeConv2D(KernelContext* c) { return ComputeConvolution<0>(c); }
inline Status ComputeConv2DBackpropInput(KernelContext* c) { return ComputeConvolution<1>(c); }
inline Status ComputeConv2DBackpropFilter(KernelContext* c) { return ComputeConvolution<2>(c); }
inline Status ComputeDepthwiseConv2dNative(KernelContext* c) { return ComputeConvolution<3>(c); }
inline Status ComputeDepthwiseConv2dNativeBackpropInput(KernelContext* c) {
  return ComputeConvolution<4>(c);
}
inline Status ComputeDepthwiseConv2dNativeBackpropFilter(KernelContext* c) {
  return ComputeConvolution<5>(c);
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_CONVOLUTION_KERNELS_H_
