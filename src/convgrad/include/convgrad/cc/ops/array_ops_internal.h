// Ops on shapes and the order of elements, those that only gradients need.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_ARRAY_OPS_INTERNAL_H_
#define CONVGRAD_CC_OPS_ARRAY_OPS_INTERNAL_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {
namespace internal {

// A tensor summed to a shape that broadcasts to its own: the gradient of repeating.
class SumToShape {
 public:
  SumToShape(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input shape) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {input, shape};
      operation = ::convgrad::detail::Make(scope, "SumToShape", from, std::move(given));
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

}  // namespace internal
}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_ARRAY_OPS_INTERNAL_H_
