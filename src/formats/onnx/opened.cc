#include "formats/onnx/opened.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "base/checked_sum.h"
#include "formats/onnx/data_folder.h"
#include "formats/onnx/file.h"
#include "formats/onnx/source_metadata.h"
#include "io/memory/allocation_limit.h"
#include "thalia/files.h"

namespace thalia::formats {
namespace onnx {
namespace {

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<std::string> losses_of(const OnnxGraph& graph) {
  std::vector<std::string> losses;
  if (!graph.outputs_are_tensors) {
    losses.push_back(fmt::format("the graph of {}, {} and {}", counted(graph.nodes, "node"),
                                 counted(graph.inputs, "input"), counted(graph.outputs, "output")));
  }
  if (graph.unread_tensors > 0)
    losses.push_back(counted(graph.unread_tensors, "tensor") +
                     " in nodes of types that are not read, such as strings");
  if (graph.functions > 0) losses.push_back(counted(graph.functions, "function"));
  if (graph.training) losses.emplace_back("how the model is trained");
  if (graph.annotations > 0)
    losses.push_back(counted(graph.annotations, "annotation") + " of tensors and of the graph");
  return losses;
}

class OpenedOnnx final : public OpenedFile {
 public:
  OpenedOnnx(const io::InputFile& input, const OpenOptions& options)
      : file_(OnnxFile::open(input, {.input = options.chain.read.input,
                                     .data_folder = options.chain.bases.folder,
                                     .cancel = options.chain.read.work.cancel})),
        folder_(folder_of(input.path())),
        limits_(options.chain.read.input.limits) {
    std::set<std::string_view> locations;
    for (const OnnxTensor& tensor : file_.tensors())
      if (!tensor.location.empty()) locations.insert(tensor.location);
    const bool external = !locations.empty();
    // All tensors in place are held until a .thalia file is written.
    const bool is_held = locations.size() <= kMostOpen;
    for (const OnnxTensor& tensor : file_.tensors()) {
      const bool in_place = tensor.offset && !is_sparse(tensor.layout.encoding);
      facts_.tensors.push_back({.name = tensor.name,
                                .layout = tensor.layout,
                                .offset = tensor.offset,
                                .stored_bytes = tensor.stored_bytes,
                                .in_place = in_place && (is_held || tensor.location.empty()),
                                .checksum = tensor.has_checksum ? "sha1" : ""});
    }
    OnnxMetadata metadata = file_.metadata();
    for (const auto& [key, text] : metadata)
      if (key == kEmbeddedMetadata) facts_.embedded = text;
    facts_.version = fmt::format("IR {}", file_.model().ir_version);
    facts_.training_steps = take_training_steps(metadata);
    OnnxSourceMetadata source{
        .model = file_.model(), .metadata = std::move(metadata), .external_data = external};
    for (const OnnxTensor& tensor : file_.tensors()) source.order.push_back(tensor.name);
    facts_.metadata = source_metadata_to_json(source);
    facts_.file_bytes = file_.file_bytes();
    facts_.losses = losses_of(file_.graph());
    data_bytes_ = file_.file_bytes();
    for (const std::string_view location : locations) {
      // Who reads from one that is not there is told.
      const std::filesystem::path data = folder_ / location;
      if (is_file(data)) data_bytes_ += thalia::file_bytes(data);
    }
    CheckedSum claimed;
    for (const OnnxTensor& tensor : file_.tensors()) claimed += tensor.stored_bytes;
    claimed_bytes_ = claimed.value().value_or(UINT64_MAX);
  }

  std::vector<std::filesystem::path> files() const override {
    std::set<std::filesystem::path> files;
    for (const OnnxTensor& tensor : file_.tensors())
      if (!tensor.location.empty()) files.insert(folder_ / tensor.location);
    return {files.begin(), files.end()};
  }

  Tensor read(std::size_t i) const override {
    check_shared();
    return file_.read(i);
  }
  void check(std::size_t i) const override {
    check_shared();
    file_.check(i);
  }

 private:
  // Any number of tensors may name one extent of a data file: anybody who reads one after the other
  // would work for hours.
  void check_shared() const {
    if (claimed_bytes_ > data_bytes_) io::check_work("data", claimed_bytes_, limits_, data_bytes_);
  }

  OnnxFile file_;
  std::filesystem::path folder_;
  ReadLimits limits_;
  std::uint64_t data_bytes_ = 0;     ///< of all files
  std::uint64_t claimed_bytes_ = 0;  ///< of all tensors in them
};

}  // namespace
}  // namespace onnx

std::shared_ptr<const OpenedFile> open_onnx_file(const io::InputFile& input,
                                                 const OpenOptions& options) {
  return std::make_shared<const onnx::OpenedOnnx>(input, options);
}

}  // namespace thalia::formats
