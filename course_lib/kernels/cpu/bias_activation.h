// Forward and backward bodies of `activation(x + bias)`: one pass over x, and one over x and the gradient.

#pragma once

#include "rows.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/cpu/Gelu.h>

#include <numbers>

namespace course_lib {
namespace {

// 1 / (1 + exp(−z)). The exponent is never positive, so nothing overflows.
template <typename V>
inline V sigmoid(V z) {
  const V power = (V(0) - z.abs()).exp_u20();
  return V::blendv(V(1), power, z < V(0)) / (V(1) + power);
}

struct Silu {
  template <typename V>
  static V value(V z) {
    return z * sigmoid(z);
  }

  template <typename V>
  static V derivative(V z) {
    const V sigma = sigmoid(z);
    return sigma * (V(1) + z * (V(1) - sigma));
  }
};

struct Gelu {
  template <typename V>
  static V value(V z) {
    return z * cumulated(z, density(z));
  }

  template <typename V>
  static V derivative(V z) {
    const V phi = density(z);
    return cumulated(z, phi) + z * phi;
  }

 private:
  // the density of the normal distribution, exp(−z² / 2) / √(2π)
  template <typename V>
  static V density(V z) {
    using T = typename V::value_type;
    return (z * z * V(T(-0.5))).exp_u20() * V(T(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  }

  // Its integral up to z. In float32 it is Abramowitz and Stegun's formula 7.1.26, which PyTorch's own kernel uses too,
  // with an error of 7.5e-8; here it shares the exponential with the density.
  template <typename V>
  static V cumulated(V z, V phi) {
    using T = typename V::value_type;
    if constexpr (std::is_same_v<T, double>) {
      return V(0.5) * (V(1) + (z * V(0.5 * std::numbers::sqrt2)).erf());
    } else {
      const V t = V(1) / at::vec::fmadd(z.abs(), V(0.3275911 * 0.5 * std::numbers::sqrt2), V(1));
      V sum = at::vec::fmadd(t, V(1.061405429f), V(-1.453152027f));
      sum = at::vec::fmadd(t, sum, V(1.421413741f));
      sum = at::vec::fmadd(t, sum, V(-0.284496736f));
      sum = at::vec::fmadd(t, sum, V(0.254829592f));
      const V tail = phi * t * sum * V(1 / (std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
      return V::blendv(V(1) - tail, tail, z < V(0));
    }
  }
};

// z · (1 + tanh(u)) / 2 is z · sigmoid(2u), which needs one exponential.
struct GeluTanh {
  template <typename V>
  static V value(V z) {
    return z * sigmoid(twice_inner(z));
  }

  template <typename V>
  static V derivative(V z) {
    using T = typename V::value_type;
    const V sigma = sigmoid(twice_inner(z));
    const V slope = V(T(2 * at::native::kGeluBeta)) * (V(1) + V(T(3 * at::native::kGeluKappa)) * (z * z));
    return sigma * (V(1) + z * (V(1) - sigma) * slope);
  }

 private:
  template <typename V>
  static V twice_inner(V z) {
    using T = typename V::value_type;
    return V(T(2 * at::native::kGeluBeta)) * (z + V(T(at::native::kGeluKappa)) * (z * z * z));
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

template <typename T, typename Activation>
void activate_rows(const at::Tensor& x, const at::Tensor& bias, at::Tensor& output) {
  const auto from = rows_of<T>(x);
  const auto wide_bias = widened<T>(bias);
  T* const to = output.mutable_data_ptr<T>();
  const int64_t columns = x.size(-1), grain = std::max<int64_t>(kGrain / columns, 1);
  at::parallel_for(0, row_count(x), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      along_row<T>(columns, [&](int64_t i, int64_t count) {
        auto values = load(from[row] + i, count);
        for (int64_t part = 0; part < kParts<T>; ++part) {
          values[part] =
              Activation::value(values[part] + Vec<T>::loadu(wide_bias.data() + i + part * kPart<T>));
        }
        store(to + row * columns + i, values, count);
      });
    }
  });
}

// Returns an empty tensor with the strides that PyTorch gives to `x + bias`.
inline at::Tensor empty_sum(const at::Tensor& x, const at::Tensor& bias) {
  if (x.is_contiguous()) {
    return empty_rows(x);
  }
  const at::Tensor none;
  return at::TensorIteratorConfig().add_output(none).add_const_input(x).add_const_input(bias).build().output();
}

at::Tensor activate(const at::Tensor& x, const at::Tensor& bias, c10::string_view activation) {
  check_rows(x, {}, {bias});
  auto output = empty_sum(x, bias);
  if (output.numel() == 0) {
    return output;
  }
  auto contiguous = output.is_contiguous() ? output : empty_rows(x);
  with_activation(activation, [&](auto chosen) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "activate", [&] {
      activate_rows<scalar_t, decltype(chosen)>(x, bias, contiguous);
    });
  });
  return output.is_contiguous() ? output : output.copy_(contiguous);
}

template <typename T, typename Activation>
at::Tensor activation_gradients_of_rows(
    const at::Tensor& grad, const at::Tensor& x, const at::Tensor& bias, at::Tensor& grad_x) {
  const auto grads = rows_of<T>(grad), from = rows_of<T>(x);
  const auto wide_bias = widened<T>(bias);
  T* const to = grad_x.mutable_data_ptr<T>();
  const int64_t columns = x.size(-1);
  ColumnSums<T> sums(row_count(x), columns, 1);
  sums.for_each_block([&](int64_t begin, int64_t end, Wide<T>* of_bias) {
    for (int64_t row = begin; row < end; ++row) {
      along_row<T>(columns, [&](int64_t i, int64_t count) {
        auto found = load(grads[row] + i, count);
        const auto values = load(from[row] + i, count);
        for (int64_t part = 0; part < kParts<T>; ++part) {
          const int64_t at = i + part * kPart<T>;
          found[part] = found[part] * Activation::derivative(values[part] + Vec<T>::loadu(wide_bias.data() + at));
          (Vec<T>::loadu(of_bias + at) + found[part]).store(of_bias + at);
        }
        store(to + row * columns + i, found, count);
      });
    }
  });
  return sums.total(0, bias);
}

std::tuple<at::Tensor, at::Tensor> activation_gradients(
    const at::Tensor& grad, const at::Tensor& x, const at::Tensor& bias, c10::string_view activation) {
  check_rows(x, {grad}, {bias});
  auto grad_x = empty_rows(x);
  at::Tensor grad_bias;
  with_activation(activation, [&](auto chosen) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "activation_gradients", [&] {
      grad_bias = activation_gradients_of_rows<scalar_t, decltype(chosen)>(grad, x, bias, grad_x);
    });
  });
  return {grad_x, grad_bias};
}

}  // namespace
}  // namespace course_lib
