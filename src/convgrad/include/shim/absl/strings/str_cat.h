#ifndef CONVGRAD_SHIM_ABSL_STRINGS_STR_CAT_H_
#define CONVGRAD_SHIM_ABSL_STRINGS_STR_CAT_H_

#ifdef CONVGRAD_WITH_ABSEIL
#include_next "absl/strings/str_cat.h"
#else
#include "tensorflow/convgrad.h"
#endif

#endif  // CONVGRAD_SHIM_ABSL_STRINGS_STR_CAT_H_
