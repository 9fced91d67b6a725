// Forward and backward bodies of the operators that add to a residual and normalise rows: one pass over the rows.
//
// A row's sum is kept in a buffer that stays in the first cache, where its statistics are taken. The backward pass
// computes sum and statistics again instead of reading them from memory.

#pragma once

#include "philox.h"
#include "rows.h"

#include <cmath>
#include <optional>

namespace course_lib {
namespace {

// The operands of a call; without a vector x is taken as it is, and without a bias the norm is RMSNorm.
struct Call {
  const at::Tensor& x;
  const std::optional<at::Tensor>& vector;
  const at::Tensor& residual;
  const at::Tensor& weight;
  const std::optional<at::Tensor>& bias;
  const std::optional<at::Tensor>& seed;
  double p;
  double eps;
  bool multiplies;  // by the vector, instead of adding it

  void check(at::ArrayRef<at::Tensor> rows) const {
    check_rows(x, rows, {weight, vector.value_or(weight), bias.value_or(weight)});
    TORCH_CHECK(x.size(-1) > 0, "expected rows of at least one element");
    TORCH_CHECK(
        !seed || (seed->numel() == 1 && seed->scalar_type() == at::kLong && seed->device().is_cpu()),
        "expected a seed of one int64 on the CPU");
  }
};

template <typename T>
class Normalisation {
 public:
  using Number = Wide<T>;
  using V = Vec<T>;
  static constexpr int64_t kLanes = kPart<T>;

  explicit Normalisation(const Call& call)
      : columns(call.x.size(-1)),
        width(padded<T>(columns)),
        rows(row_count(call.x)),
        layer_norm(call.bias.has_value()),
        multiplies(call.multiplies),
        adds(call.vector.has_value() && !call.multiplies),
        eps(static_cast<Number>(call.eps)),
        x(rows_of<T>(call.x)),
        residual(rows_of<T>(call.residual)),
        weight(widened<T>(call.weight)),
        vector(call.vector ? widened<T>(*call.vector) : std::vector<Number>()),
        bias(call.bias ? widened<T>(*call.bias) : std::vector<Number>()) {
    if (call.seed) {
      dropout.emplace(call.seed->template item<int64_t>(), call.p);
    }
  }

  // Writes the sum that is to be normalised, and the factors of dropout if there are any; returns what to add to the
  // sum and then to multiply it by, so that it is normalised.
  std::pair<Number, Number> add(int64_t row, Number* sum, Number* factors) const {
    if (dropout) {
      dropout->fill(factors, row, columns);
    }
    V total(0);
    // Copies of the members, since each store of a vector would make the compiler read the members again.
    const T *const from = x[row], *const onto = residual[row];
    const Number* const operand = vector.data();
    const bool adding = adds, multiplying = multiplies, dropping = dropout.has_value();
    along_row<T>(columns, [&](int64_t i, int64_t count) {
      const auto branch = load(from + i, count), other = load(onto + i, count);
      for (int64_t part = 0; part < kParts<T>; ++part) {
        const int64_t at = i + part * kLanes;
        V value = branch[part];
        if (adding) {
          value = value + V::loadu(operand + at);
        } else if (multiplying) {
          value = value * V::loadu(operand + at);
        }
        if (dropping) {
          value = value * V::loadu(factors + at);
        }
        value = value + other[part];
        value.store(sum + at);
        total = total + value;
      }
    });
    const Number shift = layer_norm ? -all_of(total) / columns : Number(0);
    return {shift, Number(1) / std::sqrt(squares(sum, shift) / columns + eps)};
  }

  // Returns the sum of the squares of a row, each number plus `shift`.
  Number squares(const Number* sum, Number shift) const {
    V found[4] = {V(0), V(0), V(0), V(0)};
    const V by(shift);
    int64_t at = 0;
    for (; at + 4 * kLanes <= columns; at += 4 * kLanes) {
      for (int64_t turn = 0; turn < 4; ++turn) {
        const V value = V::loadu(sum + at + turn * kLanes) + by;
        found[turn] = at::vec::fmadd(value, value, found[turn]);
      }
    }
    Number rest = 0;
    for (; at < columns; ++at) {
      rest += (sum[at] + shift) * (sum[at] + shift);
    }
    return rest + all_of((found[0] + found[1]) + (found[2] + found[3]));
  }

