// Sums, means and largest elements along dimensions. Floats are summed in double in the order of memory, and rounded
// once (Mean: before the division, too, as NumPy does); integers wrap.
#ifndef CONVGRAD_CC_TABLE_REDUCTIONS_H_
#define CONVGRAD_CC_TABLE_REDUCTIONS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline bool Has(const Sizes& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

inline Sizes ReducedSizes(const Sizes& sizes, const Sizes& axes, bool keep) {
  Sizes found;
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    if (!Has(axes, at)) {
      found.push_back(sizes[at]);
    } else if (keep) {
      found.push_back(1);
    }
  }
  return found;
}

inline Status InferReduction(InferenceContext* c) {
  const bool keep = c->attrs().Bool("keep_dims");
  const DataType dtype = c->input(0).dtype;
  const MaybeSizes sizes = SizesOf(c->input(0).shape);
  if (!sizes) return Result(c, dtype, std::nullopt);
  MaybeSizes axes;
  TF_RETURN_IF_ERROR(AxesOf(c, 1, sizes->size(), &axes));
  if (axes) return Result(c, dtype, ReducedSizes(*sizes, *axes, keep));
  return Result(c, dtype, keep ? MaybeSizes(Sizes(sizes->size(), kUnknown)) : std::nullopt);
}

inline Status StartReduction(KernelContext* c, Sizes* axes, Tensor** out) {
  const Tensor& x = c->input(0);
  TF_RETURN_IF_ERROR(AxesInput(c->input(1), x.dims(), axes));
  TensorShape shape;
  TF_RETURN_IF_ERROR(
      MakeShape(ReducedSizes(SizesOf(x), *axes, c->attrs().Bool("keep_dims")), &shape));
  return c->allocate_output(0, x.dtype(), shape, out);
}

inline Status InferSum(InferenceContext* c) { return InferReduction(c); }
inline Status InferMean(InferenceContext* c) { return InferReduction(c); }

inline Status ComputeSum(KernelContext* c) {
  Sizes axes;
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(StartReduction(c, &axes, &out));
  return SumInto(c->input(0), axes, out);
}

inline std::int64_t CountAlong(const Sizes& sizes, const Sizes& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= sizes[static_cast<std::size_t>(axis)];
  return count;
}

inline Status ComputeMean(KernelContext* c) {
  const Tensor& x = c->input(0);
  Sizes axes;
  TF_RETURN_IF_ERROR(AxesInput(c->input(1), x.dims(), &axes));
  const std::int64_t count = CountAlong(SizesOf(x), axes);
  if (count == 0 && !IsFloat(x.dtype())) {
    return errors::InvalidArgument(
        "Mean: `input` must not be empty where integers are averaged.");
  }
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(StartReduction(c, &axes, &out));
  return ForNumbers(x.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    using W = WorkingType<T>;
    Scratch<SumType<T>> sums(out->NumElements());
    TF_RETURN_IF_ERROR(sums.status());
    SumAlong(Data<T>(x), SizesOf(x), axes, sums.data(), Summand<T>);
    T* to = MutableData<T>(out);
    for (std::int64_t i = 0; i < out->NumElements(); ++i) {
      if constexpr (kIsFloat<T>) {
        to[i] = static_cast<T>(static_cast<W>(sums.data()[i]) / static_cast<W>(count));
      } else if constexpr (std::is_signed_v<T>) {
        to[i] = static_cast<T>(std::int64_t{static_cast<T>(sums.data()[i])} / count);
      } else {
        to[i] = static_cast<T>(std::uint64_t{static_cast<T>(sums.data()[i])} /
                               static_cast<std::uint64_t>(count));
      }
    }
    return Status();
  });
}

inline Status GradReduction(const Scope& scope, const Operation& op,
                            const std::vector<Output>& grads, bool mean,
                            std::vector<Output>* out) {
  Attributes attrs;
  attrs.Set("mean", mean);
  const Output shape = ShapeOp(scope, op.input(0));
  return Grads(scope, out, {AddOp(scope, "SpreadReduced", {grads[0], op.input(1), shape},
                                  std::move(attrs)),
                            Output()});
}

