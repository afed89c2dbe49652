// The three sums as loops that any compiler understands: what runs where no pack has the problem.
//
// Floats of every width are added up in double, int32 wraps around. A tap in the padding is skipped,
// not multiplied by zero. Every element of a result is added up by one thread in one order, so its
// bits depend neither on the number of threads nor on who runs which chunk.
//
// Inner loops run over channels, which must be neighbours in memory: operands in NCHW are turned
// first, as are half and bfloat16, which become float.
#ifndef CONVGRAD_CC_PLAIN_LOOPS_H_
#define CONVGRAD_CC_PLAIN_LOOPS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "convgrad/cc/convolution.h"
#include "convgrad/cc/memory.h"
#include "convgrad/cc/status.h"
#include "convgrad/cc/threads.h"
#include "convgrad/cc/types.h"

namespace convgrad {
namespace detail {

// What operands of a type are read as, and what their products are added up in.
template <class T>
struct PlainTypes {
  using Read = float;
  using Sum = double;
};
template <>
struct PlainTypes<double> {
  using Read = double;
  using Sum = double;
};
template <>
struct PlainTypes<std::int32_t> {
  using Read = std::int32_t;
  using Sum = std::uint32_t;  // wraps around, which signed sums may not
};

template <class T, class Sum>
inline T Rounded(Sum sum) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return static_cast<T>(static_cast<float>(sum));
  } else {
    return static_cast<T>(sum);
  }
}

inline Status NoMemoryForLoops(std::int64_t bytes) {
  return errors::ResourceExhausted("OOM when allocating ", bytes,
                                   " bytes for the loops of a convolution");
}

// sums[k] += values[c] * weights[c * stride + k], for all c in order. Four at a time, which saves
// three of four trips of the sums to memory.
template <class Read, class Sum>
inline void AddProducts(const Read* __restrict values, std::int64_t count,
                        const Read* __restrict weights, std::int64_t stride, std::int64_t width,
                        Sum* __restrict sums) {
  std::int64_t c = 0;
  for (; c + 4 <= count; c += 4) {
    const Sum a = static_cast<Sum>(values[c]), b = static_cast<Sum>(values[c + 1]);
    const Sum d = static_cast<Sum>(values[c + 2]), e = static_cast<Sum>(values[c + 3]);
    const Read* const w = weights + c * stride;
    for (std::int64_t k = 0; k < width; ++k) {
      Sum sum = sums[k];
      sum += a * static_cast<Sum>(w[k]);
      sum += b * static_cast<Sum>(w[stride + k]);
      sum += d * static_cast<Sum>(w[2 * stride + k]);
      sum += e * static_cast<Sum>(w[3 * stride + k]);
      sums[k] = sum;
    }
  }
  for (; c < count; ++c) {
    const Sum a = static_cast<Sum>(values[c]);
    const Read* const w = weights + c * stride;
    for (std::int64_t k = 0; k < width; ++k) sums[k] += a * static_cast<Sum>(w[k]);
  }
}

// sums[k] += a[k] * b[k].
template <class Read, class Sum>
inline void AddPairs(const Read* __restrict a, const Read* __restrict b, std::int64_t count,
                     Sum* __restrict sums) {
  for (std::int64_t k = 0; k < count; ++k) {
    sums[k] += static_cast<Sum>(a[k]) * static_cast<Sum>(b[k]);
  }
}

// A forward result or an input gradient: both are images that gather from an image, tap by tap. The
// weights are [tap][channel of the source in its group][channel of the result].
template <class T>
struct ImageLoops {
  using Read = typename PlainTypes<T>::Read;
  using Sum = typename PlainTypes<T>::Sum;

  AxisReads rows, cols;
  const Read* source;
  const Read* weights;
  T* result;
  std::int64_t source_h, source_w, result_h, result_w, window_w;
  std::int64_t groups, source_c, result_c;  // channels of one group
  bool nhwc;

  std::int64_t items(std::int64_t batch) const { return batch * result_h; }

