// Updates of Variables.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_TRAINING_OPS_H_
#define CONVGRAD_CC_OPS_TRAINING_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// var - alpha * delta, which the Variable has from the next run on.
class ApplyGradientDescent {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs UseLocking(bool x) const {
      Attrs ret = *this;
      ret.use_locking_ = x;
      return ret;
    }

    bool use_locking_ = false;
  };
  ApplyGradientDescent(const ::convgrad::Scope& scope, ::convgrad::Input var,
                       ::convgrad::Input alpha, ::convgrad::Input delta)
      : ApplyGradientDescent(scope, var, alpha, delta, Attrs()) {}
  ApplyGradientDescent(const ::convgrad::Scope& scope, ::convgrad::Input var,
                       ::convgrad::Input alpha, ::convgrad::Input delta,
                       const ApplyGradientDescent::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("use_locking", attrs.use_locking_);
      const std::vector<::convgrad::Input> from = {var, alpha, delta};
      operation = ::convgrad::detail::Make(scope, "ApplyGradientDescent", from, std::move(given));
      out = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return out; }
  operator ::convgrad::Input() const { return out; }
  ::convgrad::Node* node() const { return out.node(); }

  static Attrs UseLocking(bool x) {
    return Attrs().UseLocking(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output out;
};

}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_TRAINING_OPS_H_
