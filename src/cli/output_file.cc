#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "thalia/error.h"

namespace thalia::cli {
namespace {

[[noreturn]] void fail(std::string_view operation, const std::filesystem::path& path) {
  throw IoError(operation, errno, {.path = path.string()});
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("open", path_);
  } else {
    // Through a symbolic link to where it points.
    if (exists) path_ = std::filesystem::canonical(path);
    temporary_ = path_.string() + ".tmp" + std::to_string(::getpid());
    const mode_t mode = exists ? status.st_mode & 0777 : 0666;
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0) {
      temporary_.clear();
      fail("open", path_);
    }
  }
  out_ = std::make_unique<Output>(descriptor_, path_.string());
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::finish() {
  out_->flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close", path_);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename", path_);
  temporary_.clear();
}

}  // namespace thalia::cli