inline Status GradSum(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                      std::vector<Output>* out) {
  return GradReduction(scope, op, grads, false, out);
}
inline Status GradMean(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* out) {
  return GradReduction(scope, op, grads, true, out);
}

inline Status NotAReduction(const Sizes& given, const Sizes& sizes, const Sizes& axes) {
  return errors::InvalidArgument("SpreadReduced: `input` must have the shape of a reduction of ",
                                 Text(sizes), " along ", Text(axes), ", got ", Text(given), ".");
}

inline Status InferSpreadReduced(InferenceContext* c) {
  const MaybeSizes given = SizesOf(c->input(0).shape);
  MaybeSizes sizes, axes;
  TF_RETURN_IF_ERROR(ShapeVector(c, 2, &sizes));
  if (sizes) TF_RETURN_IF_ERROR(AxesOf(c, 1, sizes->size(), &axes));
  if (given && sizes && axes) {
    const std::int64_t before = CountOf(*given);
    const std::int64_t rest = CountOf(ReducedSizes(*sizes, *axes, false));
    if (before >= 0 && rest >= 0 && before != rest) return NotAReduction(*given, *sizes, *axes);
  }
  return Result(c, c->input(0).dtype, sizes);
}

inline Status ComputeSpreadReduced(KernelContext* c) {
  const Tensor& g = c->input(0);
  Sizes sizes, axes;
  TensorShape shape;
  TF_RETURN_IF_ERROR(ShapeInput(c->input(2), &sizes));
  TF_RETURN_IF_ERROR(MakeShape(sizes, &shape));
  TF_RETURN_IF_ERROR(AxesInput(c->input(1), static_cast<int>(sizes.size()), &axes));
  const Sizes kept = ReducedSizes(sizes, axes, true);
  if (Product(kept) != g.NumElements()) return NotAReduction(SizesOf(g), sizes, axes);
  const bool mean = c->attrs().Bool("mean");
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, g.dtype(), shape, &out));
  if (!mean || out->NumElements() == 0) return Repeat(g, kept, out);
  // Divided before it is repeated: a count may be more than a half can hold.
  const std::int64_t count = CountAlong(sizes, axes);
  return ForNumbers(g.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    Scratch<T> parts(g.NumElements());
    TF_RETURN_IF_ERROR(parts.status());
    const T* from = Data<T>(g);
    for (std::int64_t i = 0; i < g.NumElements(); ++i) {
      if constexpr (kIsFloat<T>) {
        using W = WorkingType<T>;
        parts.data()[i] = static_cast<T>(static_cast<W>(from[i]) / static_cast<W>(count));
      } else {  // through double, as NumPy divides integers
        parts.data()[i] =
            ToInteger<T>(static_cast<double>(from[i]) / static_cast<double>(static_cast<T>(count)));
      }
    }
    return RepeatCells(parts.data(), kept, out);
  });
}

inline Status GradSpreadReduced(const Scope& scope, const Operation& op,
                                const std::vector<Output>& grads, std::vector<Output>* out) {
  const bool mean = op.node()->attrs().Bool("mean");
  Output back = AddOp(scope, mean ? "Mean" : "Sum", {grads[0], op.input(1)});
  if (scope.ok() && !KnownToBeAlike(op.input(0), back)) {  // keep_dims
    back = AddOp(scope, "Reshape", {back, ShapeOp(scope, op.input(0))});
  }
  return Grads(scope, out, {back, Output(), Output()});
}

inline Status InferL2Loss(InferenceContext* c) { return Result(c, c->input(0).dtype, Sizes{}); }

inline Status ComputeL2Loss(KernelContext* c) {
  const Tensor& t = c->input(0);
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, t.dtype(), TensorShape(), &out));
  return ForFloats(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using W = WorkingType<T>;
    double sum = 0;
    for (std::int64_t i = 0; i < t.NumElements(); ++i) {
      const W x = static_cast<W>(Data<T>(t)[i]);
      sum += static_cast<double>(x * x);
    }
    MutableData<T>(out)[0] = static_cast<T>(static_cast<W>(sum) / W(2));
    return Status();
  });
}

