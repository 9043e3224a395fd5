// The formats of files that the library knows, and how it tells them apart. docs/use/formats.md
// says what each can hold.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "thalia/options.h"

namespace thalia {

enum class FileFormat {
  thalia,
  safetensors,  ///< a file, an index of shards, or the folder of a model
  thalia_0_1,   ///< "thalia-0.1": what the original program wrote, thalia/formats/v01.h; deltas too
  mckp,         ///< docs/format/mckp.md; of a delta, the previous files are looked for next to it
  mst,          ///< the original mithril program's, thalia/formats/mithril.h
  mithril_quantized,  ///< "mithril-quantized": a tensor of codes, as that program wrote it
  orbax,          ///< "mithril-orbax": a folder of .npy files, as that program laid out for Orbax
  gptrs,          ///< GPTRSCHK, a model of gpt.rs; docs/format/gptrs.md
  gptrsten,       ///< GPTRSTEN, an archive of tensors
  entity,         ///< ENTITY, a network of Loom; docs/format/loom.md
  loom_json,      ///< "loom-json": the same as JSON
  pt,             ///< what torch.save and torch.jit.save write; docs/format/pt.md
  npz,            ///< numpy.savez; docs/format/npz.md
  npy,            ///< numpy.save: one tensor
  gguf,           ///< docs/format/gguf.md
  onnx,           ///< the weights of a model; docs/format/onnx.md
  thalia_shards,  ///< "thalia-shards": an index of .thalia files; read only
};

/// Static storage, as all names here.
std::string_view file_format_name(FileFormat format) noexcept;
std::optional<FileFormat> file_format_from_name(std::string_view name) noexcept;
/// In the user's words: "a PyTorch file".
std::string_view file_format_words(FileFormat format) noexcept;
/// All that there are.
std::span<const FileFormat> file_formats() noexcept;
/// Whether convert() writes it.
bool file_format_is_written(FileFormat format) noexcept;

/// By content (the first bytes), and where there is none or it tells nothing by the name's ending;
/// nullopt where neither tells. For a folder, the format of the file that opens its model:
/// find_model(). `access` is how an archive is looked into. @throws IoError where
/// the file exists and cannot be read; UnsupportedError for what is known and not a file of
/// tensors, in words that say what it is.
std::optional<FileFormat> detect_format(const std::filesystem::path& path,
                                        Access access = Access::mapped);
/// The same of a file that is to be read. @throws as detect_format(); FormatError where neither
/// tells, in words that say what it looks like; IoError if there is no such file.
FileFormat input_format(const std::filesystem::path& path, Access access = Access::mapped);

}  // namespace thalia
