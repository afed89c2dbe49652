// What is decided by the compiler and its flags.
#ifndef CONVGRAD_CC_CONFIG_H_
#define CONVGRAD_CC_CONFIG_H_

#include <exception>

#if !defined(__cplusplus) || (__cplusplus < 201703L && !defined(_MSVC_LANG))
#error "convgrad's headers need C++17"
#endif

// `CONVGRAD_TRY { ... } CONVGRAD_CATCH(return detail::OutOfMemory();)`: the standard library's own
// exceptions (no memory, no thread) become values before they could leave. Without exceptions both
// are empty, and the standard library ends the process where it would have thrown.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define CONVGRAD_TRY try
#define CONVGRAD_CATCH(...) \
  catch (const std::exception&) { __VA_ARGS__ }
#else
#define CONVGRAD_TRY
#define CONVGRAD_CATCH(...)
#endif

// Kernels of all ops take most of the time to compile. A program of several files may compile them
// once: with CONVGRAD_SEPARATE defined in every file and CONVGRAD_IMPLEMENTATION in one of them.
#if defined(CONVGRAD_SEPARATE)
#define CONVGRAD_TABLE_INLINE
#else
#define CONVGRAD_TABLE_INLINE inline
#endif

#ifndef TF_MUST_USE_RESULT
#define TF_MUST_USE_RESULT [[nodiscard]]
#endif

#endif  // CONVGRAD_CC_CONFIG_H_
