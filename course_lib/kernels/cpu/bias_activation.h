// Forward and backward bodies of `activation(x + bias)`: one pass over x, and one over x and the gradient.

#pragma once

#include "activations.h"
#include "rows.h"

#include <ATen/TensorIterator.h>

namespace course_lib {
namespace {

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
              Activation::template value<T>(values[part] + Vec<T>::loadu(wide_bias.data() + i + part * kPart<T>));
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
          found[part] = found[part] * Activation::template derivative<T>(values[part] + Vec<T>::loadu(wide_bias.data() + at));
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