  void Item(std::int64_t item, Sum* sums) const {
    const std::int64_t image = item / result_h, row = item % result_h;
    const std::int64_t channels = groups * result_c;
    const Reads tall = rows(row);
    for (std::int64_t col = 0; col < result_w; ++col) {
      const Reads wide = cols(col);
      std::fill(sums, sums + channels, Sum{});
      for (std::int64_t i = 0; i < tall.count; ++i) {
        const std::int64_t line = image * source_h + tall.cell + i * tall.cell_step;
        const std::int64_t taps = (tall.tap + i * tall.tap_step) * window_w;
        for (std::int64_t j = 0; j < wide.count; ++j) {
          const std::int64_t cell = line * source_w + wide.cell + j * wide.cell_step;
          const std::int64_t tap = taps + wide.tap + j * wide.tap_step;
          Tap(source + cell * groups * source_c, weights + tap * source_c * channels, sums);
        }
      }
      Store(sums, image, row, col);
    }
  }

 private:
  void Tap(const Read* x, const Read* w, Sum* sums) const {
    const std::int64_t channels = groups * result_c;
    if (source_c == 1 && result_c == 1) {
      AddPairs(x, w, groups, sums);
    } else if (result_c == 1) {
      for (std::int64_t c = 0; c < source_c; ++c) {
        for (std::int64_t g = 0; g < groups; ++g) {
          sums[g] += static_cast<Sum>(x[g * source_c + c]) * static_cast<Sum>(w[c * groups + g]);
        }
      }
    } else {
      for (std::int64_t g = 0; g < groups; ++g) {
        AddProducts(x + g * source_c, source_c, w + g * result_c, channels, result_c,
                    sums + g * result_c);
      }
    }
  }

  void Store(const Sum* sums, std::int64_t image, std::int64_t row, std::int64_t col) const {
    const std::int64_t channels = groups * result_c, pixels = result_h * result_w;
    const std::int64_t pixel = row * result_w + col;
    const std::int64_t step = nhwc ? 1 : pixels;
    T* to = result + image * pixels * channels + pixel * (nhwc ? channels : 1);
    for (std::int64_t k = 0; k < channels; ++k) to[k * step] = Rounded<T>(sums[k]);
  }
};

// A filter gradient: an item is one tap and a block of its channels.
template <class T>
struct FilterLoops {
  using Read = typename PlainTypes<T>::Read;
  using Sum = typename PlainTypes<T>::Sum;
  static constexpr std::int64_t kBlock = 8;         // input channels of one group
  static constexpr std::int64_t kChannels = 256;  // output channels of groups of one input channel

  const Convolution& conv;
  const Read* input;
  const Read* grad;
  T* result;
  std::int64_t groups, group_in, group_out;
  std::int64_t group_block, blocks;  // groups of a block where each has one channel; blocks of a tap

  FilterLoops(const Convolution& of, const Read* x, const Read* g, T* to)
      : conv(of), input(x), grad(g), result(to), groups(of.problem.groups), group_in(of.group_in()),
        group_out(of.group_out()), group_block(std::max<std::int64_t>(1, kChannels / group_out)),
        blocks(group_in == 1 ? CeilDivide(groups, group_block)
                             : groups * CeilDivide(group_in, kBlock)) {}

  std::int64_t sums() const {
    return group_out * (group_in == 1 ? std::min(group_block, groups) : kBlock);
  }
  std::int64_t items() const { return conv.rows.window * conv.cols.window * blocks; }

  void Item(std::int64_t item, Sum* sums) const {
    const std::int64_t tap = item / blocks, block = item % blocks;
    const Span tall = TapSpan(conv.rows, tap / conv.cols.window);
    const Span wide = TapSpan(conv.cols, tap % conv.cols.window);
    if (group_in == 1) {
      const std::int64_t first = block * group_block, last = std::min(first + group_block, groups);
      Add(tall, wide, first, first * group_out, sums, (last - first) * group_out,
          [&](const Read* x, const Read* g) { Groups(x, g, last - first, sums); });
      T* to = result + tap * groups * group_out + first * group_out;
      for (std::int64_t k = 0; k < (last - first) * group_out; ++k) to[k] = Rounded<T>(sums[k]);
      return;
    }
    const std::int64_t in_group = CeilDivide(group_in, kBlock), group = block / in_group;
    const std::int64_t first = block % in_group * kBlock;
    const std::int64_t count = std::min(kBlock, group_in - first);
    Add(tall, wide, group * group_in + first, group * group_out, sums, count * group_out,
        [&](const Read* x, const Read* g) {
          for (std::int64_t c = 0; c < count; ++c) {
            AddProducts(x + c, 1, g, 0, group_out, sums + c * group_out);
          }
        });
    for (std::int64_t c = 0; c < count; ++c) {
      T* to = result + (tap * group_in + first + c) * groups * group_out + group * group_out;
      for (std::int64_t k = 0; k < group_out; ++k) to[k] = Rounded<T>(sums[c * group_out + k]);
    }
  }

