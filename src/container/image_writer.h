// Writes a file's image: extents are gathered, hashed while they are in the cache, and written, by
// several threads, each with its own queue. docs/design.md, "Writing".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "container/file_image.h"
#include "thalia/options.h"

namespace thalia::container {

struct ImageWrite {
  std::vector<std::byte> leaves;  ///< of the block tree; empty where the options want none
  IoMode io = IoMode::buffered;   ///< what was used
  std::string io_fallback;        ///< why it is not what was asked for
};

/// Writes [0, end) of the image, all but what is in the file already; zeros where it has nothing.
/// The file may end up to 4095 bytes longer. @throws IoError.
ImageWrite write_image(const FileImage& image, std::uint64_t end, const SaveOptions& options);

}  // namespace thalia::container
