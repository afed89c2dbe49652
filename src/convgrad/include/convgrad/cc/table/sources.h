// Ops without tensors before them: constants, placeholders, random numbers, ranges.
#ifndef CONVGRAD_CC_TABLE_SOURCES_H_
#define CONVGRAD_CC_TABLE_SOURCES_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "convgrad/cc/philox.h"
#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline Status InferConst(InferenceContext* c) {
  const Tensor& value = c->attrs().Value("value");
  TF_RETURN_IF_ERROR(Result(c, value.dtype(), SizesOf(value)));
  if (IsIndex(value.dtype()) && value.dims() <= 1 && value.NumElements() <= kMostNumbers) {
    c->output(0).numbers = Integers(value);
  }
  return Status();
}

inline Status ComputeConst(KernelContext* c) {
  c->set_output(0, c->attrs().Value("value"));
  return Status();
}

inline Status InferPlaceholder(InferenceContext* c) { return InferAttribute(c); }

inline Status InferRandom(InferenceContext* c) {
  const DataType dtype = c->attrs().Type("dtype");
  if (!IsFloat(dtype)) {
    return errors::InvalidArgument("Value for attr 'dtype' of ", DataTypeString(dtype),
                                   " is not in the list of allowed values: half, bfloat16, float, "
                                   "double");
  }
  MaybeSizes sizes;
  TF_RETURN_IF_ERROR(ShapeVector(c, 0, &sizes));
  return Result(c, dtype, sizes);
}

// The checksum of zlib, a bit at a time: names are short.
inline std::uint32_t Crc32(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char letter : text) {
    crc ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// Numbers from [0, 1): as many bits of a word as the type's fraction has.
inline float UniformFloat(Philox* source) {
  return FloatOf((source->Next() & 0x7FFFFFu) | 0x3F800000u) - 1.0f;
}

inline double UniformDouble(Philox* source) {
  const std::uint64_t high = source->Next() & 0xFFFFFu;
  const std::uint64_t bits = (std::uint64_t{1023} << 52) | (high << 32) | source->Next();
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value - 1.0;
}

template <class T>
void FillUniform(Philox* source, T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, double>) {
      out[i] = UniformDouble(source);
    } else if constexpr (std::is_same_v<T, float>) {
      out[i] = UniformFloat(source);
    } else {  // a fraction of 10 or 7 bits, exactly
      constexpr std::uint32_t kOne = std::is_same_v<T, Half> ? 1u << 10 : 1u << 7;
      out[i] = static_cast<T>(static_cast<float>(source->Next() & (kOne - 1)) /
                              static_cast<float>(kOne));
    }
  }
}

// By Box and Muller's formula from pairs of uniform numbers, in double.
template <class T>
void FillNormal(Philox* source, T* out, std::int64_t count) {
  constexpr double kTurn = 6.283185307179586476925286766559;
  for (std::int64_t i = 0; i < count; i += 2) {
    double first, second;
    if constexpr (std::is_same_v<T, double>) {
      first = UniformDouble(source);
      second = UniformDouble(source);
    } else {
      first = static_cast<double>(UniformFloat(source));
      second = static_cast<double>(UniformFloat(source));
    }
    const double radius = std::sqrt(-2.0 * std::log(first < 1.0e-7 ? 1.0e-7 : first));
    const double angle = kTurn * second;
    out[i] = FromDouble<T>(std::sin(angle) * radius);
    if (i + 1 < count) out[i + 1] = FromDouble<T>(std::cos(angle) * radius);
  }
}

inline Status ComputeRandom(KernelContext* c, bool normal) {
  Sizes sizes;
  TensorShape shape;
  TF_RETURN_IF_ERROR(ShapeInput(c->input(0), &sizes));
  TF_RETURN_IF_ERROR(MakeShape(sizes, &shape));
  const DataType dtype = c->attrs().Type("dtype");
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, dtype, shape, &out));
  std::int64_t seed = c->attrs().Int("seed");
  const std::int64_t seed2 = c->attrs().Int("seed2");
  // TensorFlow takes the clock; the name gives every node its own numbers, and the same again.
  if (seed == 0 && seed2 == 0) seed = Crc32(c->node_name());
  Philox source(seed, seed2);
  return ForFloats(dtype, [&](auto zero) {
    using T = decltype(zero);
    if (normal) {
      FillNormal(&source, MutableData<T>(out), out->NumElements());
    } else {
      FillUniform(&source, MutableData<T>(out), out->NumElements());
    }
    return Status();
  });
}

