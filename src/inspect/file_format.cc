#include "inspect/file_format.h"

#include <array>

namespace thalia::inspect {

std::span<const FileFormat> all_file_formats() {
  static constexpr std::array kFormats{FileFormat::thalia, FileFormat::safetensors,
                                       FileFormat::thalia_0_1, FileFormat::mckp, FileFormat::mst};
  return kFormats;
}

FileFormat format_of(const std::filesystem::path& path) {
  if (const auto format = detect_format(path)) return *format;
  const bool named = path.extension() == ".safetensors";
  return named ? FileFormat::safetensors : FileFormat::thalia;
}

}  // namespace thalia::inspect