  static Number all_of(V values) {
    return at::vec::vec_reduce_all<Number>([](V& a, V& b) { return a + b; }, values);
  }

  const int64_t columns, width, rows;
  const bool layer_norm, multiplies, adds;
  const Number eps;
  const Rows<T> x, residual;
  const std::vector<Number> weight, vector, bias;
  std::optional<Dropout> dropout;
};

template <typename T>
void normalise_rows(const Call& call, at::Tensor& output) {
  const Normalisation<T> norm(call);
  using V = Vec<T>;
  T* const to = output.mutable_data_ptr<T>();
  const int64_t columns = norm.columns;
  at::parallel_for(0, norm.rows, std::max<int64_t>(kGrain / columns, 1), [&](int64_t begin, int64_t end) {
    std::vector<Wide<T>> buffer(norm.width, 0), factors(norm.dropout ? norm.width : 0, 0);
    Wide<T>* const sum = buffer.data();
    const Wide<T> *const weight = norm.weight.data(), *const bias = norm.bias.data();
    const bool layer_norm = norm.layer_norm;
    for (int64_t row = begin; row < end; ++row) {
      const auto [shift, scale] = norm.add(row, sum, factors.data());
      along_row<T>(columns, [&, shift = V(shift), scale = V(scale)](int64_t i, int64_t count) {
        Vecs<T> found;
        for (int64_t part = 0; part < kParts<T>; ++part) {
          const int64_t at = i + part * kPart<T>;
          const V value = V::loadu(sum + at), factor = V::loadu(weight + at);
          found[part] = layer_norm ? at::vec::fmadd((value + shift) * scale, factor, V::loadu(bias + at))
                                   : value * scale * factor;
        }
        store(to + row * columns + i, found, count);
      });
    }
  });
}

at::Tensor normalise(
    const at::Tensor& x,
    const std::optional<at::Tensor>& vector,
    const at::Tensor& residual,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& seed,
    double p,
    double eps,
    bool multiplies) {
  const Call call{x, vector, residual, weight, bias, seed, p, eps, multiplies};
  call.check({residual});
  auto output = empty_rows(x);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kBFloat16, at::kHalf, x.scalar_type(), "normalise", [&] { normalise_rows<scalar_t>(call, output); });
  return output;
}

// The gradients of a call, of those operands that have one of their own.
struct Gradients {
  at::Tensor x, vector, residual, weight, bias;
};

// One thread's work on the gradients of some rows.
template <typename T>
class RowGradients {
 public:
  using Number = Wide<T>;
  using V = Vec<T>;

  RowGradients(const Normalisation<T>& norm, const Rows<T>& grads, T* grad_x, T* grad_residual, Number* sums)
      : norm_(norm),
        grads_(grads),
        grad_x_(grad_x),
        grad_residual_(grad_residual),
        of_weight_(sums),
        of_bias_(sums + norm.width),
        of_vector_(sums + 2 * norm.width),
        sum_(norm.width, 0),
        factors_(norm.dropout ? norm.width : 0, 0) {}

  // With n for the normalised row and g for the gradient times the weight, the gradient of the row is
  // scale · (g − mean(g) − n · mean(g · n)); RMSNorm has no mean(g).
  void add(int64_t row) {
    const auto [shift, scale] = norm_.add(row, sum_.data(), factors_.data());
    const auto [mean, along] = means(row, V(shift), V(scale));
    write(row, V(shift), V(scale), V(norm_.layer_norm ? mean : Number(0)), V(along));
  }

 private:
  // Adds to the gradients of weight and bias, and returns mean(g) and mean(g · n).
  std::pair<Number, Number> means(int64_t row, V shift, V scale) {
    V total(0), product(0);
    const T* const given = grads_[row];
    const Number *const sum = sum_.data(), *const weight = norm_.weight.data();
    Number *const of_weight = of_weight_, *const of_bias = of_bias_;
    const bool layer_norm = norm_.layer_norm;
    along_row<T>(norm_.columns, [&](int64_t i, int64_t count) {
      const auto grad = load(given + i, count);
      for (int64_t part = 0; part < kParts<T>; ++part) {
        const int64_t at = i + part * kPart<T>;
        const V normalised = (V::loadu(sum + at) + shift) * scale;
        const V scaled = grad[part] * V::loadu(weight + at);
        total = total + scaled;
        product = at::vec::fmadd(scaled, normalised, product);
        at::vec::fmadd(grad[part], normalised, V::loadu(of_weight + at)).store(of_weight + at);
        if (layer_norm) {
          (grad[part] + V::loadu(of_bias + at)).store(of_bias + at);
        }
      }
    });
    return {Normalisation<T>::all_of(total) / norm_.columns, Normalisation<T>::all_of(product) / norm_.columns};
  }

