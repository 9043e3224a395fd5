// One damaged file, looked at by verify and by readers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "thalia/verify.h"

namespace thalia::test {

/// A file that is changed in place again and again, in memory where the machine has /dev/shm.
class DamagedFile {
 public:
  explicit DamagedFile(std::string_view bytes);
  ~DamagedFile();
  DamagedFile(const DamagedFile&) = delete;
  DamagedFile& operator=(const DamagedFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  void overwrite(std::uint64_t offset, std::string_view bytes);
  void flip(std::uint64_t offset, unsigned mask);
  void truncate(std::uint64_t length);

 private:
  std::filesystem::path path_;
  int fd_;
};

/// verify's report with one thread and tight limits; a passed limit is a finding too.
VerifyReport verify_damaged(const std::filesystem::path& path, Access access = Access::mapped);

/// Section, names, offset and message of every finding, for a failing test.
std::string describe(const VerifyReport& report);

}  // namespace thalia::test
