// LOG, VLOG and CHECK as programs for TensorFlow use them. Nothing of convgrad itself logs or
// checks: only what a program writes ends its process, by LOG(FATAL) or a CHECK that does not hold.
#ifndef CONVGRAD_CC_LOGGING_H_
#define CONVGRAD_CC_LOGGING_H_

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "convgrad/cc/config.h"

namespace convgrad {

constexpr int INFO = 0;
constexpr int WARNING = 1;
constexpr int ERROR = 2;
constexpr int FATAL = 3;
constexpr int NUM_SEVERITIES = 4;

namespace detail {

// The number in an environment variable, 0 if there is none.
inline int LevelFrom(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : static_cast<int>(std::strtol(text, nullptr, 10));
}

inline bool Logs(int severity) {
  static const int lowest = LevelFrom("TF_CPP_MIN_LOG_LEVEL");
  return severity >= lowest || severity == FATAL;
}

inline bool LogsVerbose(int level) {
  static const int most = LevelFrom("TF_CPP_MAX_VLOG_LEVEL");
  return level <= most;
}

// One line to stderr, written when the statement ends.
class LogLine {
 public:
  LogLine(const char* file, int line, int severity) : file_(file), line_(line), severity_(severity) {}
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  ~LogLine() {
    CONVGRAD_TRY {
      const std::string text = stream_.str();
      std::fprintf(stderr, "%c %s:%d] %s\n", "IWEF"[severity_ & 3], file_, line_, text.c_str());
    }
    CONVGRAD_CATCH()
    if (severity_ == FATAL) std::abort();
  }
  std::ostream& stream() { return stream_; }

 private:
  const char* file_;
  int line_;
  int severity_;
  std::ostringstream stream_;
};

// Makes both branches of ?: void; & binds less tightly than <<.
struct LogVoidify {
  void operator&(std::ostream&) const {}
};

template <class T>
T CheckNotNull(const char* file, int line, const char* text, T&& value) {
  if (value == nullptr) LogLine(file, line, FATAL).stream() << text;
  return std::forward<T>(value);
}

}  // namespace detail
}  // namespace convgrad

#ifndef LOG
#define CONVGRAD_LOG_IF(severity, condition)      \
  !(condition) ? (void)0                          \
               : ::convgrad::detail::LogVoidify() & \
                     ::convgrad::detail::LogLine(__FILE__, __LINE__, ::convgrad::severity).stream()
#define LOG(severity) CONVGRAD_LOG_IF(severity, ::convgrad::detail::Logs(::convgrad::severity))
#define LOG_IF(severity, condition) \
  CONVGRAD_LOG_IF(severity, ::convgrad::detail::Logs(::convgrad::severity) && (condition))
#define VLOG_IS_ON(level) ::convgrad::detail::LogsVerbose(level)
#define VLOG(level) CONVGRAD_LOG_IF(INFO, VLOG_IS_ON(level))
#ifdef NDEBUG
#define DLOG(severity) CONVGRAD_LOG_IF(severity, false)
#else
#define DLOG(severity) LOG(severity)
#endif
#endif  // LOG

#ifndef CHECK
#define CHECK(condition)                                                               \
  (condition) ? (void)0                                                                \
              : ::convgrad::detail::LogVoidify() &                                     \
                    ::convgrad::detail::LogLine(__FILE__, __LINE__, ::convgrad::FATAL) \
                        .stream()                                                      \
                        << "Check failed: " #condition " "
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_NOTNULL(value)                               \
  ::convgrad::detail::CheckNotNull(__FILE__, __LINE__,     \
                                   "'" #value "' Must be non NULL", (value))
#define QCHECK(condition) CHECK(condition)
#ifdef NDEBUG
#define DCHECK(condition) CHECK(true || (condition))
#else
#define DCHECK(condition) CHECK(condition)
#endif
#define DCHECK_EQ(a, b) DCHECK((a) == (b))
#define DCHECK_NE(a, b) DCHECK((a) != (b))
#define DCHECK_LT(a, b) DCHECK((a) < (b))
#define DCHECK_LE(a, b) DCHECK((a) <= (b))
#define DCHECK_GT(a, b) DCHECK((a) > (b))
#define DCHECK_GE(a, b) DCHECK((a) >= (b))
#endif  // CHECK

#endif  // CONVGRAD_CC_LOGGING_H_
