// Rows of a matrix as vectors: loads, stores, and what all bodies ask of their operands.
//
// Numbers are converted to float where they are read (float64 stays float64), and back where they are written. A row
// whose length is no multiple of the vector's ends with a partial load, which fills up with zeros, and a partial store.

#pragma once

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace course_lib {
namespace {

template <typename T>
using Wide = at::opmath_type<T>;  // the type of all arithmetic on numbers of type T
template <typename T>
using Vec = at::vec::Vectorized<Wide<T>>;
template <typename T>
constexpr int64_t kStep = at::vec::Vectorized<T>::size();  // elements that one load reads
template <typename T>
constexpr int64_t kParts = sizeof(Wide<T>) / sizeof(T);  // wide vectors that one load fills
template <typename T>
constexpr int64_t kPart = Vec<T>::size();
template <typename T>
using Vecs = std::array<Vec<T>, kParts<T>>;

constexpr int64_t kGrain = 32768;  // elements that are worth a thread, as in PyTorch's own loops

#if defined(CPU_CAPABILITY_AVX512)
// Positions of 32 halves of numbers, as a function of where they are put.
template <typename Position>
constexpr std::array<int16_t, 32> halves(const Position& position) {
  std::array<int16_t, 32> found{};
  for (int16_t i = 0; i < 32; ++i) {
    found[i] = position(i);
  }
  return found;
}

inline __m512i permutation(const std::array<int16_t, 32>& positions) {
  return _mm512_loadu_si512(positions.data());
}

// A number in bfloat16 is the upper half of one in float32. One permutation puts 16 of them there, which takes a third
// of the instructions that at::vec takes.
inline Vecs<at::BFloat16> widen_bfloat16(__m512i numbers) {
  static constexpr auto kFirst = halves([](int i) { return i / 2; });
  static constexpr auto kLast = halves([](int i) { return 16 + i / 2; });
  constexpr __mmask32 kUpper = 0xAAAAAAAA;
  return {
      _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(kUpper, permutation(kFirst), numbers)),
      _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(kUpper, permutation(kLast), numbers))};
}

// Rounds to the nearest number, and to the even one of two. A NaN stays one: its lower half is zero, since it comes from
// a NaN in bfloat16 or from the processor.
inline __m512i narrow_to_bfloat16(__m512 first, __m512 last) {
  static constexpr auto kUpper = halves([](int i) { return 2 * i + 1; });
  static constexpr auto kLower = halves([](int i) { return 2 * i; });
  const __m512i a = _mm512_castps_si512(first), b = _mm512_castps_si512(last), one = _mm512_set1_epi16(1);
  const __m512i upper = _mm512_permutex2var_epi16(a, permutation(kUpper), b);
  const __m512i lower = _mm512_permutex2var_epi16(a, permutation(kLower), b);
  const __m512i odd_goes_up = _mm512_adds_epu16(lower, _mm512_and_si512(upper, one));
  const __mmask32 up = _mm512_cmpgt_epu16_mask(odd_goes_up, _mm512_set1_epi16(static_cast<int16_t>(0x8000)));
  return _mm512_mask_add_epi16(upper, up, upper, one);
}
#endif

template <typename T>
inline Vecs<T> load(const T* from, int64_t count) {
  using Numbers = at::vec::Vectorized<T>;
  const Numbers loaded = count == kStep<T> ? Numbers::loadu(from) : Numbers::loadu(from, count);
  if constexpr (kParts<T> == 1) {
    return {loaded};
#if defined(CPU_CAPABILITY_AVX512)
  } else if constexpr (std::is_same_v<T, at::BFloat16>) {
    return widen_bfloat16(loaded);
#endif
  } else {
    auto [first, last] = at::vec::convert_to_float<T>(loaded);
    return {first, last};
  }
}

template <typename T>
inline at::vec::Vectorized<T> narrow(const Vecs<T>& values) {
  if constexpr (kParts<T> == 1) {
    return values[0];
#if defined(CPU_CAPABILITY_AVX512)
  } else if constexpr (std::is_same_v<T, at::BFloat16>) {
    return narrow_to_bfloat16(values[0], values[1]);
#endif
  } else {
    return at::vec::convert_from_float<T>(values[0], values[1]);
  }
}

template <typename T>
inline void store(T* to, const Vecs<T>& values, int64_t count) {
  const auto numbers = narrow<T>(values);
  count == kStep<T> ? numbers.store(to) : numbers.store(to, count);
}

// Calls `body(i, count)` for each load of a row: `count` elements from element i on.
template <typename T, typename Body>
inline void along_row(int64_t columns, const Body& body) {
  int64_t i = 0;
  for (; i + kStep<T> <= columns; i += kStep<T>) {
    body(i, kStep<T>);
  }
  if (i < columns) {
    body(i, columns - i);
  }
}

template <typename T>
inline int64_t padded(int64_t columns) {
  return (columns + kStep<T> - 1) / kStep<T> * kStep<T>;
}

// A vector of numbers, converted once and filled up with zeros, so that it is read by whole vectors.
template <typename T>
std::vector<Wide<T>> widened(const at::Tensor& vector) {
  const auto from = vector.contiguous();
  const T* data = from.const_data_ptr<T>();
  std::vector<Wide<T>> found(padded<T>(from.numel()), Wide<T>(0));
  std::copy(data, data + from.numel(), found.begin());
  return found;
}

