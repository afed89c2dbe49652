#ifndef CONVGRAD_SHIM_ABSL_LOG_CHECK_H_
#define CONVGRAD_SHIM_ABSL_LOG_CHECK_H_

#ifdef CONVGRAD_WITH_ABSEIL
#include_next "absl/log/check.h"
#else
#include "tensorflow/convgrad.h"
#endif

#endif  // CONVGRAD_SHIM_ABSL_LOG_CHECK_H_
