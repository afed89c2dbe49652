// TensorFlow's names for what is in namespace convgrad; every other header of this folder includes this one.
//
// Put this folder's parent on the include path instead of TensorFlow's own headers, never beside them. Two macros say
// what the program brings itself: CONVGRAD_WITH_EIGEN and CONVGRAD_WITH_ABSEIL.
#ifndef CONVGRAD_SHIM_TENSORFLOW_CONVGRAD_H_
#define CONVGRAD_SHIM_TENSORFLOW_CONVGRAD_H_

#include "convgrad/cc/convgrad.h"
#include "convgrad/cc/logging.h"

namespace tensorflow {

using namespace ::convgrad;

// Aliases: with `using namespace tensorflow`, `ops::Const` finds one namespace by two ways, which is no ambiguity. So a
// program may add to namespace tensorflow, but not to tensorflow::ops.
namespace ops = ::convgrad::ops;
namespace errors = ::convgrad::errors;
namespace error = ::convgrad::error;
namespace gtl = ::convgrad::gtl;
namespace strings = ::convgrad::strings;

namespace port {

// There is nothing to set up, and no flags of TensorFlow's to take out of the arguments.
inline void InitMain(const char* /*usage*/, int* /*argc*/, char*** /*argv*/) {}

}  // namespace port
}  // namespace tensorflow

#ifndef CONVGRAD_WITH_EIGEN
namespace Eigen {

using half = ::convgrad::half;
using bfloat16 = ::convgrad::bfloat16;

}  // namespace Eigen
#endif

#ifndef CONVGRAD_WITH_ABSEIL
namespace absl {

using ::convgrad::OkStatus;
using ::convgrad::Status;
using ::convgrad::StatusCode;
using ::convgrad::StatusCodeToString;
using ::convgrad::strings::StrAppend;
using ::convgrad::strings::StrCat;
using std::string_view;

namespace convgrad_shim {

// absl::Span<const T> is the slice; nothing of the client API takes a Span that may be written to.
template <class T>
struct SpanOf;
template <class T>
struct SpanOf<const T> {
  using Type = ::convgrad::gtl::ArraySlice<T>;
};

}  // namespace convgrad_shim

template <class T>
using Span = typename convgrad_shim::SpanOf<T>::Type;

inline Status CancelledError(string_view message) { return {StatusCode::kCancelled, message}; }
inline Status UnknownError(string_view message) { return {StatusCode::kUnknown, message}; }
inline Status InvalidArgumentError(string_view message) {
  return {StatusCode::kInvalidArgument, message};
}
inline Status NotFoundError(string_view message) { return {StatusCode::kNotFound, message}; }
inline Status ResourceExhaustedError(string_view message) {
  return {StatusCode::kResourceExhausted, message};
}
inline Status FailedPreconditionError(string_view message) {
  return {StatusCode::kFailedPrecondition, message};
}
inline Status OutOfRangeError(string_view message) { return {StatusCode::kOutOfRange, message}; }
inline Status UnimplementedError(string_view message) {
  return {StatusCode::kUnimplemented, message};
}
inline Status InternalError(string_view message) { return {StatusCode::kInternal, message}; }

inline bool IsInvalidArgument(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument;
}
inline bool IsNotFound(const Status& status) { return status.code() == StatusCode::kNotFound; }
inline bool IsResourceExhausted(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted;
}
inline bool IsFailedPrecondition(const Status& status) {
  return status.code() == StatusCode::kFailedPrecondition;
}
inline bool IsOutOfRange(const Status& status) { return status.code() == StatusCode::kOutOfRange; }
inline bool IsUnimplemented(const Status& status) {
  return status.code() == StatusCode::kUnimplemented;
}
inline bool IsInternal(const Status& status) { return status.code() == StatusCode::kInternal; }

}  // namespace absl
#endif

#endif  // CONVGRAD_SHIM_TENSORFLOW_CONVGRAD_H_
