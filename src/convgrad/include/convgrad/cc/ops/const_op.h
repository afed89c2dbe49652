// Const: numbers as a node.
#ifndef CONVGRAD_CC_OPS_CONST_OP_H_
#define CONVGRAD_CC_OPS_CONST_OP_H_

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// The numbers are copied: what a graph is built from does not change under it.
inline Output Const(const Scope& scope, const Input::Initializer& val) {
  if (!scope.ok()) return Output();
  if (!val.status.ok()) {
    scope.UpdateStatus(val.status);
    return Output();
  }
  CONVGRAD_TRY {
    detail::Attributes given;
    given.Set("value", detail::DeepCopy(val.tensor));
    return detail::Make(scope, "Const", {}, std::move(given)).output(0);
  }
  CONVGRAD_CATCH(scope.UpdateStatus(detail::OutOfMemory()); return Output();)
}

// Of a type: with a Cast behind it where the numbers are of another, as TensorFlow makes it.
template <class T>
Output Const(const Scope& scope, const Input::Initializer& val) {
  const Output original = Const(scope, val);
  if (!scope.ok()) return Output();
  using Wanted = typename Input::Initializer::RealType<T>::type;
  constexpr DataType kWanted = DataTypeToEnum<Wanted>::value;
  if (val.tensor.dtype() == kWanted) return original;
  if (val.tensor.NumElements() == 0) {
    return Const(scope, Input::Initializer(Tensor(kWanted, val.tensor.shape())));
  }
  CONVGRAD_TRY {
    detail::Attributes given;
    given.Set("DstT", kWanted);
    return detail::Make(scope, "Cast", {original}, std::move(given)).output(0);
  }
  CONVGRAD_CATCH(scope.UpdateStatus(detail::OutOfMemory()); return Output();)
}

template <class T>
Output Const(const Scope& scope, const T& v, const TensorShape shape) {
  return Const(scope, Input::Initializer(v, shape));
}

template <class T>
Output Const(const Scope& scope, const std::initializer_list<T>& v, const TensorShape shape) {
  return Const(scope, Input::Initializer(v, shape));
}

}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_CONST_OP_H_
