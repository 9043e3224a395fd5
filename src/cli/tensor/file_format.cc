#include "cli/tensor/file_format.h"

namespace thalia::cli {

FileFormat format_of(const std::filesystem::path& path) {
  if (const auto format = detect_format(path)) return *format;
  const bool named = path.extension() == ".safetensors";
  return named ? FileFormat::safetensors : FileFormat::thalia;
}

}  // namespace thalia::cli
