// What files of all formats say of their tensors, and how they are opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/tensor_layout.h"

namespace thalia {

/// What a file's tables say of a tensor.
struct AnyTensor {
  std::string name;       ///< different from all others of the file
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
};

struct OpenOptions {
  ChainOptions chain{};
  /// Elements in place of the codes of formats with types of their own.
  bool dequantize = false;
  /// Of PyTorch files: tensors that share memory are one tensor, and a tree in the metadata says
  /// what they are of it (docs/format/pt.md, "Views and shared storages"). Else each is one of its
  /// own.
  bool shared_memory = false;
  /// Bytes that a safetensors header may have; the reference refuses more than 100 MB.
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
};

}  // namespace thalia
