#include "store/run/names.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/fail.h"
#include "thalia/store/retention.h"

namespace thalia::store {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::size_t kLongestExtension = 16;
constexpr std::size_t kStepDigits = 8;
constexpr std::size_t kVersionDigits = 4;

// Not the locale's.
bool is_letter_or_digit(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Digits and nothing else.
std::optional<std::uint64_t> number_of(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Takes `part` off the front, if it is there.
bool take(std::string_view& text, std::string_view part) noexcept {
  if (!text.starts_with(part)) return false;
  text.remove_prefix(part.size());
  return true;
}

}  // namespace

bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kLongestName && is_letter_or_digit(name[0]) &&
         std::ranges::all_of(name, [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_';
         });
}

bool is_extension(std::string_view extension) noexcept {
  if (extension.empty() || extension.size() > kLongestExtension) return false;
  if (extension.front() == '.' || extension.back() == '.') return false;
  for (const std::string_view other : {"sha256", "json", "jsonl", "txt", "toml"})
    if (extension.ends_with(other)) return false;
  return std::ranges::all_of(extension, [](char c) { return is_letter_or_digit(c) || c == '.'; });
}

std::string checkpoint_name(std::string_view phase, std::uint64_t step,
                            std::string_view extension) {
  check_option("step", step, 0, kMaxStep);
  return fmt::format("ckpt_{}_step{:08}.{}", phase, step, extension);
}

std::optional<std::uint64_t> checkpoint_step(std::string_view file, std::string_view phase,
                                             std::string_view extension) noexcept {
  if (!take(file, "ckpt_") || !take(file, phase) || !take(file, "_step")) return std::nullopt;
  if (file.size() != kStepDigits + 1 + extension.size()) return std::nullopt;
  if (file[kStepDigits] != '.' || file.substr(kStepDigits + 1) != extension) return std::nullopt;
  return number_of(file.substr(0, kStepDigits));
}

std::string pool_name(std::uint64_t version, std::uint64_t step, std::string_view extension) {
  check_option("step", step, 0, kMaxStep);
  return fmt::format("pool_v{:04}_step{:08}.{}", version, step, extension);
}

std::optional<PoolName> parse_pool_name(std::string_view file,
                                        std::string_view extension) noexcept {
  if (!take(file, "pool_v")) return std::nullopt;
  const std::size_t end = file.find("_step");
  if (end == std::string_view::npos || end < kVersionDigits) return std::nullopt;
  const std::optional<std::uint64_t> version = number_of(file.substr(0, end));
  file.remove_prefix(end + 5);
  if (!version || file.size() != kStepDigits + 1 + extension.size()) return std::nullopt;
  if (file[kStepDigits] != '.' || file.substr(kStepDigits + 1) != extension) return std::nullopt;
  const std::optional<std::uint64_t> step = number_of(file.substr(0, kStepDigits));
  if (!step) return std::nullopt;
  return PoolName{*version, *step};
}

}  // namespace thalia::store
