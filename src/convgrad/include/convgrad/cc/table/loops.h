// Loops over elements: one way to choose a type, one to walk two operands that repeat, one to sum along axes.
//
// What depends on the type is a short loop behind a function pointer; walking is compiled once.
#ifndef CONVGRAD_CC_TABLE_LOOPS_H_
#define CONVGRAD_CC_TABLE_LOOPS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "convgrad/cc/table/rules.h"

namespace convgrad {
namespace detail {
namespace table {

using Half = EnumToDataType<DT_HALF>::Type;
using Bfloat16 = EnumToDataType<DT_BFLOAT16>::Type;

template <class T>
const T* Data(const Tensor& tensor) {
  return static_cast<const T*>(static_cast<const void*>(tensor.data()));
}
template <class T>
T* MutableData(Tensor* tensor) {
  return static_cast<T*>(tensor->data());
}

inline Status NoSuchType(DataType dtype) {
  return errors::Unimplemented("There is no kernel for ", DataTypeString(dtype));
}

template <class F>
Status ForFloats(DataType dtype, F f) {
  switch (dtype) {
    case DT_HALF: return f(Half());
    case DT_BFLOAT16: return f(Bfloat16());
    case DT_FLOAT: return f(float());
    case DT_DOUBLE: return f(double());
    default: return NoSuchType(dtype);
  }
}

template <class F>
Status ForIntegers(DataType dtype, F f) {
  switch (dtype) {
    case DT_INT8: return f(std::int8_t());
    case DT_INT16: return f(std::int16_t());
    case DT_INT32: return f(std::int32_t());
    case DT_INT64: return f(std::int64_t());
    case DT_UINT8: return f(std::uint8_t());
    case DT_UINT16: return f(std::uint16_t());
    case DT_UINT32: return f(std::uint32_t());
    case DT_UINT64: return f(std::uint64_t());
    default: return NoSuchType(dtype);
  }
}

template <class F>
Status ForNumbers(DataType dtype, F f) {
  return IsFloat(dtype) ? ForFloats(dtype, f) : ForIntegers(dtype, f);
}

// By the bytes of an element: what is only moved needs four kinds of loops.
template <class F>
Status ForWidth(DataType dtype, F f) {
  switch (DataTypeSize(dtype)) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    case 8: return f(std::uint64_t());
    default: return NoSuchType(dtype);
  }
}

// Floats, and integers without their sign: sums and products have the same bits with and without it.
template <class F>
Status ForArithmetic(DataType dtype, F f) {
  return IsFloat(dtype) ? ForFloats(dtype, f) : ForWidth(dtype, f);
}

// What numbers are computed in: half and bfloat16 in float, integers where nothing overflows.
template <class T>
struct Working {
  using Integer = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
  using Type = std::conditional_t<
      std::is_same_v<T, float> || std::is_same_v<T, double>, T,
      std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, float, Integer>>;
};
template <class T>
using WorkingType = typename Working<T>::Type;

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<WorkingType<T>>;

// As NumPy converts: once to half, through float to bfloat16.
template <class T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else if constexpr (std::is_same_v<T, Half>) {
    return static_cast<Half>(OddFloat(value));
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

// Towards zero. What does not fit becomes what x86's instructions make of it: the smallest number of 32 or 64 bits, of
// which a shorter type keeps the low bits.
template <class T>
T ToInteger(double value) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (value >= 9223372036854775808.0 && value < 18446744073709551616.0) {
      return static_cast<std::uint64_t>(value);
    }
  }
  if constexpr (std::is_same_v<T, std::int32_t> || sizeof(T) < 4) {
    const bool fits = value > -2147483649.0 && value < 2147483648.0;
    return static_cast<T>(fits ? static_cast<std::int32_t>(value)
                               : std::numeric_limits<std::int32_t>::min());
  } else {
    const bool fits = value >= -9223372036854775808.0 && value < 9223372036854775808.0;
    return static_cast<T>(fits ? static_cast<std::int64_t>(value)
                               : std::numeric_limits<std::int64_t>::min());
  }
}

// Memory between input and output; nothing where there is none.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : memory_(new (std::nothrow) T[static_cast<std::size_t>(count)]()), count_(count) {}
  T* data() { return memory_.get(); }
  Status status() const {
    if (memory_ != nullptr) return Status();
    return errors::ResourceExhausted("OOM when allocating ", count_ * std::int64_t{sizeof(T)},
                                     " bytes of scratch");
  }

