// The table of formats: what each is called, and how it is opened and written.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/source/check_tensors.h"
#include "formats/source/opened_file.h"
#include "formats/source/tensor_sink.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/file_facts.h"
#include "thalia/reader.h"

namespace thalia::formats {

/// Whether `metadata`, which a file of the format tells, is what it would tell had it been written
/// from `input`: nobody else has put anything into it then, and no type of the format's own.
using IsMadeOf = bool (*)(const SinkInput& input, std::string_view metadata,
                          unsigned max_json_depth);

/// Whether metadata say no more than how a file of the format was written: nothing that its users
/// put there. Null: all that a source tells is more than that.
using IsNoteOnly = bool (*)(std::string_view metadata, unsigned max_json_depth);

struct FormatRow {
  FileFormat format;
  std::string_view name;
  std::string_view words;       ///< "a PyTorch file"
  std::string_view extensions;  ///< with dots, one after the other: ".pt.pth"
  OpenFormat open = nullptr;
  WriteTensors write = nullptr;   ///< null: read only, or .thalia files, which go their own ways
  VerifyFormat verify = nullptr;  ///< null: opening it and looking at each tensor is all
  bool names_files = false;       ///< it may be read together with others: OpenedFile::files()
  bool tells_part = false;        ///< OpenedFile::part()
  bool takes_whole = false;       ///< a tensor is in memory as a whole while it is written
  bool holds_sparse = false;
  bool holds_views = false;       ///< of tensors: OpenOptions::shared_memory
  bool holds_texts = false;       ///< as metadata, under names
  bool takes_config = false;      ///< SinkInput::model_config
  IsMadeOf is_made_of = nullptr;  ///< of formats that carry metadata of others
  IsNoteOnly is_note_only = nullptr;
};

const FormatRow& format_row(FileFormat format) noexcept;
/// The one whose files have names with the ending of this one, without regard to case; that of an
/// index of shards too.
std::optional<FileFormat> format_of_name(const std::filesystem::path& path);
/// detect_format() and input_format() of a file that is there and that others look at too: of a
/// folder, the file that opens its model.
std::optional<FileFormat> detect(const io::InputFile& input, Access access);
FileFormat format_of(const io::InputFile& input, Access access);
/// A .thalia file, or a delta, as its reader; any other as open_any() has it. It is opened once: to
/// see what it is, and then to be read. @param path of a file, or of a folder that is one.
/// @throws as open_any().
std::variant<Reader, AnyFile> open_as_found(const std::filesystem::path& path,
                                            const OpenOptions& options);
/// The same of files_read().
std::vector<std::filesystem::path> files_read(const io::InputFile& input,
                                              const OpenOptions& options, FileFormat format);
/// Whether some format's function says so.
bool is_note_only(std::string_view metadata, unsigned max_json_depth);
/// The names of all formats that are written, for messages.
std::string written_formats();

}  // namespace thalia::formats
