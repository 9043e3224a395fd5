#include "inspect/describe_file.h"

#include <string>
#include <utility>

#include "inspect/file_tensors.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/value.h"

namespace thalia::inspect {
namespace {

// Where a file has nothing but texts, these, without what else a conversion keeps of it.
std::string shown_metadata(const AnyFile& file) {
  std::string metadata(file.metadata_json());
  if (file.format() != FileFormat::safetensors && file.format() != FileFormat::mst) return metadata;
  const Value all = parse_json(metadata);
  const Value* const own = all.find(file_format_name(file.format()));
  const Value* const texts = own != nullptr ? own->find("metadata") : nullptr;
  return texts != nullptr && !texts->members().empty() ? to_json(*texts) : std::string();
}

void take_steps(DescribedFile& facts) {
  facts.progress = training_progress(facts.metadata);
  if (!facts.training_steps) return;
  // A header that got no count of steps says 0; metadata may know better.
  if (*facts.training_steps == 0 && facts.progress.steps) return;
  facts.progress.steps = facts.training_steps;
  facts.progress.steps_member.clear();
}

// A format has one kind of checksum, and a file may have it for some tensors only.
class Checksums {
 public:
  void add(const AnyTensor& tensor) {
    ++tensors_;
    if (tensor.checksum.empty()) return;
    facts_.type = tensor.checksum;
    ++covered_;
  }
  ChecksumFacts facts() && {
    if (covered_ != 0 && covered_ != tensors_) facts_.tensors = covered_;
    return std::move(facts_);
  }

 private:
  ChecksumFacts facts_;
  std::uint64_t tensors_ = 0;
  std::uint64_t covered_ = 0;
};

}  // namespace

DescribedFile describe_file(const AnyFile& file) {
  DescribedFile facts;
  static_cast<FileFacts&>(facts) = file.facts();
  facts.path = file.path();
  facts.format = file.format();
  if (facts.disk_bytes == 0) facts.disk_bytes = facts.file_bytes;
  // Files with regions have metadata of their own, though they may be nothing.
  facts.metadata = shown_metadata(file);
  if (!facts.regions && facts.metadata == "{}") facts.metadata.clear();
  take_steps(facts);
  if (const auto lacks = file.lacks()) facts.warnings.push_back("it lacks " + *lacks);
  Checksums checksums;
  if (facts.lists_tensors) {
    TensorTotals totals;
    for (std::size_t i = 0; i < file.tensor_count(); ++i) {
      const AnyTensor tensor = file.stored(i);
      totals.add(tensor);
      checksums.add(tensor);
    }
    facts.totals = std::move(totals);
  }
  if (!facts.checksum) facts.checksum = std::move(checksums).facts();
  return facts;
}

DescribedFile describe_file(const std::filesystem::path& path, const ChainOptions& options) {
  return describe_file(open_stored(path, options));
}

}  // namespace thalia::inspect
