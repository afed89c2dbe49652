// Status: how everything here fails. Never by an exception, and a Status is copied without memory.
#ifndef CONVGRAD_CC_STATUS_H_
#define CONVGRAD_CC_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "convgrad/cc/config.h"
#include "convgrad/cc/str_cat.h"

namespace convgrad {

// The numbers are TensorFlow's, Abseil's and gRPC's.
enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

namespace error {

enum Code : int {
  OK = 0,
  CANCELLED = 1,
  UNKNOWN = 2,
  INVALID_ARGUMENT = 3,
  DEADLINE_EXCEEDED = 4,
  NOT_FOUND = 5,
  ALREADY_EXISTS = 6,
  PERMISSION_DENIED = 7,
  RESOURCE_EXHAUSTED = 8,
  FAILED_PRECONDITION = 9,
  ABORTED = 10,
  OUT_OF_RANGE = 11,
  UNIMPLEMENTED = 12,
  INTERNAL = 13,
  UNAVAILABLE = 14,
  DATA_LOSS = 15,
  UNAUTHENTICATED = 16,
};

}  // namespace error

// Programs for older versions of TensorFlow compare with error::Code.
constexpr bool operator==(StatusCode a, error::Code b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
constexpr bool operator!=(StatusCode a, error::Code b) { return !(a == b); }
#if !defined(__cpp_impl_three_way_comparison)  // C++20 turns the two above round by itself
constexpr bool operator==(error::Code a, StatusCode b) { return b == a; }
constexpr bool operator!=(error::Code a, StatusCode b) { return !(b == a); }
#endif

inline std::string StatusCodeToString(StatusCode code) {
  static constexpr const char* kNames[] = {
      "OK",           "CANCELLED",         "UNKNOWN",        "INVALID_ARGUMENT",
      "DEADLINE_EXCEEDED", "NOT_FOUND",    "ALREADY_EXISTS", "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
      "UNIMPLEMENTED", "INTERNAL",         "UNAVAILABLE",    "DATA_LOSS",
      "UNAUTHENTICATED"};
  const int at = static_cast<int>(code);
  return at >= 0 && at <= 16 ? kNames[at] : "";
}
inline std::ostream& operator<<(std::ostream& stream, StatusCode code) {
  return stream << StatusCodeToString(code);
}

class TF_MUST_USE_RESULT Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string_view message) noexcept : code_(code) {
    if (code == StatusCode::kOk) return;
    CONVGRAD_TRY { message_ = std::make_shared<const std::string>(message); }
    CONVGRAD_CATCH()  // the code is kept; the message is then the one for no memory
  }
  Status(error::Code code, std::string_view message) noexcept
      : Status(static_cast<StatusCode>(code), message) {}

  static Status OK() { return Status(); }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  int raw_code() const { return static_cast<int>(code_); }
  // TensorFlow's name until 2.11; message() since.
  const std::string& error_message() const {
    static const std::string kNone;
    static const std::string kNoMemory = "out of memory";
    if (message_) return *message_;
    return ok() ? kNone : kNoMemory;
  }
  std::string_view message() const { return error_message(); }

  std::string ToString() const {
    if (ok()) return "OK";
    return StatusCodeToString(code_) + ": " + error_message();
  }

  // Keeps the first error.
  void Update(const Status& other) {
    if (ok()) *this = other;
  }
  void IgnoreError() const {}

  bool operator==(const Status& other) const {
    return code_ == other.code_ && error_message() == other.error_message();
  }
  bool operator!=(const Status& other) const { return !(*this == other); }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::shared_ptr<const std::string> message_;
};

inline std::ostream& operator<<(std::ostream& stream, const Status& status) {
  return stream << status.ToString();
}

inline Status OkStatus() { return Status(); }

namespace detail {

// Made without memory.
inline Status OutOfMemory() {
  return Status(StatusCode::kResourceExhausted, std::string_view("out of memory"));
}

template <class... Parts>
Status Fail(StatusCode code, const Parts&... parts) {
  CONVGRAD_TRY { return Status(code, strings::StrCat(parts...)); }
  CONVGRAD_CATCH(return OutOfMemory();)
}

// The same error with more words behind or before it.
inline Status WithMessage(const Status& status, const std::string& message) {
  return Status(status.code(), message);
}

// What the macros below say before they end the process by the caller's own wish.
[[noreturn]] inline void Die(const char* file, int line, const Status& status) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, status.ToString().c_str());
  std::abort();
}

}  // namespace detail