 private:
  std::unique_ptr<T[]> memory_;
  std::int64_t count_;
};

// One dimension of a walk over two operands: steps are 0 where an operand is repeated.
struct WalkAxis {
  std::int64_t size, x_step, y_step;
};

// Dimensions of two operands that broadcast to `out`, joined where memory is.
inline std::vector<WalkAxis> WalkAxes(const Sizes& x, const Sizes& y, const Sizes& out) {
  std::vector<WalkAxis> axes;  // the last dimension first
  std::int64_t x_step = 1, y_step = 1;
  for (std::size_t back = 1; back <= out.size(); ++back) {
    const std::int64_t size = out[out.size() - back];
    const std::int64_t xs = back <= x.size() ? x[x.size() - back] : 1;
    const std::int64_t ys = back <= y.size() ? y[y.size() - back] : 1;
    const WalkAxis axis{size, xs == 1 ? 0 : x_step, ys == 1 ? 0 : y_step};
    x_step *= xs;
    y_step *= ys;
    if (size == 1) continue;
    if (!axes.empty()) {
      WalkAxis& last = axes.back();
      if (axis.x_step == last.x_step * last.size && axis.y_step == last.y_step * last.size) {
        last.size *= size;
        continue;
      }
    }
    axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

// Calls f(x offset, y offset, out offset) for every run of the innermost dimension.
template <class F>
void Walk(const std::vector<WalkAxis>& axes, F f) {
  for (const WalkAxis& axis : axes) {
    if (axis.size == 0) return;
  }
  std::vector<std::int64_t> at(axes.size(), 0);
  std::int64_t x = 0, y = 0, out = 0;
  for (;;) {
    f(x, y, out);
    out += axes[0].size;
    std::size_t axis = 1;
    for (; axis < axes.size(); ++axis) {
      x += axes[axis].x_step;
      y += axes[axis].y_step;
      if (++at[axis] < axes[axis].size) break;
      x -= axes[axis].x_step * axes[axis].size;
      y -= axes[axis].y_step * axes[axis].size;
      at[axis] = 0;
    }
    if (axis == axes.size()) return;
  }
}

// A run of `count` elements; a step is 0 or 1.
using BinaryRun = void (*)(const void* x, std::int64_t x_step, const void* y, std::int64_t y_step,
                           void* out, std::int64_t count);

inline void RunBinary(const Tensor& x, const Sizes& x_sizes, const Tensor& y, const Sizes& y_sizes,
                      Tensor* out, BinaryRun run) {
  if (out->NumElements() == 0) return;
  const std::vector<WalkAxis> axes = WalkAxes(x_sizes, y_sizes, SizesOf(*out));
  const char* xs = Data<char>(x);
  const char* ys = Data<char>(y);
  char* zs = MutableData<char>(out);
  const std::int64_t in = DataTypeSize(x.dtype()), to = DataTypeSize(out->dtype());
  Walk(axes, [&](std::int64_t x_at, std::int64_t y_at, std::int64_t z_at) {
    run(xs + x_at * in, axes[0].x_step, ys + y_at * in, axes[0].y_step, zs + z_at * to,
        axes[0].size);
  });
}

// F::Of takes two numbers of the working type, or a number and a constant operand hoisted by the compiler.
template <class T, class Z, class F>
void BinaryLoop(const void* xs, std::int64_t x_step, const void* ys, std::int64_t y_step, void* zs,
                std::int64_t count) {
  using W = std::conditional_t<F::kSigned && !kIsFloat<T>, T, WorkingType<T>>;
  const T* x = static_cast<const T*>(xs);
  const T* y = static_cast<const T*>(ys);
  Z* z = static_cast<Z*>(zs);
  if (x_step == 0) {
    const W a = static_cast<W>(x[0]);
    for (std::int64_t i = 0; i < count; ++i) {
      z[i] = static_cast<Z>(F::Of(a, static_cast<W>(y[i * y_step])));
    }
  } else if (y_step == 0) {
    const W b = static_cast<W>(y[0]);
    for (std::int64_t i = 0; i < count; ++i) z[i] = static_cast<Z>(F::Of(static_cast<W>(x[i]), b));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      z[i] = static_cast<Z>(F::Of(static_cast<W>(x[i]), static_cast<W>(y[i])));
    }
  }
}

// Repeats cells of some sizes to the shape of `out`; the caller has checked that they can be.
template <class T>
Status RepeatCells(const T* from, const Sizes& sizes, Tensor* out) {
  if (out->NumElements() == 0) return Status();
  const std::vector<WalkAxis> axes = WalkAxes(sizes, sizes, SizesOf(*out));
  T* to = MutableData<T>(out);
  Walk(axes, [&](std::int64_t at, std::int64_t, std::int64_t out_at) {
    T* run = to + out_at;
    const std::int64_t step = axes[0].x_step;
    for (std::int64_t i = 0; i < axes[0].size; ++i) run[i] = from[at + i * step];
  });
  return Status();
}

inline Status Repeat(const Tensor& x, const Sizes& sizes, Tensor* out) {
  return ForWidth(x.dtype(), [&](auto zero) {
    return RepeatCells(Data<decltype(zero)>(x), sizes, out);
  });
}

// Sums: floats in double, integers in 64 bits, of which the type's own are kept.
template <class T>
using SumType = std::conditional_t<kIsFloat<T>, double, std::uint64_t>;

// Adds what f makes of every element to sums[its place along the axes that are kept].
template <class T, class F>
void SumAlong(const T* x, const Sizes& sizes, const Sizes& axes, SumType<T>* sums, F f) {
  Sizes kept = sizes;
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  const std::vector<WalkAxis> walk = WalkAxes(sizes, kept, sizes);
  Walk(walk, [&](std::int64_t, std::int64_t to, std::int64_t from) {
    const T* run = x + from;
    if (walk[0].y_step == 0) {
      SumType<T> sum = 0;
      for (std::int64_t i = 0; i < walk[0].size; ++i) sum += f(run[i]);
      sums[to] += sum;
    } else {
      for (std::int64_t i = 0; i < walk[0].size; ++i) sums[to + i] += f(run[i]);
    }
  });
}

template <class T>
SumType<T> Summand(T x) {
  return static_cast<SumType<T>>(static_cast<WorkingType<T>>(x));
}

// A sum in its type: through float to half and bfloat16, as NumPy keeps their sums in float.
template <class T>
T Rounded(SumType<T> sum) {
  if constexpr (kIsFloat<T>) {
    return static_cast<T>(static_cast<WorkingType<T>>(sum));
  } else {
    return static_cast<T>(sum);
  }
}

// Sums a tensor along axes, rounded once at the end.
inline Status SumInto(const Tensor& x, const Sizes& axes, Tensor* out) {
  return ForArithmetic(x.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    Scratch<SumType<T>> sums(out->NumElements());
    TF_RETURN_IF_ERROR(sums.status());
    SumAlong(Data<T>(x), SizesOf(x), axes, sums.data(), Summand<T>);
    T* to = MutableData<T>(out);
    for (std::int64_t i = 0; i < out->NumElements(); ++i) to[i] = Rounded<T>(sums.data()[i]);
    return Status();
  });
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_LOOPS_H_
