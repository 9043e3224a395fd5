#include "inspect/file_format.h"

namespace thalia::inspect {

FileFormat format_of(const std::filesystem::path& path) {
  return detect_format(path).value_or(FileFormat::thalia);
}

}  // namespace thalia::inspect
