// A file named on the command line to print into.
#pragma once

#include <filesystem>
#include <memory>

#include "cli/output.h"

namespace thalia::cli {

/// Appears under its name whole, when it is finished, and leaves nothing behind otherwise; so it
/// may even replace the file that is being read. Where something stands at the path that is no
/// regular file (/dev/null, a pipe), that is written to.
class OutputFile {
 public:
  /// @throws IoError naming the path.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  Output& out() noexcept { return *out_; }
  void finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  ///< empty where the path is written directly, or finished
  int descriptor_ = -1;
  std::unique_ptr<Output> out_;
};

}  // namespace thalia::cli
