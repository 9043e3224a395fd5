// Files that take another form while they are opened. docs/format/deltas.md, "Rebasing".
#pragma once

#include <filesystem>

#include "io/file/file_bytes.h"
#include "io/file/posix_file.h"
#include "thalia/error.h"

namespace thalia::state {

inline constexpr int kMostReplacements = 10;

/// A delta takes another form before its base does: a reader that opened the old one and finds that
/// its base is another file opens it again. @param open_top of what is at the path now. @param
/// bytes_of what it returned. @param make the chain of it. @throws what the two throw.
template <typename OpenTop, typename BytesOf, typename Make>
auto open_unreplaced(const std::filesystem::path& path, const OpenTop& open_top,
                     const BytesOf& bytes_of, const Make& make) {
  for (int tries = 0;; ++tries) {
    const auto top = open_top();
    const auto is_replaced = [&] {
      const io::FileBytes& bytes = bytes_of(top);
      return tries < kMostReplacements && bytes.backing() == io::Backing::file &&
             !io::is_at_path(bytes.fd(), path);
    };
    try {
      return make(top);
    } catch (const MissingBaseError&) {
      if (!is_replaced()) throw;
    } catch (const IntegrityError&) {
      if (!is_replaced()) throw;
    }
  }
}

}  // namespace thalia::state
