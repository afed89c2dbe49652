// MaxPool, its gradient, and the gradient of that: three ways to follow the largest cell of every window.
//
// Of equal cells the first in row-major order counts, as in TensorFlow. What is no number is the largest, and equal to
// nothing: no gradient goes through such a window.
#ifndef CONVGRAD_CC_TABLE_POOLING_H_
#define CONVGRAD_CC_TABLE_POOLING_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

// One direction of a pooling's settings.
struct PoolSide {
  std::int64_t window = 1, stride = 1, before = 0, after = 0;
  bool same = false;

  // Outputs for a size, negative where no window fits, and the cells added before the first.
  std::int64_t Out(std::int64_t size) const {
    if (same) return size / stride + (size % stride != 0 ? 1 : 0);
    const std::int64_t room = size + before + after - window + stride;
    return room / stride;  // towards zero
  }
  std::int64_t Before(std::int64_t size) const {
    if (!same) return before;
    const std::int64_t total = (Out(size) - 1) * stride - size + window;
    return total > 0 ? total / 2 : 0;
  }
};

struct PoolWindows {
  std::size_t rows = 1;  // the dimension that rows are; columns follow
  PoolSide sides[2];
};

constexpr std::int64_t kLargestInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kLargestPooled = std::int64_t{1} << 60;  // sums of sizes stay within 64 bits

