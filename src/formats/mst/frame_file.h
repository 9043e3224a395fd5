// A .mst file while it is written: frames one after the other, then the header before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "codec/frame/zstd_encoder.h"
#include "io/output/spool.h"
#include "thalia/files.h"
#include "thalia/formats/mithril.h"
#include "thalia/types.h"

namespace thalia::formats::mst {

/// @throws UnsupportedError, UnsupportedDtypeError for a tensor that the format lacks.
void check_layout(const std::string& name, const TensorLayout& layout);

/// The header names the lengths of all frames, so these are kept until commit(): in a spool.
/// Externally synchronised.
class FrameFile {
 public:
  /// @throws UsageError (bad_argument) for options; IoError.
  FrameFile(const std::filesystem::path& path, const MstWriteOptions& options);

  /// A tensor that passed check_layout(). Its bytes follow, in pieces of any size. Where elements
  /// are grouped they are kept until there are all of them.
  void begin(std::string name, const TensorLayout& layout);
  void write(ByteSpan piece);
  /// @throws UsageError (size_mismatch) unless all bytes were there.
  void end();

  /// @param version 0 or 1. @param header_order of the tensors' names in the header; empty: as they
  /// were added. @return bytes of the file.
  std::uint64_t commit(std::uint32_t version, const std::vector<std::size_t>& header_order = {});

 private:
  void compress(ByteSpan raw);
  void compress_grouped(ByteSpan raw);
  std::string header(const std::vector<std::size_t>& order) const;

  MstWriteOptions options_;
  OutputFile out_;
  io::Spool spool_;
  codec::ZstdEncoder encoder_;
  std::vector<MstTensor> tensors_;  ///< with offsets from the first frame on
  std::uint64_t written_ = 0;       ///< of the tensor that is being added
  std::vector<std::byte> whole_;    ///< of a grouped tensor
  std::vector<std::byte> grouped_;  ///< a part of it
};

}  // namespace thalia::formats::mst
