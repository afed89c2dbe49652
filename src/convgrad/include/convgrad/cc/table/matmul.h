// MatMul: rows of `a` and columns of `b`, packed as double (or 64-bit integers) and multiplied in tiles of 4 by 8.
//
// Packing undoes transposes and types, so there is one kernel for floats. Every sum is kept in double from the first
// product to the last, in the order of `b`'s rows, and rounded once; integers wrap.
#ifndef CONVGRAD_CC_TABLE_MATMUL_H_
#define CONVGRAD_CC_TABLE_MATMUL_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline Status InferMatMul(InferenceContext* c) {
  Sizes a, b;
  TF_RETURN_IF_ERROR(OfRank(c, 0, 2, &a));
  TF_RETURN_IF_ERROR(OfRank(c, 1, 2, &b));
  if (c->attrs().Bool("transpose_a")) std::swap(a[0], a[1]);
  if (c->attrs().Bool("transpose_b")) std::swap(b[0], b[1]);
  if (!Fits(a[1], b[0])) {
    return errors::InvalidArgument("Dimensions must be equal, but are ", a[1], " and ", b[0]);
  }
  return Result(c, c->input(0).dtype, Sizes{a[0], b[1]});
}

constexpr int kTileRows = 4, kTileColumns = 8;
constexpr std::int64_t kRowsAtATime = 64;  // rows of `a` that are packed before `b` is walked

// Lines of a matrix as a panel: element (depth, line) of lines [first, first + width), zeros behind the last.
template <class T, class Sum>
void PackLines(const T* from, std::int64_t line_step, std::int64_t depth_step, std::int64_t depth,
               std::int64_t lines, std::int64_t width, Sum* to) {
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t i = 0; i < width; ++i) {
      to[k * width + i] = i < lines ? Summand<T>(from[i * line_step + k * depth_step]) : Sum(0);
    }
  }
}

template <class Sum>
void MultiplyTile(const Sum* a, const Sum* b, std::int64_t depth, Sum* tile) {
  Sum sums[kTileRows][kTileColumns] = {};
  for (std::int64_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    for (int i = 0; i < kTileRows; ++i) {
      for (int j = 0; j < kTileColumns; ++j) sums[i][j] += a[i] * b[j];
    }
  }
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kTileColumns; ++j) tile[i * kTileColumns + j] = sums[i][j];
  }
}

struct MatMulSizes {
  std::int64_t rows, depth, columns;
  bool transpose_a, transpose_b;
};

template <class T>
Status Multiply(const T* a, const T* b, const MatMulSizes& m, T* out) {
  using Sum = SumType<T>;
  const std::int64_t a_row = m.transpose_a ? 1 : m.depth, a_depth = m.transpose_a ? m.rows : 1;
  const std::int64_t b_column = m.transpose_b ? m.depth : 1;
  const std::int64_t b_depth = m.transpose_b ? 1 : m.columns;
  if (m.depth > std::numeric_limits<std::int64_t>::max() / 1024) {
    return errors::ResourceExhausted("OOM when allocating scratch for a depth of ", m.depth);
  }
  Scratch<Sum> packed_a(kRowsAtATime * m.depth), packed_b(kTileColumns * m.depth);
  TF_RETURN_IF_ERROR(packed_a.status());
  TF_RETURN_IF_ERROR(packed_b.status());
  Sum tile[kTileRows * kTileColumns];
  for (std::int64_t row = 0; row < m.rows; row += kRowsAtATime) {
    const std::int64_t rows = std::min(kRowsAtATime, m.rows - row);
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      PackLines(a + (row + i) * a_row, a_row, a_depth, m.depth, rows - i, kTileRows,
                packed_a.data() + i * m.depth);
    }
    for (std::int64_t column = 0; column < m.columns; column += kTileColumns) {
      const std::int64_t columns = std::min<std::int64_t>(kTileColumns, m.columns - column);
      PackLines(b + column * b_column, b_column, b_depth, m.depth, columns, kTileColumns,
                packed_b.data());
      for (std::int64_t i = 0; i < rows; i += kTileRows) {
        MultiplyTile(packed_a.data() + i * m.depth, packed_b.data(), m.depth, tile);
        for (std::int64_t r = 0; r < std::min<std::int64_t>(kTileRows, rows - i); ++r) {
          T* to = out + (row + i + r) * m.columns + column;
          for (std::int64_t j = 0; j < columns; ++j) {
            to[j] = Rounded<T>(tile[r * kTileColumns + j]);
          }
        }
      }
    }
  }
  return Status();
}

inline Status ComputeMatMul(KernelContext* c) {
  const Tensor &a = c->input(0), &b = c->input(1);
  if (a.dims() != b.dims()) {
    return errors::InvalidArgument("In[0] and In[1] has different ndims: ", Text(SizesOf(a)),
                                   " vs. ", Text(SizesOf(b)));
  }
  if (a.dims() != 2) {
    return errors::InvalidArgument("Shape must be rank 2 but is rank ", a.dims());
  }
  MatMulSizes m{a.dim_size(0), a.dim_size(1), b.dim_size(1), c->attrs().Bool("transpose_a"),
                c->attrs().Bool("transpose_b")};
  std::int64_t inner = b.dim_size(0);
  if (m.transpose_a) std::swap(m.rows, m.depth);
  if (m.transpose_b) std::swap(inner, m.columns);
  if (m.depth != inner) {
    return errors::InvalidArgument("Matrix size-incompatible: In[0]: ", Text(SizesOf(a)),
                                   ", In[1]: ", Text(SizesOf(b)));
  }
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape({m.rows, m.columns}, &shape));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, a.dtype(), shape, &out));
  if (out->NumElements() == 0) return Status();
  return ForArithmetic(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Multiply(Data<T>(a), Data<T>(b), m, MutableData<T>(out));
  });
}

inline Status GradMatMul(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                         std::vector<Output>* out) {
  const Output a = op.input(0), b = op.input(1), g = grads[0];
  const auto times = [&](const Output& x, const Output& y, bool transpose_x, bool transpose_y) {
    Attributes attrs;
    attrs.Set("transpose_a", transpose_x);
    attrs.Set("transpose_b", transpose_y);
    return AddOp(scope, "MatMul", {x, y}, std::move(attrs));
  };
  const bool turned_a = op.node()->attrs().Bool("transpose_a");
  const bool turned_b = op.node()->attrs().Bool("transpose_b");
  const Output to_a = turned_a ? times(b, g, turned_b, true) : times(g, b, false, !turned_b);
  const Output to_b = turned_b ? times(g, a, true, turned_a) : times(a, g, !turned_a, false);
  return Grads(scope, out, {to_a, to_b});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_MATMUL_H_
