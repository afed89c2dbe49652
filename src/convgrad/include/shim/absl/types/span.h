#ifndef CONVGRAD_SHIM_ABSL_TYPES_SPAN_H_
#define CONVGRAD_SHIM_ABSL_TYPES_SPAN_H_

#ifdef CONVGRAD_WITH_ABSEIL
#include_next "absl/types/span.h"
#else
#include "tensorflow/convgrad.h"
#endif

#endif  // CONVGRAD_SHIM_ABSL_TYPES_SPAN_H_
