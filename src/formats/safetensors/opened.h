// A safetensors model as a source of tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/check_tensors.h"
#include "formats/source/opened_file.h"

namespace thalia::formats {

/// Opens a .safetensors file, a *.json index, or a folder with either. Every file's header is read
/// and checked, several at a time; nothing of the tensors is. A model that is replaced meanwhile is
/// opened anew. @throws IoError; UsageError as find_safetensors_model(); FormatError naming the
/// file and tensors: also where index and files do not have the same tensors, or two files have one
/// of a name; UnsupportedError as SafetensorsFile::open().
std::shared_ptr<const OpenedFile> open_safetensors_file(const io::InputFile& input,
                                                        const OpenOptions& options);
/// A VerifyFormat: of a model of several files all that is wrong with each, and with its index.
VerifyReport verify_safetensors(const io::InputFile& input, const OpenOptions& options,
                                const VerifyOptions& verify, bool resolve);

}  // namespace thalia::formats
