// Cast: every type to every other, through one of three wide types, so that there are 50 loops and not 169.
#ifndef CONVGRAD_CC_TABLE_CASTS_H_
#define CONVGRAD_CC_TABLE_CASTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline std::int64_t LowWord(std::int64_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)));
}

inline Status InferCast(InferenceContext* c) {
  const Spec& x = c->input(0);
  const DataType wanted = c->attrs().Type("DstT");
  c->output(0).dtype = wanted;
  c->output(0).shape = x.shape;
  if (IsIndex(wanted) && IsIndex(x.dtype) && x.numbers) {
    c->output(0).numbers = x.numbers;
    for (std::int64_t& number : *c->output(0).numbers) {
      if (wanted == DT_INT32 && number != kUnknownNumber) number = LowWord(number);
    }
  }
  return Status();
}

// From double, int64 or uint64.
template <class Wide, class T>
T Narrowed(Wide value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != Wide(0);
  } else if constexpr (!kIsFloat<T>) {
    if constexpr (std::is_same_v<Wide, double>) {
      return ToInteger<T>(value);
    } else {
      return static_cast<T>(value);
    }
  } else if constexpr (std::is_same_v<Wide, double>) {
    return FromDouble<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(value);
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

// Calls f with a value of the type, truth values among them.
template <class F>
Status ForAny(DataType dtype, F f) {
  return dtype == DT_BOOL ? f(bool()) : ForNumbers(dtype, f);
}

template <class Wide, class T>
void StoreRun(const Wide* from, void* to, std::int64_t count) {
  T* out = static_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) out[i] = Narrowed<Wide, T>(from[i]);
}

template <class From, class Wide>
void LoadRun(const void* from, Wide* to, std::int64_t count) {
  const From* in = static_cast<const From*>(from);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Wide>(in[i]);
}

template <class Wide>
Status CastThrough(const Tensor& x, Tensor* out, void (*load)(const void*, Wide*, std::int64_t)) {
  void (*store)(const Wide*, void*, std::int64_t) = nullptr;
  TF_RETURN_IF_ERROR(ForAny(out->dtype(), [&](auto zero) {
    store = StoreRun<Wide, decltype(zero)>;
    return Status();
  }));
  constexpr std::int64_t kRun = 256;
  Wide run[kRun];
  const char* from = Data<char>(x);
  char* to = MutableData<char>(out);
  for (std::int64_t at = 0; at < x.NumElements(); at += kRun) {
    const std::int64_t count = std::min(kRun, x.NumElements() - at);
    load(from + at * DataTypeSize(x.dtype()), run, count);
    store(run, to + at * DataTypeSize(out->dtype()), count);
  }
  return Status();
}

inline Status ComputeCast(KernelContext* c) {
  const Tensor& x = c->input(0);
  const DataType wanted = c->attrs().Type("DstT");
  if (wanted == x.dtype()) {
    c->set_output(0, x);
    return Status();
  }
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, wanted, x.shape(), &out));
  return ForAny(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) {  // bytes: one that is neither 0 nor 1 may have been fed
      return CastThrough<std::uint64_t>(x, out, [](const void* from, std::uint64_t* to,
                                                   std::int64_t count) {
        const unsigned char* in = static_cast<const unsigned char*>(from);
        for (std::int64_t i = 0; i < count; ++i) to[i] = in[i] != 0 ? 1 : 0;
      });
    } else {
      using Wide = std::conditional_t<
          kIsFloat<T>, double,
          std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
      return CastThrough<Wide>(x, out, LoadRun<T, Wide>);
    }
  });
}

inline Status GradCast(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* out) {
  const DataType dtype = TypeOf(op.input(0));
  if (!IsFloat(dtype)) return Grads(scope, out, {Output()});
  Attributes attrs;
  attrs.Set("DstT", dtype);
  return Grads(scope, out, {AddOp(scope, "Cast", {grads[0]}, std::move(attrs))});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_CASTS_H_
