// What files of all formats say of their tensors, and how they are opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/quantization.h"
#include "thalia/state/statistics.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

/// What a file's tables say of a tensor.
struct AnyTensor {
  /// Different from all others of the file, or, with OpenOptions::as_stored, of the region.
  std::string name;
  TensorLayout layout{};  ///< of what read() gives
  /// The format's own name of the element type, where the layout does not tell it: "Q4_K".
  std::string type{};
  /// Where its stored bytes lie in the file, and how many they are; nullopt if they do not lie
  /// together.
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> stored_bytes{};
  /// The bytes lie in the file as read() gives them: it copies nothing.
  bool in_place = false;
  /// How elements are stored where that is not as read() gives them: quantized, or as a difference
  /// (xor_base).
  std::optional<Encoding> stored_encoding{};
  std::vector<Codec> codecs{};        ///< of the stored bytes; empty: the format does not say
  std::optional<bool> byte_planes{};  ///< whether bytes of elements are grouped by their place
  std::optional<double> bits{};       ///< of a code, if it is stored quantized
  /// The checksum that the file has of the stored bytes, and that AnyFile::check() compares:
  /// "crc32", "sha1", "sha256" or "xxh64". Empty: the file has none, and changed bytes look like
  /// others.
  std::string_view checksum{};

  // What AnyFile::stored() tells as well.
  std::string region{};             ///< empty: it is in none
  std::string path{};               ///< in a state, by which patterns know it
  std::uint64_t logical_bytes = 0;  ///< decompressed: of codes, where it is stored quantized
  std::optional<Role> role{};
  std::optional<std::uint32_t> chunks{};
  std::optional<std::uint32_t> crc32{};
  std::optional<Digest128> content_hash{};
  std::optional<TensorQuantization> quantization{};  ///< where the file says what it lost

  /// What it takes of the file, or in memory where the format does not say.
  std::uint64_t size() const noexcept { return stored_bytes.value_or(logical_bytes); }
  /// Stored elements: of csr and coo those that there are, else all of the shape; at most 2^64 - 1.
  std::uint64_t elements() const noexcept;
  bool is_compressed() const noexcept;
};

/// A tensor that is read in parts. What its format decodes as a whole was decoded once, and is kept
/// as long as this. Holds the file open; any number of threads may read.
struct TensorElements {
  TensorLayout layout{};  ///< of what comes out
  /// Of a dense one. @throws UsageError (bad_argument, size_mismatch); as AnyFile::read().
  SliceReader read{};
  std::optional<Tensor> all{};  ///< where it is in memory as a whole, as every sparse one is
};

/// Of one in memory, or in a mapping.
TensorElements elements_of(Tensor tensor);

struct OpenOptions {
  ChainOptions chain{};
  /// Elements in place of the codes of formats with types of their own.
  bool dequantize = false;
  /// Of PyTorch files: tensors that share memory are one tensor, and a tree in the metadata says
  /// what they are of it (docs/format/pt.md, "Views and shared storages"). Else each is one of its
  /// own.
  bool shared_memory = false;
  /// Of files with regions the tensors as they stand there: named within their regions, in the
  /// order of the tables. Of a delta what it stores itself is listed, and its bases are opened with
  /// the first tensor that is read. Else names say the region where they have to, and a delta is
  /// its whole state.
  bool as_stored = false;
  /// Bytes that a safetensors header may have; the reference refuses more than 100 MB.
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
};

}  // namespace thalia
