// The table of formats: what each is called, and how it is opened and written.
#pragma once

#include <span>
#include <string_view>

#include "interop/shared/tensor_sink.h"
#include "interop/shared/tensor_source.h"
#include "thalia/formats/file_format.h"

namespace thalia::interop {

struct FormatRow {
  FileFormat format;
  std::string_view name;
  std::string_view words;       ///< "a PyTorch file"
  std::string_view extensions;  ///< with dots, one after the other: ".pt.pth"
  /// Null of .thalia files of all versions, which have regions and go their own ways.
  OpenSource open = nullptr;
  WriteTensors write = nullptr;  ///< null: read only, or as above
  bool holds_sparse = false;
  bool holds_texts = false;  ///< as metadata, under names
};

const FormatRow& format_row(FileFormat format) noexcept;
/// The one whose files have names with this ending, without regard to case.
std::optional<FileFormat> format_of_extension(std::string_view extension) noexcept;
/// The names of all formats that are written, for messages.
std::string written_formats();

}  // namespace thalia::interop
