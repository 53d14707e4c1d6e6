#pragma once

#include "syncopate/codec/kernels/kernels.h"
#include "syncopate/codec/kernels/lanes.h"

// Which step a channel has. A few bits are worth the trouble: with a step from the largest magnitude alone,
// as published, 2 bits spend two of four levels on a handful of values.
//
// A step travels as a bf16: the range of fp32, so that gradients of any size keep theirs. Its sign says where
// levels lie. Positive: on whole steps, and zero is one of them. Negative: between them, at half a step.
namespace syncopate::codec::kernels::SYNCOPATE_ISA {

struct Step {
  double size;
  bool between = false;
  bool cover = false;  ///< no value may lie outside of the levels: the size is rounded up
};

/// Levels on both sides of zero: how far the upper half reaches, in steps.
SYNCOPATE_INLINE double reach(int bits) { return static_cast<double>(1 << (bits - 1)) - 0.5; }

/// Up to where values are coded before larger ones are cut off, in roots of the mean square: the least
/// squared error where they are normally distributed. Of 2 bits: what lies beyond belongs to the outer
/// levels.
SYNCOPATE_INLINE double usual_limit(int bits) { return bits == 2 ? 1.0 : bits == 3 ? 2.2 : 2.6; }

/// With what is drawn, rounding has no bias as long as values lie within the levels.
SYNCOPATE_INLINE Step drawn_step(int bits, double largest) {
  if (bits <= 2) return {2 * largest / ((1 << bits) - 1), true, true};
  return {largest / ((1 << (bits - 1)) - 1), false, true};
}

/// Four levels, h and 3h on both sides of zero, or -2h, -h, 0 and h: a channel that is mostly zeros, or has
/// few large values among small ones, is better off with a zero. For both, h has the least squared error
/// where those beyond the limit take the outer level (the one level); so either takes something off the
/// error, whatever the values.
SYNCOPATE_INLINE Step step_of_two_bits(double rows, double sum, double outer_count, double outer_sum) {
  const double inner_sum = sum > outer_sum ? sum - outer_sum : 0;
  const double projected = inner_sum + 3 * outer_sum, weight = rows + 8 * outer_count;
  const double between = projected * projected / weight;
  const double whole = outer_count > 0 ? outer_sum * outer_sum / outer_count : 0;
  if (whole > between) return {outer_sum / outer_count};
  return {2 * projected / weight, true};
}

/// How many values there would be if they were normally distributed and the others zero, which costs no
/// error.
SYNCOPATE_INLINE double usual_count(double rows, double sum, double squares) {
  const double count = 0.5 * 3.14159265358979 * sum * sum / squares;
  return count < rows ? count : rows;
}

/// The largest value is within reach, or values are cut off at the limit: what gives the smaller squared
/// error. A value that is not cut off costs a twelfth of the step's square, small ones at most their own.
SYNCOPATE_INLINE Step step_of_few_bits(int bits, double count, double largest, double squares, double limit,
                                       double outer_count, double outer_sum, double outer_squares) {
  const Step full{largest / reach(bits), false, true}, cut{limit / reach(bits)};
  if (!(limit > 0 && limit < largest)) return full;
  const double inner = count > outer_count ? count - outer_count : 0;
  const double of_inner = squares > outer_squares ? squares - outer_squares : 0;
  const double rounded = full.size * full.size / 12;
  const double of_full = (inner * rounded < of_inner ? inner * rounded : of_inner) + outer_count * rounded;
  const double off = outer_squares - 2 * limit * outer_sum + outer_count * limit * limit;
  return inner * cut.size * cut.size / 12 + off < of_full ? cut : full;
}

SYNCOPATE_INLINE uint16_t sent(Step step) {
  constexpr double kLeast = 0x1p-120, kMost = 0x1p120;  // its inverse is finite, and so is what is decoded
  if (!(step.size >= kLeast)) return 0;
  const auto size = static_cast<float>(step.size < kMost ? step.size : kMost);
  uint32_t bits;
  __builtin_memcpy(&bits, &size, sizeof bits);
  bits += step.cover ? 0xffffu : 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((bits >> 16) | (step.between ? 0x8000u : 0u));
}

static void limits_of_channels(int bits, int64_t rows, int64_t channels, Moments of, float* into) {
  const double times = usual_limit(bits);
  for (int64_t c = 0; c < channels; ++c) {
    const auto squares = static_cast<double>(of.squares[c]), all = static_cast<double>(rows);
    const double count = bits == 2 ? all : usual_count(all, static_cast<double>(of.sums[c]), squares);
    into[c] = static_cast<float>(times * __builtin_sqrt(squares / count));
  }
}

SYNCOPATE_INLINE Step step_of(int bits, bool drawn, double rows, double largest, double sum, double squares,
                              double limit, double outer_count, double outer_sum, double outer_squares) {
  if (drawn) return drawn_step(bits, largest);
  if (bits == 1) return {2 * sum / rows, true};  // the mean magnitude, with the value's sign
  if (bits == 2) return step_of_two_bits(rows, sum, outer_count, outer_sum);
  if (bits > 4) return {largest / reach(bits), false, true};
  return step_of_few_bits(bits, usual_count(rows, sum, squares), largest, squares, limit, outer_count,
                          outer_sum, outer_squares);
}

static void choose_steps(int bits, bool drawn, int64_t rows, int64_t channels, Moments of,
                         const float* limits, Beyond beyond, uint16_t* into) {
  const auto number = [](float x) { return static_cast<double>(x); };
  for (int64_t c = 0; c < channels; ++c) {
    if (of.largest[c] >= kInfinity) {
      into[c] = 0x7fc0;  // not a number, and so is what is decoded
      continue;
    }
    const float largest = load<float>(of.largest + c);
    into[c] = sent(step_of(bits, drawn, static_cast<double>(rows), number(largest), number(of.sums[c]),
                           number(of.squares[c]), number(limits[c]), number(beyond.counts[c]),
                           number(beyond.sums[c]), number(beyond.squares[c])));
  }
}

}  // namespace syncopate::codec::kernels::SYNCOPATE_ISA
