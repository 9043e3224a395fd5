// The files beside a model that hold its tensors' bytes: found by the names that the model gives,
// and opened only where they lie in the folder that they may lie in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/tensor_proto.h"
#include "io/file/file_bytes.h"
#include "io/system/process.h"
#include "thalia/options.h"

namespace thalia::formats::onnx {

/// A model may have a file for each tensor, and a process may have a thousand files open.
inline constexpr std::size_t kMostOpen = 64;

/// Any number of threads.
class DataFolder {
 public:
  /// @param folder of the model; empty: a model in memory, which has no files beside it.
  /// @param within folders, in one of which files must lie once links are followed.
  DataFolder(std::filesystem::path folder, std::vector<std::filesystem::path> within,
             const InputOptions& input)
      : folder_(std::move(folder)), within_(std::move(within)), input_(input) {}

  /// What a location may be at all: a path down from the folder. @throws FormatError
  /// (out_of_bounds) for an absolute one, "..", a NUL.
  static void check_location(std::string_view location);

  struct Part {
    ByteSpan bytes{};
    std::shared_ptr<const void> owner{};
  };
  /// `bytes` of the file from the offset on, in the mapping. @throws IoError; FormatError
  /// (out_of_bounds) if it lies elsewhere, is no regular file or too short, naming the file;
  /// UnsupportedError of a model in memory.
  Part part(const ExternalData& data, std::uint64_t bytes) const;
  /// The SHA-1 of the whole file against the data's checksum, once for each file. @throws as
  /// part(); IntegrityError.
  void check_sum(const ExternalData& data) const;
  /// Bytes of the whole file; 0 if it cannot be read, which part() reports.
  std::uint64_t size(const std::string& location) const noexcept;

 private:
  std::shared_ptr<const io::FileBytes> open(const std::string& location) const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> within_;
  InputOptions input_;
  mutable io::ThreadLock lock_;
  /// Up to kMostOpen; what comes after them is opened for each read.
  mutable std::map<std::string, std::shared_ptr<const io::FileBytes>, std::less<>> open_;
  mutable std::map<std::string, std::string, std::less<>> sums_;  ///< by location
};

}  // namespace thalia::formats::onnx
