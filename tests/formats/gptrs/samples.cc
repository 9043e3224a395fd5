#include "formats/gptrs/samples.h"

#include <memory>

#include "support/files.h"

namespace thalia::test {
namespace {

template <typename Number>
void put_number(std::string& out, Number number) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(Number));
  out = with_number(std::move(out), at, number);
}

}  // namespace

std::filesystem::path gptrs_path(std::string_view name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/gptrs" / name;
}

std::string gptrs_vector(std::string_view name) {
  return read_file(gptrs_path(name));
}

std::string HandFile::bytes() const {
  std::string start(is_archive ? "GPTRSTEN" : "GPTRSCHK");
  put_number(start, std::uint32_t{2});
  if (!is_archive) {
    put_number(start, static_cast<std::uint32_t>(config.size()));
    start += config;
  }
  const auto index = [&](std::uint64_t data_start) {
    std::string out;
    put_number(out, static_cast<std::uint32_t>(entries.size()));
    for (const HandEntry& entry : entries) {
      put_number(out, static_cast<std::uint32_t>(entry.name.size()));
      out += entry.name;
      if (!is_archive) out += entry.id;
      put_number(out, static_cast<std::uint32_t>(entry.dims.size()));
      for (const std::uint64_t dim : entry.dims) put_number(out, dim);
      put_number(out, entry.tag);
      out += static_cast<char>(entry.flag);
      put_number(out, entry.offset + data_start);
      put_number(out, entry.length);
    }
    return out + behind_index;
  };
  const std::size_t length = index(0).size();
  put_number(start, static_cast<std::uint32_t>(length));
  return start + index(start.size() + length) + data;
}

GptrsFile gptrs_from(const std::string& bytes, const GptrsReadOptions& options) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return GptrsFile::from_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.gptrs", options);
}

GptrsReadOptions gptrs_compatible() {
  return {.strict = false};
}

}  // namespace thalia::test
