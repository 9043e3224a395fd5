// Tables as frequencies, as the numbers that are stored of them, and as what the kernels look up.
// Whatever is read has a rest of 1 or more, so that each slot belongs to a symbol.
#include "codec/step/step_tables.h"

#include <algorithm>
#include <bit>

#include "codec/frame/frame_error.h"

namespace thalia::codec {
namespace {

// The number of predefined rows that a class is away from the next: its unit in the last place is
// twice as large, and a row is half of that.
constexpr int kRowsOfClass = 2;
/// Bits of the length of a frequency in explicit tables, and of its leading digits.
constexpr unsigned kLengthBits = 4, kDigitBits = 3;
constexpr unsigned kMostLength = (1u << kLengthBits) - 1;
/// What an absent class has: nothing changes.
constexpr StepRow kNothingChanges{1, 1, 1, 1, 1, 1, 1, 1};

// The zeros after the leading digits.
unsigned zeros_of(unsigned length) noexcept {
  return length > kDigitBits + 1 ? length - 1 - kDigitBits : 0;
}

class BitWriter {
 public:
  explicit BitWriter(std::vector<std::byte>& out) : out_(out) {}
  void write(unsigned value, unsigned width) {
    for (unsigned i = 0; i < width; ++i, ++count_) {
      if (count_ % 8 == 0) out_.push_back(std::byte{0});
      if ((value >> i & 1) != 0) out_.back() |= std::byte{1} << (count_ % 8);
    }
  }

 private:
  std::vector<std::byte>& out_;
  std::size_t count_ = 0;
};

class BitReader {
 public:
  explicit BitReader(ByteSpan bytes) : bytes_(bytes) {}
  unsigned read(unsigned width) {
    unsigned value = 0;
    for (unsigned i = 0; i < width; ++i, ++count_) {
      if (count_ / 8 >= bytes_.size())
        fail_frame(kStepDeltaName, "bytes of tables", bytes_.size(), "1 more");
      value |= std::to_integer<unsigned>(bytes_[count_ / 8] >> (count_ % 8) & std::byte{1}) << i;
    }
    return value;
  }
  /// The bytes that were read, whole.
  std::size_t finish() {
    const std::size_t length = (count_ + 7) / 8;
    if (read(static_cast<unsigned>(8 * length - count_)) != 0)
      fail_frame(kStepDeltaName, "spare bits of tables", 1, "0");
    return length;
  }

 private:
  ByteSpan bytes_;
  std::size_t count_ = 0;
};

}  // namespace

std::int32_t step_rest(const StepRow& row) noexcept {
  std::int32_t rest = static_cast<std::int32_t>(kStepScale) - row.back();
  for (std::size_t i = 0; i + 1 < row.size(); ++i) rest -= 2 * row[i];
  return rest;
}

std::size_t step_row_of(std::uint8_t level, std::size_t class_number) noexcept {
  const int row = level - kRowsOfClass * static_cast<int>(class_number);
  return static_cast<std::size_t>(std::clamp(row, 0, static_cast<int>(kStepPredefined) - 1));
}

StepRows predefined_step_rows(std::uint8_t level) noexcept {
  StepRows rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = kStepRows[step_row_of(level, i)];
  return rows;
}

unsigned StepDigits::digit_bits() const noexcept {
  return length < 1 ? 0 : std::min(length - 1, kDigitBits);
}

unsigned StepDigits::bits() const noexcept {
  return kLengthBits + digit_bits();
}

std::uint32_t StepDigits::value() const noexcept {
  return length == 0 ? 0 : (1u << (length - 1)) + (digits << zeros_of(length));
}

StepDigits StepDigits::below(std::uint64_t value) noexcept {
  if (value >> kMostLength != 0) return {kMostLength, (1u << kDigitBits) - 1};
  const auto number = std::max(static_cast<unsigned>(value), 1u);
  StepDigits out{static_cast<unsigned>(std::bit_width(number)), 0};
  out.digits = number >> zeros_of(out.length) & ((1u << out.digit_bits()) - 1);
  return out;
}

StepDigits StepDigits::next_above() const noexcept {
  if (digits + 1 < 1u << digit_bits()) return {length, digits + 1};
  return length == kMostLength ? *this : StepDigits{length + 1, 0};
}

StepDigits StepDigits::next_below() const noexcept {
  if (digits != 0) return {length, digits - 1};
  if (length <= 1) return *this;
  StepDigits out{length - 1, 0};
  out.digits = (1u << out.digit_bits()) - 1;
  return out;
}

StepRow ExplicitStepRow::row() const noexcept {
  if (!is_present) return kNothingChanges;
  StepRow row{};
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<std::uint16_t>(digits[i].value());
  return row;
}

std::vector<std::byte> write_step_rows(const std::vector<ExplicitStepRow>& rows) {
  std::vector<std::byte> out{static_cast<std::byte>(rows.size())};
  BitWriter writer(out);
  for (const ExplicitStepRow& row : rows) {
    writer.write(row.is_present ? 1 : 0, 1);
    if (!row.is_present) continue;
    for (const StepDigits& frequency : row.digits) {
      writer.write(frequency.length, kLengthBits);
      writer.write(frequency.digits, frequency.digit_bits());
    }
  }
  return out;
}

StepRows read_step_rows(ByteSpan& bytes) {
  if (bytes.empty()) fail_frame(kStepDeltaName, "bytes of tables", 0, "1 or more");
  const auto classes = std::to_integer<std::size_t>(bytes[0]);
  if (classes < 1 || classes > kStepClasses)
    fail_frame(kStepDeltaName, "classes", classes, fmt::format("1 to {}", kStepClasses));
  BitReader reader(bytes.subspan(1));
  StepRows rows{};
  for (std::size_t i = 0; i < classes; ++i) {
    ExplicitStepRow stored{.is_present = reader.read(1) != 0};
    if (stored.is_present) {
      for (StepDigits& frequency : stored.digits) {
        frequency.length = reader.read(kLengthBits);
        frequency.digits = reader.read(frequency.digit_bits());
      }
    }
    rows[i] = stored.row();
    const std::int32_t rest = step_rest(rows[i]);
    if (rest < 1) {
      fail_frame(kStepDeltaName, "sum of frequencies",
                 static_cast<std::uint64_t>(static_cast<std::int32_t>(kStepScale) - rest),
                 fmt::format("{} or less", kStepScale - 1));
    }
  }
  std::fill(rows.begin() + static_cast<std::ptrdiff_t>(classes), rows.end(), rows[classes - 1]);
  bytes = bytes.subspan(1 + reader.finish());
  return rows;
}

StepTables step_tables(const StepRows& rows) noexcept {
  StepTables tables{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto start = static_cast<std::uint32_t>(step_rest(rows[i]));
    tables.frequency[0][i] = static_cast<std::uint16_t>(start);
    tables.start[0][i] = 0;
    for (std::size_t k = 1; k < kStepMagnitudes; ++k) {
      const std::uint32_t frequency = rows[i][k - 1];
      tables.frequency[k][i] = static_cast<std::uint16_t>(frequency);
      tables.start[k][i] = static_cast<std::uint16_t>(start);
      start += k == kStepEscape ? frequency : 2 * frequency;
    }
  }
  return tables;
}

}  // namespace thalia::codec