inline Status ReadPoolPads(const Attributes& attrs, std::size_t rows, PoolWindows* found) {
  const std::string& padding = attrs.String("padding");
  const Sizes& pads = attrs.Ints("explicit_paddings");
  if (padding != "EXPLICIT") {
    if (padding != "SAME" && padding != "VALID") {
      return errors::InvalidArgument("Value for attr 'padding' of \"", padding,
                                     "\" is not in the list of allowed values: \"SAME\", "
                                     "\"VALID\", \"EXPLICIT\"");
    }
    if (!pads.empty()) {
      return errors::InvalidArgument(
          "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
    }
    for (PoolSide& side : found->sides) side.same = padding == "SAME";
    return Status();
  }
  if (pads.size() != 8) {
    return errors::InvalidArgument("explicit_paddings attribute must contain 8 values, but got: ",
                                   pads.size());
  }
  for (std::size_t at = 0; at < 8; ++at) {
    if (pads[at] < 0) {
      return errors::InvalidArgument("All elements of explicit_paddings must be nonnegative");
    }
    if (pads[at] > kLargestInt32) {
      return errors::InvalidArgument("All elements of explicit_paddings must be below 2**31");
    }
    if (pads[at] != 0 && (at / 2 < rows || at / 2 > rows + 1)) {
      return errors::InvalidArgument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
  }
  static constexpr const char* kNames[2][2] = {{"Top", "Bottom"}, {"Left", "Right"}};
  for (std::size_t number = 0; number < 2; ++number) {
    PoolSide& side = found->sides[number];
    side.before = pads[2 * (rows + number)];
    side.after = pads[2 * (rows + number) + 1];
    if (std::max(side.before, side.after) >= side.window) {  // or windows would be empty
      const std::size_t which = side.before >= side.window ? 0 : 1;
      return errors::InvalidArgument(kNames[number][which], " padding ",
                                     which == 0 ? side.before : side.after,
                                     " needs to be smaller than the window size ", side.window);
    }
  }
  return Status();
}

inline Status ReadWindows(const Attributes& attrs, PoolWindows* found) {
  const Sizes &ksize = attrs.Ints("ksize"), &strides = attrs.Ints("strides");
  const std::string& layout = attrs.String("data_format");
  if (layout != "NHWC" && layout != "NCHW") {
    return errors::InvalidArgument("Invalid data format string: ", layout);
  }
  const std::size_t rows = layout == "NHWC" ? 1 : 2, channel = rows == 1 ? 3 : 1;
  if (strides.size() != 4) {
    return errors::InvalidArgument(
        "Sliding window strides field must specify 4 dimensions, but got: ", strides.size());
  }
  if (ksize.size() != 4) {
    return errors::InvalidArgument(
        "Sliding window ksize field must specify 4 dimensions, but got: ", ksize.size());
  }
  for (const std::int64_t stride : strides) {
    if (stride < 1) return errors::InvalidArgument("Stride must be > 0, but got ", stride);
    if (stride > kLargestInt32) {
      return errors::InvalidArgument("Stride must be below 2**31, but got ", stride);
    }
  }
  for (const std::int64_t size : ksize) {
    if (size < 1) {
      return errors::InvalidArgument("Sliding window ksize must be positive, but got ", size);
    }
    if (size > kLargestPooled) {
      return errors::InvalidArgument("Sliding window ksize must be below 2**60, but got ", size);
    }
  }
  if (ksize[0] != 1 || strides[0] != 1) {
    return errors::Unimplemented("Pooling is not yet supported on the batch dimension.");
  }
  if (ksize[channel] != 1 || strides[channel] != 1) {
    return errors::Unimplemented(
        "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
  }
  found->rows = rows;
  for (std::size_t number = 0; number < 2; ++number) {
    found->sides[number].window = ksize[rows + number];
    found->sides[number].stride = strides[rows + number];
  }
  return ReadPoolPads(attrs, rows, found);
}

// The shape of the pooled image, as far as it is known.
inline Status PooledSizes(const PoolWindows& windows, Sizes* sizes) {
  for (std::size_t number = 0; number < 2; ++number) {
    const PoolSide& side = windows.sides[number];
    std::int64_t& size = (*sizes)[windows.rows + number];
    if (size < 0) continue;
    if (size > kLargestPooled) {
      return errors::InvalidArgument("Pooled sizes must be below 2**60, but got ", size);
    }
    const std::int64_t out = side.Out(size);
    if (out < 0) {
      return errors::InvalidArgument("Computed output size would be negative: ", out,
                                     " [input_size: ", size + side.before + side.after,
                                     ", effective_filter_size: ", side.window,
                                     ", stride: ", side.stride, "]");
    }
    size = out;
  }
  return Status();
}

// As TensorFlow's rule says what the kernel calls a negative output.
inline Status InferPooled(InferenceContext* c, Sizes* pooled) {
  PoolWindows windows;
  TF_RETURN_IF_ERROR(OfRank(c, 0, 4, pooled));
  TF_RETURN_IF_ERROR(ReadWindows(c->attrs(), &windows));
  for (std::size_t number = 0; number < 2; ++number) {
    const PoolSide& side = windows.sides[number];
    const std::int64_t size = (*pooled)[windows.rows + number];
    if (size < 0 || size > kLargestPooled || side.Out(size) >= 0) continue;
    return errors::InvalidArgument("Negative dimension size caused by subtracting ", side.window,
                                   " from ", size + side.before + side.after);
  }
  return PooledSizes(windows, pooled);
}

inline Status InferMaxPool(InferenceContext* c) {
  Sizes pooled;
  TF_RETURN_IF_ERROR(InferPooled(c, &pooled));
  return Result(c, c->input(0).dtype, pooled);
}

inline Status InferMaxPoolGrad(InferenceContext* c) {
  Sizes pooled;
  MaybeSizes merged;
  TF_RETURN_IF_ERROR(InferPooled(c, &pooled));
  TF_RETURN_IF_ERROR(Merge(SizesOf(c->input(1).shape), pooled, &merged));
  TF_RETURN_IF_ERROR(Merge(SizesOf(c->input(2).shape), pooled, &merged));
  return InferSame(c);
}

inline Status InferMaxPoolGradGrad(InferenceContext* c) {
  Sizes pooled;
  MaybeSizes result, merged;
  TF_RETURN_IF_ERROR(InferPooled(c, &pooled));
  TF_RETURN_IF_ERROR(Merge(SizesOf(c->input(1).shape), pooled, &result));
  TF_RETURN_IF_ERROR(Merge(SizesOf(c->input(0).shape), SizesOf(c->input(2).shape), &merged));
  return Result(c, c->input(0).dtype, result);
}

// An image as planes of rows and columns: NHWC has a step between columns, NCHW has planes one behind another.
struct PoolImage {
  std::int64_t batch, height, width, channels, out_height, out_width;
  bool last;  // whether channels are
  PoolSide rows, columns;

  std::int64_t In(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t ch) const {
    return last ? ((n * height + h) * width + w) * channels + ch
                : ((n * channels + ch) * height + h) * width + w;
  }
  std::int64_t Out(std::int64_t n, std::int64_t p, std::int64_t q, std::int64_t ch) const {
    return last ? ((n * out_height + p) * out_width + q) * channels + ch
                : ((n * channels + ch) * out_height + p) * out_width + q;
  }
};

// Cells [first, last) of the image that window `at` covers.
struct PoolSpan {
  std::int64_t first, last;
  PoolSpan(const PoolSide& side, std::int64_t size, std::int64_t at) {
    const std::int64_t start = at * side.stride - side.Before(size);
    first = std::max<std::int64_t>(start, 0);
    last = std::min(start + side.window, size);
  }
};

inline Status ReadImage(KernelContext* c, PoolImage* image, Sizes* pooled) {
  const Tensor& x = c->input(0);
  PoolWindows windows;
  if (x.dims() != 4) return errors::InvalidArgument("tensor_in must be 4-dimensional");
  TF_RETURN_IF_ERROR(ReadWindows(c->attrs(), &windows));
  *pooled = SizesOf(x);
  TF_RETURN_IF_ERROR(PooledSizes(windows, pooled));
  const std::size_t rows = windows.rows;
  const Sizes sizes = SizesOf(x);
  *image = PoolImage{sizes[0],           sizes[rows],     sizes[rows + 1],  sizes[rows == 1 ? 3 : 1],
                     (*pooled)[rows],    (*pooled)[rows + 1], rows == 1,
                     windows.sides[0],   windows.sides[1]};
  return Status();
}

// Calls f(batch, out row, out column, rows, columns) for every window, the last first: a cell then sums what its
// windows give in the order of the taps it is seen through.
template <class F>
void EachWindow(const PoolImage& image, F f) {
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t p = image.out_height; p-- > 0;) {
      const PoolSpan rows(image.rows, image.height, p);
      for (std::int64_t q = image.out_width; q-- > 0;) {
        const PoolSpan columns(image.columns, image.width, q);
        f(n, p, q, rows, columns);
      }
    }
  }
}

template <class T>
T LowestOf() {
  if constexpr (kIsFloat<T>) {
    return static_cast<T>(-std::numeric_limits<WorkingType<T>>::infinity());
  } else {
    return std::numeric_limits<T>::min();
  }
}

template <class T>
using Ordered = std::conditional_t<kIsFloat<T>, WorkingType<T>, T>;

inline Status ComputeMaxPool(KernelContext* c) {
  const Tensor& x = c->input(0);
  PoolImage image;
  Sizes pooled;
  TensorShape shape;
  TF_RETURN_IF_ERROR(ReadImage(c, &image, &pooled));
  TF_RETURN_IF_ERROR(MakeShape(pooled, &shape));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), shape, &out));
  if (out->NumElements() == 0) return Status();
  return ForNumbers(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using W = Ordered<T>;
    const T* from = Data<T>(x);
    T* to = MutableData<T>(out);
    EachWindow(image, [&](std::int64_t n, std::int64_t p, std::int64_t q, const PoolSpan& rows,
                          const PoolSpan& columns) {
      for (std::int64_t ch = 0; ch < image.channels; ++ch) {
        W largest = static_cast<W>(LowestOf<T>());
        for (std::int64_t h = rows.first; h < rows.last; ++h) {
          for (std::int64_t w = columns.first; w < columns.last; ++w) {
            const W cell = static_cast<W>(from[image.In(n, h, w, ch)]);
            // Once it is no number it stays so.
            if (!(cell <= largest) && largest == largest) largest = cell;
          }
        }
        to[image.Out(n, p, q, ch)] = static_cast<T>(largest);
      }
    });
    return Status();
  });
}

