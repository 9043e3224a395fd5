// A connection as a file holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "container/file/open_file.h"

namespace thalia::container {

/// The names of a connection's regions and the numbers of its matrices, as the file has them.
struct StoredConnection {
  std::string source;  ///< short names
  std::string target;
  std::uint32_t weights;  ///< numbers of tensors
  std::optional<std::uint32_t> delays;
};
StoredConnection stored_connection(const detail::OpenFile& file, std::uint32_t i);

}  // namespace thalia::container
