// Numbers are written alike in every locale. Widths are those on a terminal, not bytes, so that
// columns of names in any script line up.
#include "cli/print/print.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "cli/terminal/escape.h"
#include "thalia/text.h"

namespace thalia::cli {

std::string exact_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  return fmt::format("{} ({} bytes)", human_bytes(bytes), grouped(bytes));
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string short_number(double number) {
  return fmt::format("{:.4g}", number);
}

std::string count_or_dash(std::uint64_t count) {
  return count == 0 ? "-" : grouped(count);
}

std::string human_count(std::uint64_t number) {
  if (number < 1'000'000) return grouped(number);
  constexpr const char* kWords[] = {"million", "billion", "trillion", "quadrillion", "quintillion"};
  double value = static_cast<double>(number) / 1e6;
  std::size_t word = 0;
  // From 999.5 on, three digits would round to 1000.
  for (; value >= 999.5 && word + 1 < std::size(kWords); ++word) value /= 1000;
  // Three digits: 7.24, 12.3, 124.
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {} ({})", value, decimals, kWords[word], grouped(number));
}

std::string cut_in_middle(std::string_view text, std::size_t most) {
  if (text.size() <= most) return escape(text);
  // At whole characters, as the text is UTF-8.
  const auto is_inside = [&](std::size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  std::size_t begin = most / 2, end = text.size() - (most - most / 2);
  while (begin > 0 && is_inside(begin)) --begin;
  while (is_inside(end)) ++end;
  return fmt::format("{} ... {} ({})", escape(text.substr(0, begin)), escape(text.substr(end)),
                     human_bytes(text.size()));
}

std::string counted(std::uint64_t number, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", grouped(number), number == 1 ? singular : plural);
}

std::string utc_time(std::uint64_t unix_seconds) {
  constexpr std::uint64_t kYear10000 = 253402300800;
  if (unix_seconds >= kYear10000) return fmt::format("@{}", unix_seconds);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<time_t>(unix_seconds)));
}

std::string ratio_text(std::uint64_t logical_bytes, std::uint64_t stored_bytes) {
  // A file without payloads has no ratio.
  if (stored_bytes == 0) return "1.00x";
  return fmt::format("{:.2f}x",
                     static_cast<double>(logical_bytes) / static_cast<double>(stored_bytes));
}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::print(Output& out, std::string_view margin) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].heading);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell_of) -> std::string {
    std::string text(margin);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = cell_of(c);
      const std::string padding(widths[c] - display_width(cell), ' ');
      if (c > 0) text += "  ";
      text += columns_[c].align == Align::right ? padding + cell : cell + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  out.write(Style::heading,
            line([&](std::size_t c) -> const std::string& { return columns_[c].heading; }));
  out.write("\n");
  for (const auto& row : rows_) {
    if (out.closed()) return;
    out.write(line([&](std::size_t c) -> const std::string& { return row[c]; }) + "\n");
  }
}

}  // namespace thalia::cli
