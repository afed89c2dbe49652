#ifndef CONVGRAD_SHIM_ABSL_STRINGS_STRING_VIEW_H_
#define CONVGRAD_SHIM_ABSL_STRINGS_STRING_VIEW_H_

#ifdef CONVGRAD_WITH_ABSEIL
#include_next "absl/strings/string_view.h"
#else
#include "tensorflow/convgrad.h"
#endif

#endif  // CONVGRAD_SHIM_ABSL_STRINGS_STRING_VIEW_H_
