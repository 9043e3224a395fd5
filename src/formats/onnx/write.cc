// Both files are open at once, so that each tensor is asked for once, in the order of the input.
// The data file is put in place first: a model is never there without its data.
#include "formats/onnx/write.h"

#include <fmt/format.h>

#include <cassert>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/onnx/file.h"
#include "formats/onnx/plan.h"
#include "formats/onnx/sparse.h"
#include "io/output/atomic_file.h"
#include "io/path/real_path.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/options.h"

namespace thalia::formats::onnx {
namespace {

// What the file beside a model is called, so that a model always has the data that it was written
// with.
//
// NAME.data, or where the old model uses that, NAME.1.data. The data file gets its name before the
// model does. If it replaced a file of the old model, a crash between the two would leave an old
// model with new elements, and nothing would tell.

struct DataFileName {
  std::string name{};    ///< of the file to write: one that the model at the path does not use
  std::string unused{};  ///< of the file that is no longer used once that model is replaced
};

using Names = std::set<std::string, std::less<>>;

// Files that the model at the path names; nullopt if it cannot be read, and may name any.
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

/// @param model the path of the model that is about to be written, links resolved. @throws
/// UnsupportedError where its name is no UTF-8.
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
  // One of the two names is used, and one is free.
  for (unsigned old = 0; used && old <= 1; ++old)
    if (old != number && used->contains(name_of(old))) found.unused = name_of(old);
  return found;
}

OnnxPlan make_fitting_plan(const std::filesystem::path& path,
                           const std::vector<SinkTensor>& tensors, const OnnxMetadata& metadata,
                           const OnnxModel& model, const OnnxWriteOptions& options,
                           DataFileName& data) {
  OnnxPlan plan = make_plan(tensors, metadata, model, {});
  const bool is_too_large = plan.model_bytes > options.most_model_bytes;
  if (options.external_data.value_or(is_too_large)) {
    data = data_file_name(io::real_path(path), options.output);
    plan = make_plan(tensors, metadata, model, data.name);
  }
  if (plan.model_bytes > options.most_model_bytes || plan.data_bytes > std::uint64_t{1} << 62) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "the model is longer than a message of protobuf can be",
                           {.value = fmt::format("{} bytes", plan.model_bytes),
                            .bound = std::to_string(options.most_model_bytes)});
  }
  return plan;
}

void pad(OutputFile& out, std::uint64_t size) {
  constexpr std::array<std::byte, kDataAlignment> kZeros{};
  out.write(ByteSpan(kZeros).first(size - out.size()));
}

}  // namespace

std::uint64_t write_model(const std::filesystem::path& path, const std::vector<SinkTensor>& tensors,
                          const OnnxMetadata& metadata, OnnxModel model,
                          const OnnxWriteOptions& options, const std::function<void()>& checked,
                          const EmitPayload& emit) {
  DataFileName data;
  const OnnxPlan plan = with_path(path.native(), [&] {
    check_input(tensors, metadata, model);
    return make_fitting_plan(path, tensors, metadata, model, options, data);
  });
  checked();
  OutputFile out(path, options.output, options.work.cancel);
  std::optional<OutputFile> data_out;
  const std::filesystem::path folder = folder_of(out.path());
  for (const std::string& name : {data.name, data.unused})
    if (!name.empty()) io::refuse_read(folder / name, options.sources);
  if (plan.data_bytes > 0)
    data_out.emplace(folder / data.name, options.output.beside(), options.work.cancel);

  std::uint64_t done = 0;
  out.write(as_byte_span(plan.front));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const OnnxPlannedTensor& planned = plan.tensors[i];
    out.write(as_byte_span(planned.head));
    OutputFile& target = planned.external ? *data_out : out;
    if (planned.external) pad(target, planned.offset);
    [[maybe_unused]] const std::uint64_t before = done;
    PieceSink sink = [&](ByteSpan piece) { target.write(piece); };
    std::optional<SparseWriter> sparse;
    if (is_sparse(tensors[i].layout.encoding)) {
      bool is_first = true;
      sparse.emplace(
          tensors[i].layout, [&](ByteSpan positions) { out.write(positions); },
          [&, is_first](ByteSpan values) mutable {
            if (std::exchange(is_first, false)) out.write(as_byte_span(planned.middle));
            out.write(values);
          });
      sink = [&](ByteSpan piece) { sparse->take(piece); };
    }
    emit(i, [&](ByteSpan piece) {
      sink(piece);
      done += piece.size();
      if (options.work.progress) options.work.progress(done, plan.payload_bytes);
    });
    // Without values nothing has put it there.
    if (sparse && tensors[i].layout.nnz == 0) out.write(as_byte_span(planned.middle));
    // Lengths in the model rely on it.
    assert(done - before == planned.payload_bytes);
  }
  out.write(as_byte_span(plan.back));
  assert(out.size() == plan.model_bytes);
  if (data_out) data_out->commit();
  out.commit();
  if (data_out && !data.unused.empty()) static_cast<void>(remove_file(folder / data.unused));
  return plan.model_bytes + plan.data_bytes;
}

}  // namespace thalia::formats::onnx

namespace thalia {

std::uint64_t save_onnx(const std::filesystem::path& path,
                        const std::vector<std::pair<std::string, Tensor>>& tensors,
                        const OnnxMetadata& metadata, const OnnxSaveOptions& options) {
  std::vector<formats::SinkTensor> layouts;
  for (const auto& [name, tensor] : tensors)
    layouts.push_back({.name = name, .layout = tensor.layout()});
  return formats::onnx::write_model(
      path, layouts, metadata, options.model,
      {.external_data = options.external_data, .output = options.output, .work = options.work},
      [] {},
      [&](std::size_t i, const formats::PieceSink& sink) { sink(tensors[i].second.bytes()); });
}

}  // namespace thalia