inline Status CheckPoolShapes(KernelContext* c, const Sizes& pooled, const Sizes& grad) {
  static constexpr const char* kNames[] = {"orig_input", "orig_output", "grad"};
  for (int input = 1; input < 3; ++input) {
    const Sizes& wanted = input == 1 ? pooled : grad;
    const Sizes given = SizesOf(c->input(input));
    if (given != wanted) {
      return errors::InvalidArgument("Expected ", kNames[input], " shape to be ", Text(wanted),
                                     ", but got ", Text(given));
    }
  }
  return Status();
}

// Calls f(cell, window) with the first cell that equals the window's output.
template <class T, class F>
void EachLargest(const PoolImage& image, const T* x, const T* y, F f) {
  using W = Ordered<T>;
  EachWindow(image, [&](std::int64_t n, std::int64_t p, std::int64_t q, const PoolSpan& rows,
                        const PoolSpan& columns) {
    for (std::int64_t ch = 0; ch < image.channels; ++ch) {
      const std::int64_t window = image.Out(n, p, q, ch);
      const W largest = static_cast<W>(y[window]);
      bool found = false;
      for (std::int64_t h = rows.first; h < rows.last && !found; ++h) {
        for (std::int64_t w = columns.first; w < columns.last && !found; ++w) {
          const std::int64_t cell = image.In(n, h, w, ch);
          found = static_cast<W>(x[cell]) == largest;
          if (found) f(cell, window);
        }
      }
    }
  });
}

