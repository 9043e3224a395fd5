// NAME.data, or where the old model uses that, NAME.1.data. The data file gets its name before the
// model does. If it replaced a file of the old model, a crash between the two would leave an old
// model with new elements, and nothing would tell.
#include "formats/onnx/data_file.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "base/utf8.h"
#include "formats/onnx/file.h"
#include "thalia/error.h"
#include "thalia/paths.h"

namespace thalia::formats::onnx {
namespace {

using Names = std::set<std::string, std::less<>>;

// Files that the model at the path names; nullopt where it cannot be read, and may name any.
std::optional<Names> used_by(const std::filesystem::path& model) {
  if (!is_file(model)) return Names{};
  try {
    const OnnxFile file = OnnxFile::open(model);
    if (file.graph().unread_tensors > 0) return std::nullopt;
    Names names;
    for (const OnnxTensor& tensor : file.tensors()) names.insert(tensor.location);
    return names;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

DataFileName data_file_name(const std::filesystem::path& model, const OutputOptions& output) {
  const std::string stem = model.filename().native();
  if (!is_valid_utf8(stem)) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a model cannot name its data file where its own name is no UTF-8",
                           {.path = model.native()});
  }
  const std::filesystem::path folder = folder_of(model);
  const auto name_of = [&](unsigned number) {
    return number == 0 ? stem + ".data" : fmt::format("{}.{}.data", stem, number);
  };
  if (!is_file(folder / name_of(0)) && !is_file(folder / name_of(1))) return {.name = name_of(0)};
  const std::optional<Names> used = used_by(model);
  const auto may_write = [&](const std::string& name) {
    return !is_file(folder / name) || (output.replace && used && !used->contains(name));
  };
  unsigned number = 0;
  while (!may_write(name_of(number))) ++number;
  DataFileName found{.name = name_of(number)};
  // Of two names, one is used and one is free.
  for (unsigned old = 0; used && old <= 1; ++old)
    if (old != number && used->contains(name_of(old))) found.unused = name_of(old);
  return found;
}

}  // namespace thalia::formats::onnx
