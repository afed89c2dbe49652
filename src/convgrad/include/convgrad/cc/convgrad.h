// All of the C++ API.
#ifndef CONVGRAD_CC_CONVGRAD_H_
#define CONVGRAD_CC_CONVGRAD_H_

#include "convgrad/cc/client_session.h"
#include "convgrad/cc/gradients.h"
#include "convgrad/cc/ops/array_ops_internal.h"
#include "convgrad/cc/ops/math_ops_internal.h"
#include "convgrad/cc/ops/nn_ops_internal.h"
#include "convgrad/cc/ops/standard_ops.h"
#include "convgrad/cc/packs.h"
#include "convgrad/cc/scope.h"

#endif  // CONVGRAD_CC_CONVGRAD_H_
