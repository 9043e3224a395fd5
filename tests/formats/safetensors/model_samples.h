// Models of several files, and the way from a source to a sink and back.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/samples.h"
#include "formats/source/opened_file.h"
#include "formats/source/tensor_sink.h"
#include "support/files.h"

namespace thalia::test {

/// {"metadata":{"total_size":…},"weight_map":{NAME:FILE,…}}
std::string index_text(const std::vector<std::pair<std::string, std::string>>& weights,
                       std::uint64_t total_size);

/// Tensors "a" to "d" of 8, 16, 4 and 2 bytes, in two files and an index; what `open` gives is in
/// the order a, b, d, c.
void write_model(const std::filesystem::path& folder);
std::vector<OwnedTensor> model_tensors();

/// The bytes of all files of a folder.
std::map<std::string, std::string> contents(const std::filesystem::path& folder);

/// What a file or model is as a source, as the input of a sink.
formats::SinkInput input_of(const formats::OpenedFile& source);
/// Reads through the source and writes through the sink; returns what is lost.
std::vector<std::string> copy_safetensors(const std::filesystem::path& from,
                                          const std::filesystem::path& to,
                                          formats::SinkOptions options = {});

}  // namespace thalia::test