namespace errors {

template <class... Parts>
Status Cancelled(const Parts&... parts) {
  return detail::Fail(StatusCode::kCancelled, parts...);
}
template <class... Parts>
Status Unknown(const Parts&... parts) {
  return detail::Fail(StatusCode::kUnknown, parts...);
}
template <class... Parts>
Status InvalidArgument(const Parts&... parts) {
  return detail::Fail(StatusCode::kInvalidArgument, parts...);
}
template <class... Parts>
Status DeadlineExceeded(const Parts&... parts) {
  return detail::Fail(StatusCode::kDeadlineExceeded, parts...);
}
template <class... Parts>
Status NotFound(const Parts&... parts) {
  return detail::Fail(StatusCode::kNotFound, parts...);
}
template <class... Parts>
Status AlreadyExists(const Parts&... parts) {
  return detail::Fail(StatusCode::kAlreadyExists, parts...);
}
template <class... Parts>
Status PermissionDenied(const Parts&... parts) {
  return detail::Fail(StatusCode::kPermissionDenied, parts...);
}
template <class... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return detail::Fail(StatusCode::kResourceExhausted, parts...);
}
template <class... Parts>
Status FailedPrecondition(const Parts&... parts) {
  return detail::Fail(StatusCode::kFailedPrecondition, parts...);
}
template <class... Parts>
Status Aborted(const Parts&... parts) {
  return detail::Fail(StatusCode::kAborted, parts...);
}
template <class... Parts>
Status OutOfRange(const Parts&... parts) {
  return detail::Fail(StatusCode::kOutOfRange, parts...);
}
template <class... Parts>
Status Unimplemented(const Parts&... parts) {
  return detail::Fail(StatusCode::kUnimplemented, parts...);
}
template <class... Parts>
Status Internal(const Parts&... parts) {
  return detail::Fail(StatusCode::kInternal, parts...);
}
template <class... Parts>
Status Unavailable(const Parts&... parts) {
  return detail::Fail(StatusCode::kUnavailable, parts...);
}
template <class... Parts>
Status DataLoss(const Parts&... parts) {
  return detail::Fail(StatusCode::kDataLoss, parts...);
}

inline bool IsCancelled(const Status& s) { return s.code() == StatusCode::kCancelled; }
inline bool IsUnknown(const Status& s) { return s.code() == StatusCode::kUnknown; }
inline bool IsInvalidArgument(const Status& s) {
  return s.code() == StatusCode::kInvalidArgument;
}
inline bool IsDeadlineExceeded(const Status& s) {
  return s.code() == StatusCode::kDeadlineExceeded;
}
inline bool IsNotFound(const Status& s) { return s.code() == StatusCode::kNotFound; }
inline bool IsAlreadyExists(const Status& s) { return s.code() == StatusCode::kAlreadyExists; }
inline bool IsPermissionDenied(const Status& s) {
  return s.code() == StatusCode::kPermissionDenied;
}
inline bool IsResourceExhausted(const Status& s) {
  return s.code() == StatusCode::kResourceExhausted;
}
inline bool IsFailedPrecondition(const Status& s) {
  return s.code() == StatusCode::kFailedPrecondition;
}
inline bool IsAborted(const Status& s) { return s.code() == StatusCode::kAborted; }
inline bool IsOutOfRange(const Status& s) { return s.code() == StatusCode::kOutOfRange; }
inline bool IsUnimplemented(const Status& s) { return s.code() == StatusCode::kUnimplemented; }
inline bool IsInternal(const Status& s) { return s.code() == StatusCode::kInternal; }
inline bool IsUnavailable(const Status& s) { return s.code() == StatusCode::kUnavailable; }
inline bool IsDataLoss(const Status& s) { return s.code() == StatusCode::kDataLoss; }

}  // namespace errors
}  // namespace convgrad

#ifndef TF_RETURN_IF_ERROR
#define TF_RETURN_IF_ERROR(...)                               \
  do {                                                        \
    ::convgrad::Status convgrad_status_ = (__VA_ARGS__);      \
    if (!convgrad_status_.ok()) return convgrad_status_;      \
  } while (0)
#endif
#ifndef TF_CHECK_OK
#define TF_CHECK_OK(...)                                                                  \
  do {                                                                                    \
    const ::convgrad::Status convgrad_status_ = (__VA_ARGS__);                            \
    if (!convgrad_status_.ok()) ::convgrad::detail::Die(__FILE__, __LINE__, convgrad_status_); \
  } while (0)
#endif

#endif  // CONVGRAD_CC_STATUS_H_
