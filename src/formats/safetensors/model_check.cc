// All that is wrong with a model, for a user who wants to know and not to open it.
#include <fmt/format.h>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/opened_model.h"
#include "thalia/error.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats::safetensors {
namespace {

// A limit says nothing about the file.
SafetensorsFinding finding_of_fault(const ModelFile& file) {
  try {
    std::rethrow_exception(file.fault);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::limit_exceeded) throw;
    std::string_view text = error.what();
    const std::string code = std::string(error_code_name(error.code())) + ": ";
    if (text.starts_with(code)) text.remove_prefix(code.size());
    return {{.code = error.code(), .message = std::string(text)}, file.name};
  }
}

}  // namespace

std::vector<SafetensorsFinding> findings_of(const OpenedModel& model) {
  std::vector<SafetensorsFinding> findings;
  bool is_whole = true;
  std::uint64_t bytes = 0;
  for (const ModelFile& file : model.files) {
    for (const NamedArray& tensor : file.parsed.tensors) bytes += tensor.bytes.size();
    if (!file.fault) continue;
    is_whole = false;
    findings.push_back(finding_of_fault(file));
  }
  for (const Mismatch& mismatch : compare_with_index(model)) {
    is_whole = false;
    findings.push_back({{.code = ErrorCode::inconsistent,
                         .tensor = printable(mismatch.tensor),
                         .message = describe(mismatch, model.index)},
                        model.files[mismatch.file].name});
  }
  // For parts of a model the sum tells nothing.
  if (is_whole && model.index.total_size && *model.index.total_size != bytes) {
    findings.push_back({{.severity = Severity::warning,
                         .code = ErrorCode::inconsistent,
                         .message = fmt::format("total_size is {}, and the tensors have {} bytes",
                                                *model.index.total_size, bytes)}});
  }
  return findings;
}

}  // namespace thalia::formats::safetensors

namespace thalia {

std::vector<SafetensorsFinding> check_safetensors_model(const std::filesystem::path& path,
                                                        const SafetensorsModelOptions& options) {
  using namespace formats::safetensors;
  return findings_of(open_faulty(path, options));
}

}  // namespace thalia
