#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "interop/pt/contents.h"
#include "io/file_bytes.h"
#include "thalia/formats/pt.h"

namespace thalia::interop::pt {
namespace {

PtTensor described_tensor(const Archive& archive, const Part& part, const Occurrence& occurrence) {
  PtTensor tensor{.name = occurrence.name, .layout = layout_of(part.graph, occurrence.node, false)};
  const Node& node = part.graph.at(occurrence.node);
  if (node.kind != Kind::tensor) return tensor;
  const TensorRecord& record = part.graph.tensors[node.index];
  tensor.requires_grad = record.requires_grad;
  tensor.parameter = node.flag;
  if (record.form == Form::sparse_coo || record.form == Form::sparse_csr) return tensor;
  tensor.quantized = quantum_name(record.quantum);
  tensor.stride.assign(record.stride.begin(), record.stride.begin() + record.shape.rank());
  tensor.storage_offset = record.offset;
  tensor.storage = archive.record_name(*part.members[record.storage]);
  return tensor;
}

}  // namespace
}  // namespace thalia::interop::pt

namespace thalia {

struct PtFile::Impl {
  struct Place {
    const interop::pt::Part* part;
    interop::pt::NodeId node;
  };

  Impl(StoredBytes bytes, std::string file_name, const ReadOptions& options)
      : name(std::move(file_name)) {
    io::MemoryBudget budget(options.input.limits, bytes.bytes.size());
    with_path(name,
              [&] { contents = interop::pt::Contents::read(std::move(bytes), options, budget); });
    for (const interop::pt::Part* const part : {&contents->state(), &contents->constants()}) {
      for (const interop::pt::Occurrence& occurrence : part->tree.occurrences) {
        tensors.push_back(interop::pt::described_tensor(contents->archive(), *part, occurrence));
        places.emplace(occurrence.name, Place{part, occurrence.node});
      }
    }
    tree = list_stored(contents->state().graph, contents->state().tree, {.shared_memory = true},
                       budget)
               .tree;
  }

  Place find(std::string_view tensor) const {
    const auto found = places.find(tensor);
    if (found != places.end()) return found->second;
    throw UsageError(ErrorCode::not_found,
                     "no such tensor" + suggestion_among(tensor, tensors, &PtTensor::name),
                     {.path = name, .tensor = printable(tensor)});
  }

  template <typename Call>
  auto naming(std::string_view tensor, const Call& call) const {
    try {
      return call();
    } catch (Error& error) {
      error.add_path(name);
      error.add_tensor(printable(tensor));
      throw;
    }
  }

  std::string name;
  std::shared_ptr<const interop::pt::Contents> contents;
  std::vector<PtTensor> tensors;
  std::unordered_map<std::string_view, Place> places;
  std::string tree;
};

PtFile PtFile::from_bytes(StoredBytes bytes, std::string name, const ReadOptions& options) {
  PtFile file;
  file.impl_ = std::make_shared<const Impl>(std::move(bytes), std::move(name), options);
  return file;
}

PtFile PtFile::open(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  return from_bytes({.bytes = file->bytes(), .owner = file}, path.string(), options);
}

const std::vector<PtTensor>& PtFile::tensors() const noexcept {
  return impl_->tensors;
}

const std::string& PtFile::tree() const noexcept {
  return impl_->tree;
}

const std::vector<std::string>& PtFile::losses() const noexcept {
  return impl_->contents->losses();
}

bool PtFile::is_torchscript() const noexcept {
  return impl_->contents->archive().is_script();
}

std::string_view PtFile::version() const noexcept {
  return impl_->contents->archive().version();
}

std::uint64_t PtFile::file_bytes() const noexcept {
  return impl_->contents->archive().file_bytes();
}

Tensor PtFile::read(std::string_view name) const {
  const Impl::Place place = impl_->find(name);
  return impl_->naming(name, [&] { return impl_->contents->read(*place.part, place.node, false); });
}

void PtFile::check(std::string_view name) const {
  const Impl::Place place = impl_->find(name);
  impl_->naming(name, [&] { impl_->contents->check(*place.part, place.node); });
}

}  // namespace thalia