// Rows of contiguous elements, a fixed distance apart.
template <typename T>
struct Rows {
  at::Tensor owner;
  const T* data;
  int64_t stride;

  const T* operator[](int64_t row) const {
    return data + row * stride;
  }
};

// Returns the distance of rows if there is a single one and their elements lie side by side, else −1.
inline int64_t row_stride(const at::Tensor& tensor) {
  const int64_t last = tensor.dim() - 1;
  if (tensor.size(last) > 1 && tensor.stride(last) != 1) {
    return -1;
  }
  int64_t stride = 0, extent = 1;  // of the dimensions between this and the last, seen as one
  for (int64_t dim = last - 1; dim >= 0; --dim) {
    if (tensor.size(dim) == 1) {
      continue;
    }
    if (extent == 1) {
      stride = tensor.stride(dim);
    } else if (tensor.stride(dim) != stride * extent) {
      return -1;
    }
    extent *= tensor.size(dim);
  }
  return stride;
}

// Reads a tensor as it lies where that is possible, and a contiguous copy of it elsewhere.
template <typename T>
Rows<T> rows_of(const at::Tensor& tensor) {
  const int64_t stride = row_stride(tensor);
  if (stride >= 0) {
    return {tensor, tensor.const_data_ptr<T>(), stride};
  }
  const auto copy = tensor.contiguous();
  return {copy, copy.const_data_ptr<T>(), copy.size(-1)};
}

inline void check_rows(const at::Tensor& x, at::ArrayRef<at::Tensor> rows, at::ArrayRef<at::Tensor> vectors) {
  TORCH_CHECK(x.dim() > 0 && x.device().is_cpu(), "expected a tensor of rows on the CPU");
  for (const auto& tensor : rows) {
    TORCH_CHECK(
        tensor.sizes() == x.sizes() && tensor.scalar_type() == x.scalar_type() && tensor.device().is_cpu(),
        "expected rows of one shape and one dtype on the CPU");
  }
  for (const auto& tensor : vectors) {
    TORCH_CHECK(
        tensor.dim() == 1 && tensor.size(0) == x.size(-1) && tensor.scalar_type() == x.scalar_type() &&
            tensor.device().is_cpu(),
        "expected vectors as long as a row, of its dtype, on the CPU");
  }
}

inline int64_t row_count(const at::Tensor& x) {
  return x.numel() / std::max<int64_t>(x.size(-1), 1);
}

// Returns an empty contiguous tensor of the shape and dtype of `like`. For a large one it asks the kernel for large pages
// in place of each 512 small ones, whose first writes can take longer than the whole computation.
inline at::Tensor empty_rows(const at::Tensor& like) {
  auto found = at::empty(like.sizes(), like.options());
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const auto first = reinterpret_cast<uintptr_t>(found.const_data_ptr());
  const uintptr_t begin = (first + kPage - 1) / kPage * kPage, end = (first + found.nbytes()) / kPage * kPage;
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a hint: it may be refused
  }
#endif
  return found;
}

// Sums over rows. Each block of rows has sums of its own, which are then added in pairs: so the result has small
// rounding errors, and does not depend on the number of threads.
template <typename T>
class ColumnSums {
 public:
  ColumnSums(int64_t rows, int64_t columns, int64_t vectors)
      : rows_(rows),
        columns_(columns),
        width_(padded<T>(columns)),
        vectors_(vectors),
        blocks_(std::max<int64_t>((rows + kRows - 1) / kRows, 1)),
        sums_(blocks_ * vectors * width_, Wide<T>(0)) {}

  // Calls `body(first_row, end_row, sums)` for each block, in several threads; `sums` holds its vectors of sums.
  template <typename Body>
  void for_each_block(const Body& body) {
    const int64_t grain = std::max<int64_t>(kGrain / (kRows * std::max<int64_t>(columns_, 1)), 1);
    at::parallel_for(0, blocks_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        body(block * kRows, std::min((block + 1) * kRows, rows_), sums_.data() + block * vectors_ * width_);
      }
    });
  }

  // Adds up the blocks, and returns one vector of the sums in the dtype of `like`; to be called for each.
  at::Tensor total(int64_t vector, const at::Tensor& like) {
    for (int64_t step = 1; step < blocks_; step *= 2) {
      for (int64_t block = 0; block + step < blocks_; block += 2 * step) {
        Wide<T>* into = of(block, vector);
        const Wide<T>* from = of(block + step, vector);
        for (int64_t i = 0; i < width_; ++i) {
          into[i] += from[i];
        }
      }
    }
    auto found = at::empty({columns_}, like.options());
    std::copy(of(0, vector), of(0, vector) + columns_, found.template mutable_data_ptr<T>());
    return found;
  }

 private:
  static constexpr int64_t kRows = 64;

  Wide<T>* of(int64_t block, int64_t vector) {
    return sums_.data() + (block * vectors_ + vector) * width_;
  }

  int64_t rows_, columns_, width_, vectors_, blocks_;
  std::vector<Wide<T>> sums_;
};

}  // namespace
}  // namespace course_lib
