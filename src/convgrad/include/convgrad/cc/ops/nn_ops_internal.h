// Ops of networks, those that only gradients need.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_NN_OPS_INTERNAL_H_
#define CONVGRAD_CC_OPS_NN_OPS_INTERNAL_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {
namespace internal {

// The gradient of MaxPool: every window's goes to its largest cell, the first of equal ones.
class MaxPoolGrad {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }

    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
  };
  MaxPoolGrad(const ::convgrad::Scope& scope, ::convgrad::Input orig_input,
              ::convgrad::Input orig_output, ::convgrad::Input grad,
              const gtl::ArraySlice<int>& ksize, const gtl::ArraySlice<int>& strides,
              StringPiece padding)
      : MaxPoolGrad(scope, orig_input, orig_output, grad, ksize, strides, padding, Attrs()) {}
  MaxPoolGrad(const ::convgrad::Scope& scope, ::convgrad::Input orig_input,
              ::convgrad::Input orig_output, ::convgrad::Input grad,
              const gtl::ArraySlice<int>& ksize, const gtl::ArraySlice<int>& strides,
              StringPiece padding, const MaxPoolGrad::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("ksize", ::convgrad::detail::Numbers(ksize));
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      const std::vector<::convgrad::Input> from = {orig_input, orig_output, grad};
      operation = ::convgrad::detail::Make(scope, "MaxPoolGrad", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The gradient of Relu: `gradients` where `features` are above 0.
class ReluGrad {
 public:
  ReluGrad(const ::convgrad::Scope& scope, ::convgrad::Input gradients,
           ::convgrad::Input features) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {gradients, features};
      operation = ::convgrad::detail::Make(scope, "ReluGrad", from, std::move(given));
      backprops = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return backprops; }
  operator ::convgrad::Input() const { return backprops; }
  ::convgrad::Node* node() const { return backprops.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output backprops;
};

}  // namespace internal
}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_NN_OPS_INTERNAL_H_