  // What was computed above is computed again, since that takes less time than to keep it in memory.
  void write(int64_t row, V shift, V scale, V mean, V along) {
    const T *const given = grads_[row], *const from = norm_.x[row];
    const Number *const sum = sum_.data(), *const factors = factors_.data();
    const Number *const weight = norm_.weight.data(), *const vector = norm_.vector.data();
    Number* const of_vector = of_vector_;
    T* const to_residual = grad_residual_ + row * norm_.columns;
    T* const to_x = grad_x_ == nullptr ? nullptr : grad_x_ + row * norm_.columns;
    const bool dropping = norm_.dropout.has_value(), multiplying = norm_.multiplies, adding = norm_.adds;
    along_row<T>(norm_.columns, [&](int64_t i, int64_t count) {
      Vecs<T> of_row, of_x;
      const auto grad = load(given + i, count);
      const auto x = multiplying ? load(from + i, count) : Vecs<T>();
      for (int64_t part = 0; part < kParts<T>; ++part) {
        const int64_t at = i + part * kPart<T>;
        const V normalised = (V::loadu(sum + at) + shift) * scale;
        const V scaled = at::vec::fmsub(grad[part], V::loadu(weight + at), mean);
        of_row[part] = scale * at::vec::fnmadd(normalised, along, scaled);
        const V branch = dropping ? of_row[part] * V::loadu(factors + at) : of_row[part];
        of_x[part] = multiplying ? branch * V::loadu(vector + at) : branch;
        if (multiplying) {
          at::vec::fmadd(branch, x[part], V::loadu(of_vector + at)).store(of_vector + at);
        } else if (adding) {
          (branch + V::loadu(of_vector + at)).store(of_vector + at);
        }
      }
      store(to_residual + i, of_row, count);
      if (to_x != nullptr) {
        store(to_x + i, of_x, count);
      }
    });
  }

  const Normalisation<T>& norm_;
  const Rows<T>& grads_;
  T *const grad_x_, *const grad_residual_;
  Number *const of_weight_, *const of_bias_, *const of_vector_;
  std::vector<Number> sum_, factors_;
};

template <typename T>
void gradients_of_rows(const at::Tensor& grad, const Call& call, Gradients& found) {
  const Normalisation<T> norm(call);
  const auto grads = rows_of<T>(grad);
  T* const grad_x = found.x.numel() > 0 ? found.x.mutable_data_ptr<T>() : nullptr;
  T* const grad_residual = found.residual.mutable_data_ptr<T>();
  ColumnSums<T> sums(norm.rows, norm.columns, 3);
  sums.for_each_block([&](int64_t begin, int64_t end, Wide<T>* of_block) {
    RowGradients<T> gradients(norm, grads, grad_x, grad_residual, of_block);
    for (int64_t row = begin; row < end; ++row) {
      gradients.add(row);
    }
  });
  found.weight = sums.total(0, call.weight);
  found.bias = norm.layer_norm ? sums.total(1, call.weight) : at::empty({0}, call.weight.options());
  found.vector = call.vector ? sums.total(2, call.weight) : at::empty({0}, call.weight.options());
}

// The gradient of x is empty where it is that of the residual, and a gradient of an operand that is missing, too.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> norm_gradients(
    const at::Tensor& grad,
    const at::Tensor& x,
    const std::optional<at::Tensor>& vector,
    const at::Tensor& residual,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& seed,
    double p,
    double eps,
    bool multiplies) {
  const Call call{x, vector, residual, weight, bias, seed, p, eps, multiplies};
  call.check({residual, grad});
  Gradients found;
  found.x = seed || multiplies ? empty_rows(x) : at::empty({0}, x.options());
  found.residual = empty_rows(x);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "norm_gradients", [&] {
    gradients_of_rows<scalar_t>(grad, call, found);
  });
  return {found.x, found.vector, found.residual, found.weight, found.bias};
}

}  // namespace
}  // namespace course_lib
