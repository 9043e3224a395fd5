// GPTRSCHK and GPTRSTEN files of the tests: those of tests/data/formats/gptrs, and bytes made by
// hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/gptrs.h"

namespace thalia::test {

std::filesystem::path gptrs_path(std::string_view name);
std::string gptrs_vector(std::string_view name);

/// An entry of an index, spelled field by field.
struct HandEntry {
  std::string name = "w";
  std::vector<std::uint64_t> dims = {2};
  std::uint32_t tag = 0;
  std::uint8_t flag = 0;
  std::uint64_t offset = 0;  ///< from where the data begin
  std::uint64_t length = 8;
  std::string id = std::string(16, '\0');
};

struct HandFile {
  std::string config = R"({"kind":"gpt","config":{}})";
  std::vector<HandEntry> entries = {HandEntry{}};
  std::string data = std::string("\0\0\x80\x3f\0\0\0\x40", 8);
  std::string behind_index{};
  bool is_archive = false;

  std::string bytes() const;
};

/// In place of four or eight bytes.
template <typename Number>
std::string with_number(std::string bytes, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    bytes[at + i] = static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

GptrsFile gptrs_from(const std::string& bytes, const GptrsReadOptions& options = {});
GptrsReadOptions gptrs_compatible();

}  // namespace thalia::test
