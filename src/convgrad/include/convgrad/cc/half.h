// half and bfloat16: two bytes in memory, float in arithmetic.
#ifndef CONVGRAD_CC_HALF_H_
#define CONVGRAD_CC_HALF_H_

#include <cstdint>
#include <cstring>
#include <ostream>
#include <type_traits>

#include "convgrad/cc/config.h"

#ifdef CONVGRAD_WITH_EIGEN
#include <Eigen/Core>
#endif

namespace convgrad {
namespace detail {

inline std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float FloatOf(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to nearest, ties to even, with subnormal numbers and infinities.
inline std::uint16_t HalfFromFloat(float value) {
  const std::uint32_t bits = BitsOf(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t rest = bits & 0x7fffffffu;
  if (rest >= 0x7f800000u) {  // infinity, or no number: kept quiet
    const std::uint32_t payload = rest > 0x7f800000u ? 0x200u | ((rest >> 13) & 0x3ffu) : 0u;
    return static_cast<std::uint16_t>(sign | 0x7c00u | payload);
  }
  if (rest >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {  // below 2^-14: the sum's last bits are the rounded result
    const float sum = FloatOf(rest) + 0.5f;
    return static_cast<std::uint16_t>(sign | (BitsOf(sum) - 0x3f000000u));
  }
  rest += 0xfffu + ((rest >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rest - 0x38000000u) >> 13));
}

inline float FloatFromHalf(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return FloatOf(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest >= 0x400u) return FloatOf(sign | ((rest << 13) + 0x38000000u));
  const float small = static_cast<float>(rest) * 5.9604644775390625e-8f;  // times 2^-24
  return sign ? -small : small;
}

// A float that rounds to the half the double rounds to: cut off, its last bit says whether anything
// was.
inline float OddFloat(double value) {
  const float near = static_cast<float>(value);
  if (static_cast<double>(near) == value || value != value) return near;
  std::uint32_t bits = BitsOf(near);
  const double size = value < 0 ? -value : value;
  if (static_cast<double>(FloatOf(bits & 0x7fffffffu)) > size) bits -= 1;
  return FloatOf(bits | 1u);
}

inline std::uint16_t BfloatFromFloat(float value) {
  const std::uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | 0x7fc0u);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detail

#ifdef CONVGRAD_WITH_EIGEN
using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;
#else

namespace detail {

// What both have: conversions from any number and to any number, through float; comparisons and +=
// on float.
template <class Self>
struct Narrow {
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  explicit operator T() const {
    return static_cast<T>(AsFloat());
  }
  friend Self operator+(Self a, Self b) { return Self(a.AsFloat() + b.AsFloat()); }
  friend Self operator-(Self a, Self b) { return Self(a.AsFloat() - b.AsFloat()); }
  friend Self operator*(Self a, Self b) { return Self(a.AsFloat() * b.AsFloat()); }
  friend Self operator/(Self a, Self b) { return Self(a.AsFloat() / b.AsFloat()); }
  friend Self operator-(Self a) { return Self(-a.AsFloat()); }
  friend Self& operator+=(Self& a, Self b) { return a = a + b; }
  friend Self& operator-=(Self& a, Self b) { return a = a - b; }
  friend Self& operator*=(Self& a, Self b) { return a = a * b; }
  friend Self& operator/=(Self& a, Self b) { return a = a / b; }
  friend bool operator==(Self a, Self b) { return a.AsFloat() == b.AsFloat(); }
  friend bool operator!=(Self a, Self b) { return a.AsFloat() != b.AsFloat(); }
  friend bool operator<(Self a, Self b) { return a.AsFloat() < b.AsFloat(); }
  friend bool operator<=(Self a, Self b) { return a.AsFloat() <= b.AsFloat(); }
  friend bool operator>(Self a, Self b) { return a.AsFloat() > b.AsFloat(); }
  friend bool operator>=(Self a, Self b) { return a.AsFloat() >= b.AsFloat(); }
  friend std::ostream& operator<<(std::ostream& stream, Self a) { return stream << a.AsFloat(); }

 private:
  float AsFloat() const { return static_cast<const Self*>(this)->ToFloat(); }
};

}  // namespace detail

struct half : detail::Narrow<half> {
  half() = default;
  explicit half(float value) : x(detail::HalfFromFloat(value)) {}
  explicit half(double value) : x(detail::HalfFromFloat(detail::OddFloat(value))) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  explicit half(T value) : half(static_cast<double>(value)) {}
  float ToFloat() const { return detail::FloatFromHalf(x); }

  std::uint16_t x = 0;
};

struct bfloat16 : detail::Narrow<bfloat16> {
  bfloat16() = default;
  explicit bfloat16(float number) : value(detail::BfloatFromFloat(number)) {}
  explicit bfloat16(double number) : bfloat16(static_cast<float>(number)) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  explicit bfloat16(T number) : bfloat16(static_cast<float>(number)) {}
  float ToFloat() const { return detail::FloatOf(static_cast<std::uint32_t>(value) << 16); }

  std::uint16_t value = 0;
};

#endif  // CONVGRAD_WITH_EIGEN

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2, "two bytes each");

}  // namespace convgrad

#endif  // CONVGRAD_CC_HALF_H_