inline Status ComputeMaxPoolGrad(KernelContext* c) {
  const Tensor &x = c->input(0), &y = c->input(1), &g = c->input(2);
  PoolImage image;
  Sizes pooled;
  TF_RETURN_IF_ERROR(ReadImage(c, &image, &pooled));
  TF_RETURN_IF_ERROR(CheckPoolShapes(c, pooled, pooled));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), x.shape(), &out));
  if (out->NumElements() == 0) return Status();
  return ForNumbers(x.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    using W = WorkingType<T>;
    Scratch<W> sums(out->NumElements());
    TF_RETURN_IF_ERROR(sums.status());
    EachLargest(image, Data<T>(x), Data<T>(y), [&](std::int64_t cell, std::int64_t window) {
      sums.data()[cell] += static_cast<W>(Data<T>(g)[window]);
    });
    T* to = MutableData<T>(out);
    for (std::int64_t i = 0; i < out->NumElements(); ++i) to[i] = static_cast<T>(sums.data()[i]);
    return Status();
  });
}

inline Status ComputeMaxPoolGradGrad(KernelContext* c) {
  const Tensor &x = c->input(0), &y = c->input(1), &g = c->input(2);
  PoolImage image;
  Sizes pooled;
  TF_RETURN_IF_ERROR(ReadImage(c, &image, &pooled));
  TF_RETURN_IF_ERROR(CheckPoolShapes(c, pooled, SizesOf(x)));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, y.dtype(), y.shape(), &out));
  return ForNumbers(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = MutableData<T>(out);
    std::fill(to, to + out->NumElements(), T(Ordered<T>(0)));
    if (x.NumElements() == 0) return Status();
    EachLargest(image, Data<T>(x), Data<T>(y), [&](std::int64_t cell, std::int64_t window) {
      to[window] = Data<T>(g)[cell];
    });
    return Status();
  });
}

inline Status GradMaxPool(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                          std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "MaxPoolGrad", {op.input(0), op.output(0), grads[0]},
                                  op.node()->attrs())});
}

inline Status GradMaxPoolGrad(const Scope& scope, const Operation& op,
                              const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output to_grad = AddOp(scope, "MaxPoolGradGrad", {op.input(0), op.input(1), grads[0]},
                               op.node()->attrs());
  return Grads(scope, out, {Output(), Output(), to_grad});
}

inline Status GradMaxPoolGradGrad(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output to_grad = AddOp(scope, "MaxPoolGrad", {op.input(0), op.input(1), grads[0]},
                               op.node()->attrs());
  return Grads(scope, out, {Output(), Output(), to_grad});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_POOLING_H_
