// What the library needs of a Reader besides its public side.
#pragma once

#include <memory>

#include "container/file/open_file.h"
#include "thalia/reader.h"

namespace thalia {

struct ReaderAccess {
  /// A reader of a file that is open.
  static Reader over(std::shared_ptr<const detail::OpenFile> file) {
    return Reader(std::move(file));
  }
  static const detail::OpenFile& file(const Reader& reader) noexcept { return *reader.file_; }
  static const std::shared_ptr<const detail::OpenFile>& shared(const Reader& reader) noexcept {
    return reader.file_.pointer();
  }
};

}  // namespace thalia
