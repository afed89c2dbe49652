// Sizes and pads along one spatial axis, and which taps of a window read which cells.
//
// With input size n, window k, stride s and dilation d, a window spans reach = (k - 1) * d + 1 cells:
//
//   padding   output size                        cells added before / after
//   VALID     trunc((n - reach + s) / s)         0 / 0
//   EXPLICIT  trunc((n + a + b - reach + s) / s) a / b
//   SAME      ceil(n / s)                        t / 2, t - t / 2; t = max(0, (out-1)*s + reach - n)
//
// Tap t of output i reads cell i*s + t*d - before. All numbers are 64 bits wide, and every sum and
// product is checked before it is made: strides, dilations and pads are below 2^31, and a solved axis
// keeps below 2^62.
#ifndef CONVGRAD_CC_GEOMETRY_H_
#define CONVGRAD_CC_GEOMETRY_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace convgrad {
namespace detail {

// a + b and a * b, or false where 64 bits do not hold them.
inline bool CheckedAdd(std::int64_t a, std::int64_t b, std::int64_t* sum) {
  if (b > 0 ? a > std::numeric_limits<std::int64_t>::max() - b
            : a < std::numeric_limits<std::int64_t>::min() - b) {
    return false;
  }
  *sum = a + b;
  return true;
}

// For b >= 0.
inline bool CheckedMultiply(std::int64_t a, std::int64_t b, std::int64_t* product) {
  if (b != 0 && (a > std::numeric_limits<std::int64_t>::max() / b ||
                 a < std::numeric_limits<std::int64_t>::min() / b)) {
    return false;
  }
  *product = a * b;
  return true;
}

enum class PaddingKind { kSame, kValid, kExplicit };

// One spatial axis of a convolution, solved.
struct Axis {
  std::int64_t size = 0, window = 0, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0, out = 0;
  std::int64_t reach = 0;
};

constexpr std::int64_t kLargestReach = std::int64_t{1} << 62;

// Solves an axis whose size and window are >= 0, stride and dilation from 1 and pads from 0 to
// 2^31 - 1. False where size, pads and reach together do not stay below 2^62. `out` is negative
// where there is no output.
inline bool SolveAxis(PaddingKind padding, Axis* axis) {
  const std::int64_t n = axis->size, k = axis->window, s = axis->stride, d = axis->dilation;
  if (n >= kLargestReach || k >= kLargestReach) return false;
  if (!CheckedMultiply(k - 1, d, &axis->reach) || axis->reach >= kLargestReach) return false;
  axis->reach += 1;
  if (padding == PaddingKind::kSame) {
    axis->out = n / s + (n % s != 0 ? 1 : 0);
    const std::int64_t total =
        std::max<std::int64_t>(0, (axis->out - 1) * s - n + axis->reach);  // (out-1)*s - n < 0
    axis->before = total / 2;
    axis->after = total - total / 2;
  } else {
    if (padding == PaddingKind::kValid) axis->before = axis->after = 0;
    axis->out = (n + axis->before + axis->after - axis->reach + s) / s;
    if (axis->out < 0) return true;
  }
  std::int64_t sum = 0;
  return CheckedAdd(n, axis->before + axis->after, &sum) && CheckedAdd(sum, axis->reach, &sum) &&
         sum < kLargestReach;
}

// Taps of a window and the cells they read, as two arithmetic progressions.
struct Reads {
  std::int64_t tap = 0, tap_step = 1;
  std::int64_t cell = 0, cell_step = 0;
  std::int64_t count = 0;
};

inline std::int64_t CeilDivide(std::int64_t a, std::int64_t b) {  // a, b > 0
  return (a - 1) / b + 1;
}

// Which cells of the source one index of the destination adds up, along an axis. Taps in the padding
// are left out, so that the work does not grow with the window alone.
class AxisReads {
 public:
  // Forward, outputs read cells of the input. Backward, cells of the input read outputs.
  AxisReads(const Axis& axis, bool backward) : axis_(axis), backward_(backward) {
    if (!backward) return;
    const std::int64_t divisor = Divisor(axis.stride, axis.dilation);
    step_ = axis.stride / divisor;
    divisor_ = divisor;
    inverse_ = Inverse((axis.dilation / divisor) % step_, step_);
  }

  Reads operator()(std::int64_t index) const {
    return backward_ ? OfCell(index) : OfOutput(index);
  }

 private:
  static std::int64_t Divisor(std::int64_t a, std::int64_t b) {
    while (b != 0) {
      const std::int64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }

  // The x in [0, modulus) with a * x = 1, for a that shares no divisor with it.
  static std::int64_t Inverse(std::int64_t a, std::int64_t modulus) {
    std::int64_t r0 = modulus, r1 = a, x0 = 0, x1 = 1;
    while (r1 != 0) {
      const std::int64_t times = r0 / r1, r = r0 - times * r1, x = x0 - times * x1;
      r0 = r1;
      r1 = r;
      x0 = x1;
      x1 = x;
    }
    return modulus == 1 ? 0 : (x0 < 0 ? x0 + modulus : x0);
  }

  Reads OfOutput(std::int64_t output) const {
    const std::int64_t shift = output * axis_.stride - axis_.before, d = axis_.dilation;
    const std::int64_t last = axis_.size - 1 - shift;  // t * d must not be more
    if (last < 0) return Reads{};
    const std::int64_t first = shift >= 0 ? 0 : CeilDivide(-shift, d);
    const std::int64_t end = std::min(axis_.window, last / d + 1);
    if (first >= end) return Reads{};
    return Reads{first, 1, shift + first * d, d, end - first};
  }

  // Tap t reads output (cell + before - t*d) / s, where that is a whole number.
  Reads OfCell(std::int64_t cell) const {
    const std::int64_t place = cell + axis_.before, s = axis_.stride, d = axis_.dilation;
    if (axis_.out < 1 || place % divisor_ != 0) return Reads{};
    const std::int64_t over = place - (axis_.out - 1) * s;
    const std::int64_t lowest = over > 0 ? CeilDivide(over, d) : 0;
    const std::int64_t end = std::min(axis_.window, place / d + 1);
    const std::int64_t rest = (place / divisor_) % step_ * inverse_ % step_;
    const std::int64_t first = lowest + (rest - lowest % step_ + step_) % step_;
    if (first >= end) return Reads{};
    return Reads{first, step_, (place - first * d) / s, -(d / divisor_),
                 (end - 1 - first) / step_ + 1};
  }

  Axis axis_;
  bool backward_;
  std::int64_t step_ = 1, divisor_ = 1, inverse_ = 0;
};

// Outputs [first, last) for which a tap lies inside the image, and the cell that the first one reads.
struct Span {
  std::int64_t first = 0, last = 0, start = 0;
};

inline Span TapSpan(const Axis& axis, std::int64_t tap) {
  const std::int64_t shift = tap * axis.dilation - axis.before;
  const std::int64_t room = axis.size - 1 - shift;
  const std::int64_t first = shift >= 0 ? 0 : CeilDivide(-shift, axis.stride);
  const std::int64_t last = room < 0 ? 0 : std::min(axis.out, room / axis.stride + 1);
  if (first >= last) return Span{};
  return Span{first, last, first * axis.stride + shift};
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_GEOMETRY_H_
