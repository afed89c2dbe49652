// Ops on shapes and the order of elements.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_ARRAY_OPS_H_
#define CONVGRAD_CC_OPS_ARRAY_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// A tensor repeated to a shape.
class BroadcastTo {
 public:
  BroadcastTo(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input shape) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {input, shape};
      operation = ::convgrad::detail::Make(scope, "BroadcastTo", from, std::move(given));
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

// The permutation that undoes one.
class InvertPermutation {
 public:
  InvertPermutation(const ::convgrad::Scope& scope, ::convgrad::Input x) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x};
      operation = ::convgrad::detail::Make(scope, "InvertPermutation", from, std::move(given));
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

// A row of `depth` values per index: `on_value` at the index, `off_value` elsewhere.
class OneHot {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs Axis(std::int64_t x) const {
      Attrs ret = *this;
      ret.axis_ = x;
      return ret;
    }

    std::int64_t axis_ = -1;
  };
  OneHot(const ::convgrad::Scope& scope, ::convgrad::Input indices, ::convgrad::Input depth,
         ::convgrad::Input on_value, ::convgrad::Input off_value)
      : OneHot(scope, indices, depth, on_value, off_value, Attrs()) {}
  OneHot(const ::convgrad::Scope& scope, ::convgrad::Input indices, ::convgrad::Input depth,
         ::convgrad::Input on_value, ::convgrad::Input off_value, const OneHot::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("axis", attrs.axis_);
      const std::vector<::convgrad::Input> from = {indices, depth, on_value, off_value};
      operation = ::convgrad::detail::Make(scope, "OneHot", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs Axis(std::int64_t x) {
    return Attrs().Axis(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// A tensor that is fed when a session runs.
class Placeholder {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs Shape(PartialTensorShape x) const {
      Attrs ret = *this;
      ret.shape_ = x;
      return ret;
    }

    PartialTensorShape shape_;
  };
  Placeholder(const ::convgrad::Scope& scope, DataType dtype)
      : Placeholder(scope, dtype, Attrs()) {}
  Placeholder(const ::convgrad::Scope& scope, DataType dtype, const Placeholder::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("dtype", dtype);
      given.Set("shape", attrs.shape_);
      const std::vector<::convgrad::Input> from = {};
      operation = ::convgrad::detail::Make(scope, "Placeholder", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs Shape(PartialTensorShape x) {
    return Attrs().Shape(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The same elements in another shape; one size may be -1.
class Reshape {
 public:
  Reshape(const ::convgrad::Scope& scope, ::convgrad::Input tensor, ::convgrad::Input shape) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {tensor, shape};
      operation = ::convgrad::detail::Make(scope, "Reshape", from, std::move(given));
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

// The sizes of a tensor, as a vector.
class Shape {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs OutType(DataType x) const {
      Attrs ret = *this;
      ret.out_type_ = x;
      return ret;
    }

    DataType out_type_ = DT_INT32;
  };
  Shape(const ::convgrad::Scope& scope, ::convgrad::Input input)
      : Shape(scope, input, Attrs()) {}
  Shape(const ::convgrad::Scope& scope, ::convgrad::Input input, const Shape::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("out_type", attrs.out_type_);
      const std::vector<::convgrad::Input> from = {input};
      operation = ::convgrad::detail::Make(scope, "Shape", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs OutType(DataType x) {
    return Attrs().OutType(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The dimensions in another order.
class Transpose {
 public:
  Transpose(const ::convgrad::Scope& scope, ::convgrad::Input x, ::convgrad::Input perm) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {x, perm};
      operation = ::convgrad::detail::Make(scope, "Transpose", from, std::move(given));
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

#endif  // CONVGRAD_CC_OPS_ARRAY_OPS_H_