inline Status InferRandomNormal(InferenceContext* c) { return InferRandom(c); }
inline Status InferRandomUniform(InferenceContext* c) { return InferRandom(c); }
inline Status ComputeRandomNormal(KernelContext* c) { return ComputeRandom(c, true); }
inline Status ComputeRandomUniform(KernelContext* c) { return ComputeRandom(c, false); }

// How many numbers a range has.
template <class T>
Status RangeSize(T start, T limit, T delta, std::int64_t* size) {
  if (!(delta > T(0)) && !(delta < T(0)) && delta == T(0)) {
    return errors::InvalidArgument("Requires delta != 0: ", delta);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta)) {
      return errors::InvalidArgument("Requires finite start, limit and delta: ", start, "/", limit,
                                     "/", delta);
    }
  }
  if (delta > T(0) && start > limit) {
    return errors::InvalidArgument("Requires start <= limit when delta > 0: ", start, "/", limit);
  }
  if (delta < T(0) && start < limit) {
    return errors::InvalidArgument("Requires start >= limit when delta < 0: ", start, "/", limit);
  }
  bool fits;
  if constexpr (std::is_floating_point_v<T>) {
    const double count = std::ceil(std::fabs((limit - start) / delta));
    fits = count < 9223372036854775808.0;
    *size = fits ? static_cast<std::int64_t>(count) : 0;
  } else {  // without signs nothing overflows
    const std::uint64_t from = static_cast<std::uint64_t>(start);
    const std::uint64_t to = static_cast<std::uint64_t>(limit);
    const std::uint64_t step = delta < T(0) ? 0 - static_cast<std::uint64_t>(delta)
                                            : static_cast<std::uint64_t>(delta);
    const std::uint64_t span = delta < T(0) ? from - to : to - from;
    const std::uint64_t count = span / step + (span % step != 0 ? 1 : 0);
    fits = count <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    *size = fits ? static_cast<std::int64_t>(count) : 0;
  }
  if (fits) return Status();
  return errors::InvalidArgument("Requires ((limit - start) / delta) <= ",
                                 std::numeric_limits<std::int64_t>::max());
}

inline Status InferRange(InferenceContext* c) {
  for (int input = 0; input < 3; ++input) TF_RETURN_IF_ERROR(IsScalar(c, input));
  const DataType dtype = c->input(0).dtype;
  const auto start = Number(c->input(0)), limit = Number(c->input(1)), delta = Number(c->input(2));
  if (!start || !limit || !delta) return Result(c, dtype, Sizes{kUnknown});
  std::int64_t size = 0;
  TF_RETURN_IF_ERROR(RangeSize(*start, *limit, *delta, &size));
  TF_RETURN_IF_ERROR(Result(c, dtype, Sizes{size}));
  if (size <= kMostNumbers) {
    Sizes numbers;
    for (std::int64_t i = 0; i < size; ++i) {
      numbers.push_back(i == 0 ? *start : numbers.back() + *delta);
    }
    c->output(0).numbers = std::move(numbers);
  }
  return Status();
}

inline Status ComputeRange(KernelContext* c) {
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  for (int input = 0; input < 3; ++input) {
    if (c->input(input).dims() != 0) {
      return errors::InvalidArgument(kNames[input], " must be a scalar, not shape ",
                                     Text(SizesOf(c->input(input))));
    }
  }
  const DataType dtype = c->input(0).dtype();
  return ForNumbers(dtype, [&](auto zero) -> Status {
    using T = decltype(zero);
    // Floats are counted in double; small integers where they do not overflow.
    using Wide = std::conditional_t<
        kIsFloat<T>, double,
        std::conditional_t<std::is_same_v<T, std::uint64_t>, std::uint64_t, std::int64_t>>;
    const Wide start = static_cast<Wide>(Data<T>(c->input(0))[0]);
    const Wide limit = static_cast<Wide>(Data<T>(c->input(1))[0]);
    const Wide delta = static_cast<Wide>(Data<T>(c->input(2))[0]);
    std::int64_t size = 0;
    TF_RETURN_IF_ERROR(RangeSize(start, limit, delta, &size));
    TensorShape shape;
    TF_RETURN_IF_ERROR(MakeShape({size}, &shape));
    Tensor* out = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(0, dtype, shape, &out));
    T* to = MutableData<T>(out);
    for (std::int64_t i = 0; i < size; ++i) {
      if constexpr (kIsFloat<T>) {
        to[i] = FromDouble<T>(start + static_cast<double>(i) * delta);
      } else {
        to[i] = static_cast<T>(static_cast<std::uint64_t>(start) +
                               static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta));
      }
    }
    return Status();
  });
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_SOURCES_H_
