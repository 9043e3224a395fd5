// Readers and the open files that they stand for.
#pragma once

#include <memory>
#include <utility>

#include "base/inside.h"
#include "container/file/open_file.h"
#include "io/file/file_bytes.h"
#include "thalia/options.h"
#include "thalia/reader.h"

namespace thalia::container {

inline const std::shared_ptr<const detail::OpenFile>& shared_file_of(
    const Reader& reader) noexcept {
  return detail::Inside::file(reader).pointer();
}
inline const detail::OpenFile& file_of(const Reader& reader) noexcept {
  return *shared_file_of(reader);
}

/// As Reader::open(), of a file that others look at too.
Reader open_reader(const io::InputFile& input, const ReadOptions& options);

/// A reader of a file that is open.
Reader reader_over(std::shared_ptr<const detail::OpenFile> file);

/// A reader of a file's bytes, whatever is around them. @throws as Reader::open().
Reader reader_of(std::shared_ptr<const io::FileBytes> bytes, const ReadOptions& options);

}  // namespace thalia::container
