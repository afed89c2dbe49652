// Random numbers.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_RANDOM_OPS_H_
#define CONVGRAD_CC_OPS_RANDOM_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// Normally distributed random numbers, the same in every run: TensorFlow's own for seeds that are
// not both 0.
class RandomNormal {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs Seed(std::int64_t x) const {
      Attrs ret = *this;
      ret.seed_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Seed2(std::int64_t x) const {
      Attrs ret = *this;
      ret.seed2_ = x;
      return ret;
    }

    std::int64_t seed_ = 0;
    std::int64_t seed2_ = 0;
  };
  RandomNormal(const ::convgrad::Scope& scope, ::convgrad::Input shape, DataType dtype)
      : RandomNormal(scope, shape, dtype, Attrs()) {}
  RandomNormal(const ::convgrad::Scope& scope, ::convgrad::Input shape, DataType dtype,
               const RandomNormal::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("dtype", dtype);
      given.Set("seed", attrs.seed_);
      given.Set("seed2", attrs.seed2_);
      const std::vector<::convgrad::Input> from = {shape};
      operation = ::convgrad::detail::Make(scope, "RandomNormal", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs Seed(std::int64_t x) {
    return Attrs().Seed(x);
  }
  static Attrs Seed2(std::int64_t x) {
    return Attrs().Seed2(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Random numbers from [0, 1), the same in every run: TensorFlow's own for seeds that are not both
// 0.
class RandomUniform {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs Seed(std::int64_t x) const {
      Attrs ret = *this;
      ret.seed_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Seed2(std::int64_t x) const {
      Attrs ret = *this;
      ret.seed2_ = x;
      return ret;
    }

    std::int64_t seed_ = 0;
    std::int64_t seed2_ = 0;
  };
  RandomUniform(const ::convgrad::Scope& scope, ::convgrad::Input shape, DataType dtype)
      : RandomUniform(scope, shape, dtype, Attrs()) {}
  RandomUniform(const ::convgrad::Scope& scope, ::convgrad::Input shape, DataType dtype,
                const RandomUniform::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("dtype", dtype);
      given.Set("seed", attrs.seed_);
      given.Set("seed2", attrs.seed2_);
      const std::vector<::convgrad::Input> from = {shape};
      operation = ::convgrad::detail::Make(scope, "RandomUniform", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs Seed(std::int64_t x) {
    return Attrs().Seed(x);
  }
  static Attrs Seed2(std::int64_t x) {
    return Attrs().Seed2(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_RANDOM_OPS_H_