inline Status GradL2Loss(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                         std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "Multiply", {op.input(0), grads[0]})});
}

inline Status NoSuchDimension(std::int64_t axis, std::size_t rank) {
  return errors::InvalidArgument("Dimension (", axis, ") must be in the range [",
                                 rank == 0 ? "" : "-", rank, ", ", rank, "), where ", rank,
                                 " is the number of dimensions in the input.");
}

inline Status InferArgMax(InferenceContext* c) {
  const DataType dtype = c->attrs().Type("output_type");
  if (!IsIndex(dtype)) {
    return errors::InvalidArgument("Value for attr 'output_type' of ", DataTypeString(dtype),
                                   " is not in the list of allowed values: int32, int64");
  }
  TF_RETURN_IF_ERROR(IsScalar(c, 1));
  const MaybeSizes sizes = SizesOf(c->input(0).shape);
  if (!sizes) return Result(c, dtype, std::nullopt);
  const std::int64_t rank = static_cast<std::int64_t>(sizes->size());
  const std::optional<std::int64_t> axis = Number(c->input(1));
  if (rank == 0) return AtLeastRank(sizes, 1);
  if (!axis) return Result(c, dtype, Sizes(sizes->size() - 1, kUnknown));
  if (*axis < -rank || *axis >= rank) return NoSuchDimension(*axis, sizes->size());
  const std::int64_t at = *axis < 0 ? *axis + rank : *axis;
  if ((*sizes)[static_cast<std::size_t>(at)] == 0) {
    return errors::InvalidArgument("Reduction axis ", at, " is empty in shape ", Text(*sizes));
  }
  return Result(c, dtype, ReducedSizes(*sizes, {at}, false));
}

// The first of the largest; what is no number counts as larger than any.
template <class T>
std::int64_t LargestAt(const T* x, std::int64_t count, std::int64_t step) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (kIsFloat<T>) {
      const auto cell = static_cast<WorkingType<T>>(x[i * step]);
      if (cell != cell) return i;
      if (cell > static_cast<WorkingType<T>>(x[found * step])) found = i;
    } else {
      if (x[i * step] > x[found * step]) found = i;
    }
  }
  return found;
}

inline Status ComputeArgMax(KernelContext* c) {
  const Tensor &x = c->input(0), &dimension = c->input(1);
  if (dimension.dims() != 0) {
    return errors::InvalidArgument("dim must be a scalar, but received tensor of shape: ",
                                   Text(SizesOf(dimension)));
  }
  const std::int64_t given = Integers(dimension)[0], rank = x.dims();
  if (given < -rank || given >= rank) {
    return errors::InvalidArgument("Expected dimension in the range [", -rank, ", ", rank,
                                   "), but got ", given);
  }
  const std::int64_t axis = given < 0 ? given + rank : given;
  const Sizes sizes = SizesOf(x);
  const std::int64_t count = sizes[static_cast<std::size_t>(axis)];
  if (count == 0) {
    return errors::InvalidArgument("Reduction axis ", axis, " is empty in shape ", Text(sizes));
  }
  std::int64_t behind = 1;
  for (std::size_t at = static_cast<std::size_t>(axis) + 1; at < sizes.size(); ++at) {
    behind *= sizes[at];
  }
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape(ReducedSizes(sizes, {axis}, false), &shape));
  Tensor* out = nullptr;
  const DataType dtype = c->attrs().Type("output_type");
  TF_RETURN_IF_ERROR(c->allocate_output(0, dtype, shape, &out));
  const DataType kind = x.dtype() == DT_BOOL ? DT_UINT8 : x.dtype();
  return ForNumbers(kind, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < out->NumElements(); ++i) {
      const T* line = Data<T>(x) + i / behind * behind * count + i % behind;
      const std::int64_t found = LargestAt(line, count, behind);
      if (dtype == DT_INT32) {
        MutableData<std::int32_t>(out)[i] = static_cast<std::int32_t>(found);
      } else {
        MutableData<std::int64_t>(out)[i] = found;
      }
    }
    return Status();
  });
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_REDUCTIONS_H_
