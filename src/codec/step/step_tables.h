// The tables that step_delta codes with: predefined ones, and explicit ones as they are stored.
// docs/format/deltas.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/step/kernels.h"
#include "thalia/types.h"

namespace thalia::codec {

/// What errors call it.
inline constexpr std::string_view kStepDeltaName = "step_delta";

/// Frequencies of the magnitudes but "no change", which has the rest: 1, 2, 3, 4, 8, 16 and 32 for
/// each direction, then any other.
using StepRow = std::array<std::uint16_t, kStepMagnitudes - 1>;
using StepRows = std::array<StepRow, kStepClasses>;

/// What is left to "no change": 0 or less if the row has too much.
std::int32_t step_rest(const StepRow& row) noexcept;

inline constexpr std::size_t kStepLevels = 128;
inline constexpr std::size_t kStepPredefined = 48;
/// For a step of Laplace distribution, of a scale of 2^((row - 32) / 2) units in the last place.
extern const std::array<StepRow, kStepPredefined> kStepRows;
/// The predefined row of a class.
std::size_t step_row_of(std::uint8_t level, std::size_t class_number) noexcept;
StepRows predefined_step_rows(std::uint8_t level) noexcept;

/// A frequency that explicit tables can have: some leading digits, then zeros.
struct StepDigits {
  unsigned length = 0;  ///< 0 of frequency 0, 15 at most
  unsigned digits = 0;

  unsigned digit_bits() const noexcept;
  /// All that are stored.
  unsigned bits() const noexcept;
  std::uint32_t value() const noexcept;

  /// The greatest one that is not above `value`, and not 0.
  static StepDigits below(std::uint64_t value) noexcept;
  /// Neighbours; the greatest one and that of frequency 1 are their own.
  StepDigits next_above() const noexcept;
  StepDigits next_below() const noexcept;
};

/// A class's explicit table. An absent one is that of "nothing changes".
struct ExplicitStepRow {
  bool is_present = false;
  std::array<StepDigits, kStepMagnitudes - 1> digits{};

  StepRow row() const noexcept;
};

/// The stored form of the first classes; those after them have the table of the last.
std::vector<std::byte> write_step_rows(const std::vector<ExplicitStepRow>& rows);
/// Reads explicit tables off `bytes`. @throws CompressionError.
StepRows read_step_rows(ByteSpan& bytes);
/// What explicit tables take at most: 32 classes of 1 + 8 * (4 + 3) bits, and their number.
inline constexpr std::size_t kStepMostTableBytes = 1 + (kStepClasses * (1 + 8 * 7) + 7) / 8;

StepTables step_tables(const StepRows& rows) noexcept;

}  // namespace thalia::codec
