// What header and directory of a .thalia file say, in words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/print/dtype_totals.h"
#include "thalia/quantization.h"
#include "thalia/reader.h"
#include "thalia/tensor.h"

namespace thalia::cli {

/// What the directory says about all tensors together.
struct FileTotals {
  DTypeTotals dtypes;
  std::uint64_t logical_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint32_t raw = 0;
  std::uint32_t chunked = 0;
  std::uint32_t quantized = 0;
  std::uint16_t lossy_generation = 0;  ///< the largest
  std::uint16_t max_lossy_generations = 0;
  std::set<Codec> codecs;

  void add(const TensorView& tensor) {
    std::uint64_t bytes = tensor.logical_bytes();
    if (const auto quantization = quantization_of(tensor)) {
      bytes = tensor.dense_bytes();
      ++quantized;
      lossy_generation = std::max(lossy_generation, quantization->lossy_generation);
      max_lossy_generations = std::max(max_lossy_generations, quantization->max_lossy_generations);
    }
    dtypes.add(tensor.dtype(), bytes);
    logical_bytes += bytes;
    stored_bytes += tensor.stored_bytes();
    ++(tensor.is_raw() ? raw : chunked);
    for (const Codec codec : tensor.codecs()) codecs.insert(codec);
  }
};

/// Reads the directory, and no payload.
FileTotals total(const Reader& reader);

/// The flags that are set: "compressed", "sparse".
std::vector<std::string_view> flag_names(const FileFlags& flags);
/// The codecs that tensors of the file are stored with.
std::vector<std::string_view> codec_names(const FileTotals& totals);
/// How much less is stored than there would be without compression: "1.43x".
std::string ratio_text(std::uint64_t logical_bytes, std::uint64_t stored_bytes);
std::string_view checksum_name(const FileHeader& header);
std::string_view leaf_name(const FileHeader& header);
/// Whether the checksum is a block tree.
bool has_tree(const FileHeader& header);
/// Whether the file is a delta of another file.
bool has_base(const FileHeader& header);

}  // namespace thalia::cli