 private:
  void Groups(const Read* x, const Read* g, std::int64_t count, Sum* sums) const {
    if (group_out == 1) return AddPairs(x, g, count, sums);
    for (std::int64_t i = 0; i < count; ++i) {
      AddProducts(x + i, 1, g + i * group_out, 0, group_out, sums + i * group_out);
    }
  }

  // Calls body(x, g) for every pixel that the tap sees, from channels on.
  template <class Body>
  void Add(const Span& tall, const Span& wide, std::int64_t in_channel, std::int64_t out_channel,
           Sum* sums, std::int64_t count, const Body& body) const {
    std::fill(sums, sums + count, Sum{});
    const Axis &rows = conv.rows, &cols = conv.cols;
    const std::int64_t in_c = groups * group_in, out_c = groups * group_out;
    for (std::int64_t n = 0; n < conv.problem.batch; ++n) {
      for (std::int64_t p = tall.first; p < tall.last; ++p) {
        const std::int64_t h = tall.start + (p - tall.first) * rows.stride;
        const Read* x = input + ((n * rows.size + h) * cols.size + wide.start) * in_c + in_channel;
        const Read* g = grad + ((n * rows.out + p) * cols.out + wide.first) * out_c + out_channel;
        for (std::int64_t q = wide.first; q < wide.last; ++q) {
          body(x, g);
          // Not behind the last pixel: such a pointer may not even be made.
          if (q + 1 < wide.last) {
            x += cols.stride * in_c;
            g += out_c;
          }
        }
      }
    }
  }
};

// An operand as the loops read it, turned to NHWC and widened where it is neither.
template <class T>
class PlainOperand {
 public:
  using Read = typename PlainTypes<T>::Read;

  // An image of `pixels` pixels in each of `batch` planes.
  bool Image(const T* data, bool nhwc, std::int64_t batch, std::int64_t pixels,
             std::int64_t channels) {
    if (nhwc || channels == 1 || pixels == 1) return Copy(data, batch * pixels * channels);
    Read* to = Make(batch * pixels * channels);
    if (to == nullptr) return false;
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t i = 0; i < pixels; ++i) {
          to[(n * pixels + i) * channels + c] =
              static_cast<Read>(data[(n * channels + c) * pixels + i]);
        }
      }
    }
    return true;
  }

  // A filter with its two depths changed: [tap][k][g * group_in + c] of [tap][c][g * group_out + k].
  bool Turned(const T* data, std::int64_t taps, std::int64_t groups, std::int64_t group_in,
              std::int64_t group_out) {
    if (group_in == 1 && group_out == 1) return Copy(data, taps * groups);
    Read* to = Make(taps * group_in * groups * group_out);
    if (to == nullptr) return false;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t c = 0; c < group_in; ++c) {
        for (std::int64_t g = 0; g < groups; ++g) {
          for (std::int64_t k = 0; k < group_out; ++k) {
            to[((tap * group_out + k) * groups + g) * group_in + c] =
                static_cast<Read>(data[((tap * group_in + c) * groups + g) * group_out + k]);
          }
        }
      }
    }
    return true;
  }

  bool Copy(const T* data, std::int64_t count) {
    if constexpr (std::is_same_v<T, Read>) {
      static_cast<void>(count);
      read_ = data;
      return true;
    } else {
      Read* to = Make(count);
      for (std::int64_t i = 0; to != nullptr && i < count; ++i) to[i] = static_cast<Read>(data[i]);
      return to != nullptr;
    }
  }

  const Read* get() const { return read_; }

 private:
  Read* Make(std::int64_t count) {
    std::int64_t bytes = 0;
    if (!CheckedMultiply(count, sizeof(Read), &bytes)) return nullptr;
    if (!bytes_.Reserve(static_cast<std::size_t>(bytes))) return nullptr;
    Read* const to = static_cast<Read*>(bytes_.data());
    read_ = to;
    return to;
  }

  Bytes bytes_;
  const Read* read_ = nullptr;
};

