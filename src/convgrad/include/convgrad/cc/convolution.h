// One convolution, fully described and holding no data: what packs are asked for, what plain loops
// add up, and what a recording says.
//
// A convolution has G groups of `group_in` input and `group_out` output channels. Dense is G = 1.
// Depthwise with multiplier M is G = C groups of 1 and M: its filter [kh, kw, C, M] is, number for
// number, the grouped filter [kh, kw, 1, C*M]. So the six operations are three sums over one set of
// sizes.
#ifndef CONVGRAD_CC_CONVOLUTION_H_
#define CONVGRAD_CC_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <string>

#include "convgrad/cc/geometry.h"
#include "convgrad/cc/types.h"
#include "convgrad_pack.h"

namespace convgrad {
namespace detail {

using FourSizes = std::array<std::int64_t, 4>;

// The arguments that are no arrays, checked, as (rows, columns).
struct ConvSettings {
  std::int64_t strides[2] = {1, 1};
  std::int64_t dilations[2] = {1, 1};
  PaddingKind padding = PaddingKind::kSame;
  std::int64_t pads[2][2] = {{0, 0}, {0, 0}};  // of kExplicit
  bool nhwc = true;

  int batch_at() const { return 0; }
  int channels_at() const { return nhwc ? 3 : 1; }
  int rows_at() const { return nhwc ? 1 : 2; }
};

struct Convolution {
  cg_problem problem = {};
  Axis rows, cols;
  std::int64_t multiplier = 0;  // of a depthwise one; without channels no quotient tells it

  bool forward() const { return problem.kind == CG_FORWARD; }
  std::int64_t group_in() const { return problem.groups ? problem.in_c / problem.groups : 1; }
  std::int64_t group_out() const { return problem.groups ? problem.out_c / problem.groups : 0; }

  FourSizes InputShape() const { return Image(problem.in_h, problem.in_w, problem.in_c); }
  FourSizes OutputShape() const { return Image(rows.out, cols.out, problem.out_c); }
  FourSizes FilterShape() const {
    if (problem.depthwise != 0) return {rows.window, cols.window, problem.in_c, multiplier};
    return {rows.window, cols.window, group_in(), problem.out_c};
  }
  FourSizes ResultShape() const {
    if (problem.kind == CG_FORWARD) return OutputShape();
    return problem.kind == CG_INPUT_GRADIENT ? InputShape() : FilterShape();
  }

  // Whether some operand or the result has no elements: the result is then all zeros.
  bool IsEmpty() const {
    const auto none = [](const FourSizes& shape) {
      for (const std::int64_t size : shape) {
        if (size == 0) return true;
      }
      return false;
    };
    return none(InputShape()) || none(FilterShape()) || none(OutputShape());
  }

 private:
  FourSizes Image(std::int64_t height, std::int64_t width, std::int64_t channels) const {
    if (problem.layout == CG_NHWC) return {problem.batch, height, width, channels};
    return {problem.batch, channels, height, width};
  }
};

inline const char* KindName(const cg_problem& problem) {
  static const char* const names[2][3] = {
      {"conv2d", "conv2d_backprop_input", "conv2d_backprop_filter"},
      {"depthwise_conv2d", "depthwise_conv2d_backprop_input", "depthwise_conv2d_backprop_filter"}};
  return names[problem.depthwise != 0 ? 1 : 0][problem.kind];
}

// The text that `convgrad export` reads, in its one canonical spelling. No memory is asked for, so
// that recording cannot fail; the longest line has some 440 letters.
class ProblemText {
 public:
  explicit ProblemText(const Convolution& conv) {
    const cg_problem& p = conv.problem;
    Put(KindName(p));
    PutShape(conv.InputShape());
    PutShape(conv.FilterShape());
    PutSteps(" strides=", p.stride_h, p.stride_w);
    PutSteps(" dilations=", p.dilation_h, p.dilation_w);
    Put(" padding=");
    PutPair(p.pad_top, p.pad_bottom);
    Put(":");
    PutPair(p.pad_left, p.pad_right);
    if (p.layout == CG_NCHW) Put(" data_format=NCHW");
    if (p.dtype == CG_DOUBLE) Put(" dtype=float64");
    if (p.dtype == CG_HALF) Put(" dtype=float16");
    if (p.dtype == CG_BFLOAT16) Put(" dtype=bfloat16");
    if (p.dtype == static_cast<std::int32_t>(DT_INT32)) Put(" dtype=int32");
    text_[length_] = '\0';
  }

  const char* c_str() const { return text_; }
  std::size_t size() const { return length_; }

 private:
  void Put(const char* word) {
    for (; *word != '\0' && length_ + 1 < sizeof(text_); ++word) text_[length_++] = *word;
  }
  void Put(std::int64_t number) {
    char digits[24];
    char* at = digits + sizeof(digits);
    *--at = '\0';
    do {
      *--at = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    Put(at);
  }
  void PutPair(std::int64_t a, std::int64_t b) {
    Put(a);
    Put(",");
    Put(b);
  }
  void PutShape(const FourSizes& shape) {
    const char* sign = " ";
    for (const std::int64_t size : shape) {
      Put(sign);
      Put(size);
      sign = "x";
    }
  }
  void PutSteps(const char* key, std::int64_t rows, std::int64_t cols) {
    if (rows == 1 && cols == 1) return;
    Put(key);
    Put(rows);
    if (rows == cols) return;
    Put(",");
    Put(cols);
  }

  char text_[640];
  std::size_t length_ = 0;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_CONVOLUTION_H_
