// All ops.
#ifndef CONVGRAD_CC_OPS_STANDARD_OPS_H_
#define CONVGRAD_CC_OPS_STANDARD_OPS_H_

#include "convgrad/cc/ops/array_ops.h"
#include "convgrad/cc/ops/const_op.h"
#include "convgrad/cc/ops/math_ops.h"
#include "convgrad/cc/ops/nn_ops.h"
#include "convgrad/cc/ops/random_ops.h"
#include "convgrad/cc/ops/state_ops.h"
#include "convgrad/cc/ops/training_ops.h"

#endif  // CONVGRAD_CC_OPS_STANDARD_OPS_H_