// Runs loops(item, sums) for all items on at most `workers` threads, each with sums of its own.
template <class Sum, class Loops>
inline Status RunItems(const Loops& loops, std::int64_t items, std::int64_t sums, int workers) {
  const std::int64_t apart = CeilDivide(sums, 16) * 16;  // no two workers in one cache line
  workers = static_cast<int>(std::min<std::int64_t>(workers, items));
  const std::int64_t bytes = apart * workers * static_cast<std::int64_t>(sizeof(Sum));
  Bytes memory;
  if (!memory.Reserve(static_cast<std::size_t>(bytes))) return NoMemoryForLoops(bytes);
  Sum* const all = static_cast<Sum*>(memory.data());
  const std::int64_t claim = std::max<std::int64_t>(1, items / (std::int64_t{8} * workers));
  ForChunks(CeilDivide(items, claim), workers, [&](std::int64_t chunk, int worker) {
    const std::int64_t end = std::min(items, (chunk + 1) * claim);
    for (std::int64_t item = chunk * claim; item < end; ++item) {
      loops.Item(item, all + worker * apart);
    }
  });
  return Status();
}

// Below this many products another thread takes longer to come than it helps.
constexpr double kProductsWorthAThread = 30000;

inline int PlainWorkers(const Convolution& conv, int threads) {
  const cg_problem& p = conv.problem;
  const double taps = static_cast<double>(conv.rows.window) * static_cast<double>(conv.cols.window);
  const double outputs = static_cast<double>(p.batch) * static_cast<double>(conv.rows.out) *
                         static_cast<double>(conv.cols.out) * static_cast<double>(p.out_c);
  const double products = outputs * taps * static_cast<double>(conv.group_in());
  const double worth = products / kProductsWorthAThread;
  return worth < threads ? std::max(1, static_cast<int>(worth)) : std::max(1, threads);
}

// Computes a convolution that is not empty. Operands are (input, filter), (filter, out_backprop) or
// (input, out_backprop).
template <class T>
inline Status RunPlainLoops(const Convolution& conv, const T* first, const T* second, T* result,
                            int threads) {
  using Sum = typename PlainTypes<T>::Sum;
  const cg_problem& p = conv.problem;
  const bool nhwc = p.layout == CG_NHWC;
  const int workers = PlainWorkers(conv, threads);
  const std::int64_t cells = p.in_h * p.in_w, outputs = conv.rows.out * conv.cols.out;
  const std::int64_t taps = conv.rows.window * conv.cols.window;
  PlainOperand<T> a, b;
  if (p.kind == CG_FILTER_GRADIENT) {
    if (!a.Image(first, nhwc, p.batch, cells, p.in_c) ||
        !b.Image(second, nhwc, p.batch, outputs, p.out_c)) {
      return NoMemoryForLoops(p.batch * (cells * p.in_c + outputs * p.out_c) *
                              static_cast<std::int64_t>(sizeof(T)));
    }
    const FilterLoops<T> loops(conv, a.get(), b.get(), result);
    return RunItems<Sum>(loops, loops.items(), loops.sums(), workers);
  }
  const bool forward = p.kind == CG_FORWARD;
  const bool ready =
      forward ? a.Image(first, nhwc, p.batch, cells, p.in_c) &&
                    b.Copy(second, taps * conv.group_in() * p.out_c)
              : a.Image(second, nhwc, p.batch, outputs, p.out_c) &&
                    b.Turned(first, taps, p.groups, conv.group_in(), conv.group_out());
  if (!ready) {
    return NoMemoryForLoops((p.batch * (forward ? cells * p.in_c : outputs * p.out_c) +
                             taps * conv.group_in() * p.out_c) *
                            static_cast<std::int64_t>(sizeof(T)));
  }
  ImageLoops<T> loops{AxisReads(conv.rows, !forward),
                      AxisReads(conv.cols, !forward),
                      a.get(),
                      b.get(),
                      result,
                      forward ? p.in_h : conv.rows.out,
                      forward ? p.in_w : conv.cols.out,
                      forward ? conv.rows.out : p.in_h,
                      forward ? conv.cols.out : p.in_w,
                      conv.cols.window,
                      p.groups,
                      forward ? conv.group_in() : conv.group_out(),
                      forward ? conv.group_out() : conv.group_in(),
                      nhwc};
  return RunItems<Sum>(loops, loops.items(p.batch), forward ? p.out_c : p.in_c, workers);
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_PLAIN_LOOPS_H_
