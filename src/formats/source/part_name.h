// Names of files that are one of several: NAME-00001-of-00003.EXT, as Hugging Face's programs,
// llama.cpp and this library call them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace thalia::formats {

struct PartName {
  std::string_view prefix;     ///< before -00001-of-00003
  std::uint64_t number = 0;    ///< from 1 on
  std::uint64_t count = 0;     ///< of all parts
  std::string_view extension;  ///< ".safetensors", ".thalia.zst"
};

/// Which of how many files of a model one is.
struct ModelPart {
  std::uint64_t number = 0;  ///< from 1 on
  std::uint64_t count = 0;
};

/// What such a file lacks, in words that follow "lacks": "the tensors of 2 other files: …"; nullopt
/// of one that is all there is. @param part what the file itself says; nullopt: its name counts.
std::optional<std::string> lacking_parts(const std::filesystem::path& path,
                                         const std::optional<ModelPart>& part);

/// nullopt of any other name. Numbers have five digits or more.
std::optional<PartName> part_name(std::string_view name) noexcept;

}  // namespace thalia::formats
