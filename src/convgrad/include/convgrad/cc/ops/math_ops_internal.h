// Arithmetic, those that only gradients need.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_MATH_OPS_INTERNAL_H_
#define CONVGRAD_CC_OPS_MATH_OPS_INTERNAL_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {
namespace internal {

// The gradient of a sum or mean: every element gets what its sum got.
class SpreadReduced {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs Mean(bool x) const {
      Attrs ret = *this;
      ret.mean_ = x;
      return ret;
    }

    bool mean_ = false;
  };
  SpreadReduced(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input axis,
                ::convgrad::Input shape)
      : SpreadReduced(scope, input, axis, shape, Attrs()) {}
  SpreadReduced(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input axis,
                ::convgrad::Input shape, const SpreadReduced::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("mean", attrs.mean_);
      const std::vector<::convgrad::Input> from = {input, axis, shape};
      operation = ::convgrad::detail::Make(scope, "SpreadReduced", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs Mean(bool x) {
    return Attrs().Mean(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

}  // namespace internal
}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_MATH_OPS_INTERNAL_H_
