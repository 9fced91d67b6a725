// Factors of dropout by Philox4x32, bit for bit those of `course_lib.kernels.dropout.dropout_factors`.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
#include <immintrin.h>
#endif

namespace course_lib {
namespace {

// Words of several counters side by side, each in the lower half of 64 bits; the upper half may hold anything.
#if defined(CPU_CAPABILITY_AVX512)
using Lanes = __m512i;
inline Lanes product(Lanes a, Lanes b) {
  return _mm512_mul_epu32(a, b);  // of the lower halves
}
#elif defined(CPU_CAPABILITY_AVX2)
using Lanes = __m256i;
inline Lanes product(Lanes a, Lanes b) {
  return _mm256_mul_epu32(a, b);
}
#else
typedef uint64_t Lanes __attribute__((vector_size(16)));
inline Lanes product(Lanes a, Lanes b) {
  return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
}
#endif
typedef uint64_t Words __attribute__((vector_size(sizeof(Lanes))));  // with arithmetic, of the same size

class Dropout {
 public:
  Dropout(int64_t seed, double p)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32)},
        threshold_(static_cast<uint32_t>(std::min(std::nearbyint(p * 0x1p32), 0x1p32 - 1))),
        p_(p) {}

  // Writes the factors of the first `columns` elements of a row: 0, or 1 / (1 − p).
  template <typename Wide>
  void fill(Wide* factors, int64_t row, int64_t columns) const {
    if (p_ == 1) {
      std::fill(factors, factors + columns, Wide(0));
      return;
    }
    const Wide kept = Wide(1) / Wide(1 - p_);
    std::array<Wide, kElements> found;
    for (int64_t first = 0; first < columns; first += kElements) {
      const auto words = draw(static_cast<uint64_t>(first / 4), static_cast<uint64_t>(row));
      const bool whole = first + kElements <= columns;
      Wide* const to = whole ? factors + first : found.data();
      for (int i = 0; i < kElements; ++i) {
        to[i] = words[i] >= threshold_ ? kept : Wide(0);
      }
      if (!whole) {
        std::copy(found.begin(), found.begin() + (columns - first), factors + first);
      }
    }
  }

 private:
  static constexpr int kRounds = 7;
  static constexpr int kElements = 64;  // that are computed side by side
  static constexpr int kGroups = sizeof(Words) / sizeof(uint64_t);  // of four neighbours
  static constexpr int kStreams = kElements / 4 / kGroups;  // so that one works while another waits

  std::array<uint32_t, kElements> draw(uint64_t first_group, uint64_t row) const {
    Words c0[kStreams], c1[kStreams], c2[kStreams], c3[kStreams];
    for (int s = 0; s < kStreams; ++s) {
      for (int group = 0; group < kGroups; ++group) {
        c0[s][group] = first_group + static_cast<uint64_t>(s * kGroups + group);
      }
      c1[s] = Words{} + (row & 0xFFFFFFFF);
      c2[s] = Words{} + (row >> 32);
      c3[s] = Words{};
    }
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < kRounds; ++round) {
      for (int s = 0; s < kStreams; ++s) {
        const Words a = times(c0[s], 0xD2511F53), b = times(c2[s], 0xCD9E8D57);
        c0[s] = (b >> 32) ^ c1[s] ^ uint64_t{k0};
        c2[s] = (a >> 32) ^ c3[s] ^ uint64_t{k1};
        c1[s] = b;
        c3[s] = a;
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    // Two words of a counter, and then the other two, lie side by side.
    std::array<uint64_t, kElements / 2> pairs;
    for (int s = 0; s < kStreams; ++s) {
      const Words low = (c0[s] & 0xFFFFFFFF) | (c1[s] << 32), high = (c2[s] & 0xFFFFFFFF) | (c3[s] << 32);
      for (int group = 0; group < kGroups; ++group) {
        pairs[2 * (s * kGroups + group)] = low[group];
        pairs[2 * (s * kGroups + group) + 1] = high[group];
      }
    }
    return std::bit_cast<std::array<uint32_t, kElements>>(pairs);
  }

  static Words times(Words words, uint64_t multiplier) {
    return reinterpret_cast<Words>(
        product(reinterpret_cast<Lanes>(words), reinterpret_cast<Lanes>(Words{} + multiplier)));
  }

  std::array<uint32_t, 2> key_;
  uint32_t threshold_;
  double p_;
};

}  // namespace
}  // namespace course_lib
