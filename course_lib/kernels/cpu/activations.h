// Activation functions and their derivatives on vectors, as exact as numbers of type T can show.
//
// Numbers of 16 bits are computed in float32, but with polynomials of fewer terms: their errors stay below a tenth of a
// unit of rounding. All coefficients are minimax fits; tests compare the functions with float64 at each such number.

#pragma once

#include "rows.h"

#include <ATen/native/cpu/Gelu.h>

#include <bit>
#include <initializer_list>
#include <numbers>

namespace course_lib {
namespace {

// A polynomial in x by Horner's scheme; the coefficient of the highest power comes first.
template <typename V>
inline V polynomial(V x, std::initializer_list<typename V::value_type> coefficients) {
  V sum(*coefficients.begin());
  for (auto next = coefficients.begin() + 1; next != coefficients.end(); ++next) {
    sum = at::vec::fmadd(x, sum, V(*next));
  }
  return sum;
}

// The exponents of the least and the greatest power: 0 and infinity.
template <typename T>
constexpr Wide<T> kLeast = std::is_same_v<T, double> ? -1100 : -127;
template <typename T>
constexpr Wide<T> kGreatest = std::is_same_v<T, double> ? 1024 : 128;

// 2^x for x from kLeast to kGreatest; not a number gives anything.
//
// x is an integer and a rest of at most a half, whose power is near 1. The integer is added to its exponent.
template <typename T>
inline Vec<T> power_of_two(Vec<T> x) {
  using V = Vec<T>;
  if constexpr (std::is_same_v<T, double>) {
    return (x * V(std::numbers::ln2)).exp();
  } else {
    const V magic(0x1.8p23f);  // a float so large has no fraction, and its lowest bits hold what was added
    const V shifted = x + magic, rest = x - (shifted - magic);
    V power;
    if constexpr (std::is_same_v<T, at::BFloat16>) {  // relative errors 1.0e-4, 2.8e-6 and 9.2e-8
      power = polynomial(rest, {0.0550089305f, 0.242210959f, 0.693282927f, 1});
    } else if constexpr (std::is_same_v<T, at::Half>) {
      power = polynomial(rest, {0.00958285304f, 0.0559064247f, 0.240240986f, 0.693124193f, 1});
    } else {
      power = polynomial(rest, {0.00132647271f, 0.00967151264f, 0.0555073374f, 0.240222421f, 0.693146978f, 1});
    }
    typedef int32_t Bits __attribute__((vector_size(sizeof(V))));
    return std::bit_cast<V>(std::bit_cast<Bits>(power) + (std::bit_cast<Bits>(shifted) << 23));
  }
}

// 1 + exp(−z), by which 1 is divided for the sigmoid of z
template <typename T>
inline Vec<T> divisor(Vec<T> z) {
  using V = Vec<T>;
  const V exponent = z * V(Wide<T>(-std::numbers::log2e));
  return V(1) + power_of_two<T>(at::vec::clamp(exponent, V(kLeast<T>), V(kGreatest<T>)));
}

struct Silu {
  template <typename T>
  static Vec<T> value(Vec<T> z) {
    return z / divisor<T>(z);
  }

  template <typename T>
  static Vec<T> derivative(Vec<T> z) {
    using V = Vec<T>;
    const V sigma = V(1) / divisor<T>(z);
    return sigma * at::vec::fmadd(z, V(1) - sigma, V(1));
  }
};

struct Gelu {
  // z · Φ(z) is max(z, 0) − |z| · Φ(−|z|). The maximum is computed such that −∞ gives NaN, as PyTorch does.
  template <typename T>
  static Vec<T> value(Vec<T> z) {
    using V = Vec<T>;
    if constexpr (std::is_same_v<T, double>) {
      return z * cumulated(z);
    } else {
      const V size = z.abs(), half = V(0.5f), bounded = at::vec::clamp_max(size, V(kTail));
      const V maximum = at::vec::fmadd(z, half, size * half);
      return at::vec::fnmadd(bounded, tail<T>(bounded), maximum);
    }
  }

  template <typename T>
  static Vec<T> derivative(Vec<T> z) {
    using V = Vec<T>;
    const V scale(Wide<T>(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
    const V exponent = z * z * V(Wide<T>(-0.5 * std::numbers::log2e));
    const V density = scale * power_of_two<T>(at::vec::clamp_min(exponent, V(kLeast<T>)));
    if constexpr (std::is_same_v<T, double>) {
      return at::vec::fmadd(z, density, cumulated(z));
    } else {
      const V below = tail<T>(at::vec::clamp_max(z.abs(), V(kTail)));
      return at::vec::fmadd(z, density, V::blendv(V(1) - below, below, z < V(0)));
    }
  }

 private:
  static constexpr float kTail = 9.5;  // beyond it all tails are taken as equal: they are below 1e-19

  using Doubles = at::vec::Vectorized<double>;
  static Doubles cumulated(Doubles z) {
    return Doubles(0.5) * (Doubles(1) + (z * Doubles(0.5 * std::numbers::sqrt2)).erf());
  }

  // Φ(−z) for z from 0 to kTail. Its logarithm is smooth, so a polynomial is near it.
  template <typename T>
  static Vec<T> tail(Vec<T> z) {
    if constexpr (std::is_same_v<T, float>) {  // an error of 7.5e-9
      return power_of_two<T>(polynomial(
          z,
          {-2.77204982e-06f,
           3.8620753e-05f,
           -0.00018254762f,
           -0.000145870111f,
           0.00707547177f,
           -0.0525050287f,
           -0.459204907f,
           -1.15110572f,
           -0.999999978f}));
    } else {  // a relative error of 6.8e-5 up to 4
      return power_of_two<T>(polynomial(
          z, {-0.000336556437f, 0.00598234941f, -0.0487548663f, -0.463427088f, -1.14949492f, -1.00009775f}));
    }
  }
};

// z · (1 + tanh(u)) / 2 is z · sigmoid(2u), which needs one exponential.
struct GeluTanh {
  template <typename T>
  static Vec<T> value(Vec<T> z) {
    return z / divisor<T>(twice_inner<T>(z));
  }

  template <typename T>
  static Vec<T> derivative(Vec<T> z) {
    using V = Vec<T>;
    const V sigma = V(1) / divisor<T>(twice_inner<T>(z));
    const V slope = polynomial(z * z, {Wide<T>(3 * kCubic), Wide<T>(kLinear)});
    return sigma * at::vec::fmadd(z * (V(1) - sigma), slope, V(1));
  }

 private:
  static constexpr double kLinear = 2 * at::native::kGeluBeta, kCubic = kLinear * at::native::kGeluKappa;

  template <typename T>
  static Vec<T> twice_inner(Vec<T> z) {
    return z * polynomial(z * z, {Wide<T>(kCubic), Wide<T>(kLinear)});
  }
};

template <typename Body>
void with_activation(c10::string_view name, const Body& body) {
  if (name == "silu") {
    body(Silu{});
  } else if (name == "gelu") {
    body(Gelu{});
  } else {
    TORCH_CHECK(name == "gelu_tanh", "unknown activation ", name);
    body(GeluTanh{});
  }
}

}  // namespace
}  // namespace course_lib
