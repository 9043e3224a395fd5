// Files of tests: a folder of one's own, whole reads and writes, listings.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/types.h"

namespace thalia::test {

/// A new empty folder under $TMPDIR (else /tmp), removed with all in it at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, std::string_view contents);
std::string read_file(const std::filesystem::path& path);
/// The names in a folder, hidden ones too, sorted.
std::vector<std::string> list_folder(const std::filesystem::path& folder);

inline ByteSpan bytes_of(std::string_view text) {
  return as_byte_span(text);
}
inline std::string text_of(ByteSpan bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace thalia::test
