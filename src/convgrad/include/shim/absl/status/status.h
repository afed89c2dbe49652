#ifndef CONVGRAD_SHIM_ABSL_STATUS_STATUS_H_
#define CONVGRAD_SHIM_ABSL_STATUS_STATUS_H_

#ifdef CONVGRAD_WITH_ABSEIL
#include_next "absl/status/status.h"
#else
#include "tensorflow/convgrad.h"
#endif

#endif  // CONVGRAD_SHIM_ABSL_STATUS_STATUS_H_
