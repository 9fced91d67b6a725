// Factors of dropout by Philox4x32, bit for bit those of `course_lib.kernels.dropout.dropout_factors`.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace course_lib {
namespace {

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
    std::array<Wide, 4 * kGroups> found;
    for (int64_t first = 0; first < columns; first += 4 * kGroups) {
      const bool whole = first + 4 * kGroups <= columns;
      Wide* const to = whole ? factors + first : found.data();
      const auto words = draw(static_cast<uint32_t>(first / 4), static_cast<uint64_t>(row));
      for (int group = 0; group < kGroups; ++group) {
        for (int word = 0; word < 4; ++word) {
          to[4 * group + word] = words[word][group] >= threshold_ ? kept : Wide(0);
        }
      }
      if (!whole) {
        std::copy(found.begin(), found.begin() + (columns - first), factors + first);
      }
    }
  }

 private:
  static constexpr int kRounds = 7;
  static constexpr int kGroups = 16;  // of four neighbours, computed side by side
  using Words = std::array<std::array<uint32_t, kGroups>, 4>;

  // The loops over groups have independent iterations, which the compiler turns into vector instructions.
  Words draw(uint32_t first_group, uint64_t row) const {
    Words c;
    for (int g = 0; g < kGroups; ++g) {
      c[0][g] = first_group + static_cast<uint32_t>(g);
      c[1][g] = static_cast<uint32_t>(row);
      c[2][g] = static_cast<uint32_t>(row >> 32);
      c[3][g] = 0;
    }
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < kRounds; ++round) {
      for (int g = 0; g < kGroups; ++g) {
        const uint64_t a = uint64_t{0xD2511F53} * c[0][g], b = uint64_t{0xCD9E8D57} * c[2][g];
        c[0][g] = static_cast<uint32_t>(b >> 32) ^ c[1][g] ^ k0;
        c[2][g] = static_cast<uint32_t>(a >> 32) ^ c[3][g] ^ k1;
        c[1][g] = static_cast<uint32_t>(b);
        c[3][g] = static_cast<uint32_t>(a);
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

  std::array<uint32_t, 2> key_;
  uint32_t threshold_;
  double p_;
};

}  // namespace
}  // namespace course_lib
