// One view of three formats, for conversions that need only names, shapes and payloads. `read`
// holds the open file (a cheap shared handle), so a list may outlive the function that made it, and
// each tensor is decoded when it is asked for.
#include "interop/convert/tensor_list.h"

#include <utility>

#include "base/fail.h"
#include "json/reader.h"
#include "json/writer.h"
#include "thalia/mckp.h"
#include "thalia/mst.h"

namespace thalia::interop {
namespace {

// mst and safetensors have texts under names; a list has a JSON object for all formats.
std::string object_of(const SafetensorsMetadata& metadata) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const auto& [key, value] : metadata) json.member(key, value);
  json.end_object();
  return text;
}

template <typename Tensors>
std::vector<SafetensorsTensor> described(const Tensors& tensors) {
  std::vector<SafetensorsTensor> list;
  for (const auto& tensor : tensors)
    list.push_back(
        {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .bytes = {}});
  return list;
}

TensorList list_mckp(const std::filesystem::path& path, const ConvertOptions& options) {
  const MckpChain chain = MckpChain::open(
      path, {.input = options.read.input,
             // A conversion would give a damaged payload new checksums, and so hide the damage.
             .verify = true,
             .search = options.search,
             .bases = options.bases,
             .work = {.threads = options.read.work.threads, .cancel = options.save.work.cancel}});
  TensorList list{.tensors = described(chain.newest().tensors()),
                  .read = {},
                  .metadata = chain.newest().header().metadata,
                  .training_step = chain.newest().header().training_step,
                  .file_bytes = chain.newest().file_bytes()};
  list.read = [chain](std::size_t i) { return chain.read(chain.newest().tensors()[i].name); };
  return list;
}

TensorList list_mst(const std::filesystem::path& path, const ConvertOptions& options) {
  const MstFile file = MstFile::open(path, options.read);
  TensorList list{.tensors = described(file.tensors()),
                  .read = {},
                  .metadata = object_of(file.metadata()),
                  .training_step = std::nullopt,
                  .file_bytes = file.file_bytes()};
  list.read = [file](std::size_t i) { return file.read(file.tensors()[i].name); };
  return list;
}

TensorList list_safetensors(const std::filesystem::path& path, const ConvertOptions& options) {
  const SafetensorsFile file =
      SafetensorsFile::open(path, options.read, options.max_safetensors_header_bytes);
  TensorList list{.tensors = described(file.tensors()),
                  .read = {},
                  .metadata = object_of(file.metadata()),
                  .training_step = std::nullopt,
                  .file_bytes = file.file_bytes()};
  list.read = [file](std::size_t i) {
    const SafetensorsTensor& tensor = file.tensors()[i];
    // The tensor borrows from the file, so it keeps a handle of its own.
    const auto owner = std::make_shared<const SafetensorsFile>(file);
    return Tensor::adopt({.dtype = tensor.dtype, .shape = tensor.shape}, tensor.bytes, owner);
  };
  return list;
}

}  // namespace

TensorList open_tensor_list(const std::filesystem::path& path, FileFormat format,
                            const ConvertOptions& options) {
  if (format == FileFormat::safetensors) return list_safetensors(path, options);
  if (format == FileFormat::mckp) return list_mckp(path, options);
  if (format == FileFormat::mst) return list_mst(path, options);
  fail_argument(ErrorCode::bad_argument, "from", std::string(file_format_name(format)),
                "safetensors, mckp or mst");
}

TextMembers text_members(const std::string& object, unsigned max_depth) {
  TextMembers members;
  json::walk_object(object, max_depth, [&](std::string_view key, json::Value& value) {
    if (value.kind() == json::Kind::string) {
      members.texts.emplace_back(key, value.string());
    } else {
      members.others.emplace_back(key);
    }
  });
  return members;
}

}  // namespace thalia::interop
