// Arithmetic.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_MATH_OPS_H_
#define CONVGRAD_CC_OPS_MATH_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// x + y.
class Add {
 public:
  Add(const ::convgrad::Scope& scope, ::convgrad::Input x, ::convgrad::Input y) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x, y};
      operation = ::convgrad::detail::Make(scope, "Add", from, std::move(given));
      z = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return z; }
  operator ::convgrad::Input() const { return z; }
  ::convgrad::Node* node() const { return z.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output z;
};

// The sum of tensors of one shape.
class AddN {
 public:
  AddN(const ::convgrad::Scope& scope, ::convgrad::InputList inputs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      if (!inputs.status().ok()) {
        scope.UpdateStatus(inputs.status());
        return;
      }
      const std::vector<::convgrad::Input> from(inputs.begin(), inputs.end());
      operation = ::convgrad::detail::Make(scope, "AddN", from, std::move(given));
      sum = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return sum; }
  operator ::convgrad::Input() const { return sum; }
  ::convgrad::Node* node() const { return sum.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output sum;
};

// Where the largest element along a dimension is; the first of several.
class ArgMax {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs OutputType(DataType x) const {
      Attrs ret = *this;
      ret.output_type_ = x;
      return ret;
    }

    DataType output_type_ = DT_INT64;
  };
  ArgMax(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input dimension)
      : ArgMax(scope, input, dimension, Attrs()) {}
  ArgMax(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input dimension,
         const ArgMax::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("output_type", attrs.output_type_);
      const std::vector<::convgrad::Input> from = {input, dimension};
      operation = ::convgrad::detail::Make(scope, "ArgMax", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs OutputType(DataType x) {
    return Attrs().OutputType(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The same numbers in another type; towards zero from floats to integers.
class Cast {
 public:
  Cast(const ::convgrad::Scope& scope, ::convgrad::Input x, DataType DstT) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("DstT", DstT);
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Cast", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

// x / y; integers are divided towards zero.
class Div {
 public:
  Div(const ::convgrad::Scope& scope, ::convgrad::Input x, ::convgrad::Input y) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x, y};
      operation = ::convgrad::detail::Make(scope, "Div", from, std::move(given));
      z = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return z; }
  operator ::convgrad::Input() const { return z; }
  ::convgrad::Node* node() const { return z.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output z;
};

// Whether x == y.
class Equal {
 public:
  Equal(const ::convgrad::Scope& scope, ::convgrad::Input x, ::convgrad::Input y) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x, y};
      operation = ::convgrad::detail::Make(scope, "Equal", from, std::move(given));
      z = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return z; }
  operator ::convgrad::Input() const { return z; }
  ::convgrad::Node* node() const { return z.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output z;
};

// e to the x.
class Exp {
 public:
  Exp(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Exp", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

// The natural logarithm.
class Log {
 public:
  Log(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Log", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

// The product of two matrices, each transposed or not.
class MatMul {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs TransposeA(bool x) const {
      Attrs ret = *this;
      ret.transpose_a_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs TransposeB(bool x) const {
      Attrs ret = *this;
      ret.transpose_b_ = x;
      return ret;
    }

    bool transpose_a_ = false;
    bool transpose_b_ = false;
  };
  MatMul(const ::convgrad::Scope& scope, ::convgrad::Input a, ::convgrad::Input b)
      : MatMul(scope, a, b, Attrs()) {}
  MatMul(const ::convgrad::Scope& scope, ::convgrad::Input a, ::convgrad::Input b,
         const MatMul::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("transpose_a", attrs.transpose_a_);
      given.Set("transpose_b", attrs.transpose_b_);
      const std::vector<::convgrad::Input> from = {a, b};
      operation = ::convgrad::detail::Make(scope, "MatMul", from, std::move(given));
      product = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return product; }
  operator ::convgrad::Input() const { return product; }
  ::convgrad::Node* node() const { return product.node(); }

  static Attrs TransposeA(bool x) {
    return Attrs().TransposeA(x);
  }
  static Attrs TransposeB(bool x) {
    return Attrs().TransposeB(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output product;
};

// The mean along dimensions.
class Mean {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs KeepDims(bool x) const {
      Attrs ret = *this;
      ret.keep_dims_ = x;
      return ret;
    }

    bool keep_dims_ = false;
  };
  Mean(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input axis)
      : Mean(scope, input, axis, Attrs()) {}
  Mean(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input axis,
       const Mean::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("keep_dims", attrs.keep_dims_);
      const std::vector<::convgrad::Input> from = {input, axis};
      operation = ::convgrad::detail::Make(scope, "Mean", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs KeepDims(bool x) {
    return Attrs().KeepDims(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};
using ReduceMean = Mean;

// x * y.
class Multiply {
 public:
  Multiply(const ::convgrad::Scope& scope, ::convgrad::Input x, ::convgrad::Input y) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x, y};
      operation = ::convgrad::detail::Make(scope, "Multiply", from, std::move(given));
      z = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return z; }
  operator ::convgrad::Input() const { return z; }
  ::convgrad::Node* node() const { return z.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output z;
};
using Mul = Multiply;

// -x.
class Negate {
 public:
  Negate(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Negate", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};
using Neg = Negate;

// The numbers from `start` up to, and without, `limit`, in steps of `delta`.
class Range {
 public:
  Range(const ::convgrad::Scope& scope, ::convgrad::Input start, ::convgrad::Input limit,
        ::convgrad::Input delta) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {start, limit, delta};
      operation = ::convgrad::detail::Make(scope, "Range", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// 1 / (1 + exp(-x)).
class Sigmoid {
 public:
  Sigmoid(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Sigmoid", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

// The square root.
class Sqrt {
 public:
  Sqrt(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Sqrt", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

// x * x.
class Square {
 public:
  Square(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Square", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

// x - y.
class Subtract {
 public:
  Subtract(const ::convgrad::Scope& scope, ::convgrad::Input x, ::convgrad::Input y) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x, y};
      operation = ::convgrad::detail::Make(scope, "Subtract", from, std::move(given));
      z = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return z; }
  operator ::convgrad::Input() const { return z; }
  ::convgrad::Node* node() const { return z.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output z;
};
using Sub = Subtract;

// The sum along dimensions.
class Sum {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs KeepDims(bool x) const {
      Attrs ret = *this;
      ret.keep_dims_ = x;
      return ret;
    }

    bool keep_dims_ = false;
  };
  Sum(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input axis)
      : Sum(scope, input, axis, Attrs()) {}
  Sum(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input axis,
      const Sum::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("keep_dims", attrs.keep_dims_);
      const std::vector<::convgrad::Input> from = {input, axis};
      operation = ::convgrad::detail::Make(scope, "Sum", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs KeepDims(bool x) {
    return Attrs().KeepDims(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};
using ReduceSum = Sum;

// The hyperbolic tangent.
class Tanh {
 public:
  Tanh(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "Tanh", from, std::move(given));
      y = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return y; }
  operator ::convgrad::Input() const { return y; }
  ::convgrad::Node* node() const { return y.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output y;
};

}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_MATH_OPS_H_
