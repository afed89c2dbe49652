// Variables.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_STATE_OPS_H_
#define CONVGRAD_CC_OPS_STATE_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// The new value of a Variable, which it has from the next run on.
class Assign {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ValidateShape(bool x) const {
      Attrs ret = *this;
      ret.validate_shape_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs UseLocking(bool x) const {
      Attrs ret = *this;
      ret.use_locking_ = x;
      return ret;
    }

    bool validate_shape_ = true;
    bool use_locking_ = true;
  };
  Assign(const ::convgrad::Scope& scope, ::convgrad::Input ref, ::convgrad::Input value)
      : Assign(scope, ref, value, Attrs()) {}
  Assign(const ::convgrad::Scope& scope, ::convgrad::Input ref, ::convgrad::Input value,
         const Assign::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("validate_shape", attrs.validate_shape_);
      given.Set("use_locking", attrs.use_locking_);
      const std::vector<::convgrad::Input> from = {ref, value};
      operation = ::convgrad::detail::Make(scope, "Assign", from, std::move(given));
      output_ref = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output_ref; }
  operator ::convgrad::Input() const { return output_ref; }
  ::convgrad::Node* node() const { return output_ref.node(); }

  static Attrs ValidateShape(bool x) {
    return Attrs().ValidateShape(x);
  }
  static Attrs UseLocking(bool x) {
    return Attrs().UseLocking(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output_ref;
};

// A tensor that keeps its value from run to run.
class Variable {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs Container(StringPiece x) const {
      Attrs ret = *this;
      ret.container_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs SharedName(StringPiece x) const {
      Attrs ret = *this;
      ret.shared_name_ = std::string(x);
      return ret;
    }

    std::string container_;
    std::string shared_name_;
  };
  Variable(const ::convgrad::Scope& scope, PartialTensorShape shape, DataType dtype)
      : Variable(scope, shape, dtype, Attrs()) {}
  Variable(const ::convgrad::Scope& scope, PartialTensorShape shape, DataType dtype,
           const Variable::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("shape", shape);
      given.Set("dtype", dtype);
      given.Set("container", attrs.container_);
      given.Set("shared_name", attrs.shared_name_);
      const std::vector<::convgrad::Input> from = {};
      operation = ::convgrad::detail::Make(scope, "Variable", from, std::move(given));
      ref = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return ref; }
  operator ::convgrad::Input() const { return ref; }
  ::convgrad::Node* node() const { return ref.node(); }

  static Attrs Container(StringPiece x) {
    return Attrs().Container(x);
  }
  static Attrs SharedName(StringPiece x) {
    return Attrs().SharedName(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output ref;
};

}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_STATE_OPS_H_
