#include "container/read/damage_check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <stdexcept>

#include "boost_test.h"
#include "support/damage.h"
#include "thalia/error.h"

namespace thalia::test {
namespace {

void require(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("a damaged file: ") + what);
}

}  // namespace

DamagedFile::DamagedFile(std::string_view bytes) {
  const bool in_memory = ::access("/dev/shm", W_OK) == 0;
  std::string name =
      (in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
      "thalia-test-XXXXXX";
  fd_ = ::mkstemp(name.data());
  require(fd_ >= 0, "mkstemp");
  path_ = name;
  overwrite(0, bytes);
}

DamagedFile::~DamagedFile() {
  ::close(fd_);
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void DamagedFile::overwrite(std::uint64_t offset, std::string_view bytes) {
  require(::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
              static_cast<ssize_t>(bytes.size()),
          "pwrite");
}

void DamagedFile::flip(std::uint64_t offset, unsigned mask) {
  char byte;
  require(::pread(fd_, &byte, 1, static_cast<off_t>(offset)) == 1, "pread");
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ mask);
  overwrite(offset, {&byte, 1});
}

void DamagedFile::truncate(std::uint64_t length) {
  require(::ftruncate(fd_, static_cast<off_t>(length)) == 0, "ftruncate");
}

VerifyReport verify_damaged(const std::filesystem::path& path, Access access) {
  try {
    VerifyReport report = verify(path, {.input = {.access = access, .limits = tight_limits()},
                                        .work = {.threads = 1, .progress = {}}});
    std::set<std::string> said;
    for (const Finding& finding : report.findings) {
      const std::string line = describe({.findings = {finding}});
      BOOST_TEST(said.insert(line).second, "said twice: " << line);
    }
    return report;
  } catch (const FormatError& error) {
    if (error.code() != ErrorCode::limit_exceeded) throw;
    VerifyReport report;
    report.findings.push_back({.section = error.context().section, .message = error.message()});
    return report;
  }
}

std::string describe(const VerifyReport& report) {
  std::ostringstream out;
  for (const Finding& finding : report.findings) {
    out << finding.section << " '" << finding.region << "' '" << finding.tensor << "' at "
        << finding.offset << ": " << finding.message << '\n';
  }
  return out.str();
}

}  // namespace thalia::test
