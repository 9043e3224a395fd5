// How facts are put into text: sizes, times and tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/output.h"
#include "thalia/text.h"
#include "thalia/types.h"

namespace thalia::cli {

/// "1.5 KiB (1,536 bytes)"; below 1 KiB only "512 bytes".
std::string exact_bytes(std::uint64_t bytes);
/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);
/// Four digits: "0.01234", "1.235e+05".
std::string short_number(double number);
/// grouped(); "-" if there is none, so that what is there stands out.
std::string count_or_dash(std::uint64_t count);
/// 7241732096 as "7.24 billion (7,241,732,096)"; below a million only grouped().
std::string human_count(std::uint64_t number);
/// Safe to show; of a text of more than `most` bytes the beginning and the end, and how long it is:
/// "abc ... xyz (1.5 KiB)".
std::string cut_in_middle(std::string_view text, std::size_t most = 60);
/// "1 tensor", "1,234 tensors".
std::string counted(std::uint64_t number, std::string_view singular, std::string_view plural);
/// "2026-11-21 03:43:30 UTC"; a time past the year 9999 as "@" and its seconds since 1970.
std::string utc_time(std::uint64_t unix_seconds);
/// How much less is stored than there would be without compression: "1.43x".
std::string ratio_text(std::uint64_t logical_bytes, std::uint64_t stored_bytes);

/// Columns of text with a heading, cells padded to the widest.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add_row(std::vector<std::string> cells);
  /// `margin` comes before every line.
  void print(Output& out, std::string_view margin = "") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace thalia::cli
