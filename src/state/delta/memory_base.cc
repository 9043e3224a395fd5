// A state in memory as a delta's base, which spares reading the file that was saved from it. Memory
// may have changed since, and a delta against other bytes could never be resolved: each tensor
// whose bytes are used is hashed, if it can be in the pass that uses them, and held against the
// digest of the save.
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/file/short_name.h"
#include "format/payload.h"
#include "state/delta/base_state.h"
#include "state/delta/state_plan.h"

namespace thalia::state {
namespace {

class MemoryTensor final : public BaseTensor {
 public:
  // The bytes now have to be those that were saved then, which the digest tells.
  MemoryTensor(const ChainTensor& tensor, std::optional<std::uint32_t> crc32,
               const TensorSource& source, const Work& work)
      : BaseTensor(tensor, crc32), source_(&source), work_(&work) {}

  std::shared_ptr<const PartwiseBytes> open() override {
    if (needs_check()) check(digest_of(*open_unchecked(), work_->threads, work_->cancel).hash);
    return bytes_;
  }
  std::shared_ptr<const PartwiseBytes> open_unchecked() override {
    if (!bytes_) bytes_ = open_tensor_bytes(*source_, size());
    return bytes_;
  }
  bool needs_check() const noexcept override { return !checked_; }
  void check(const Digest128& hash) override {
    if (hash != digest().hash) {
      fail_argument(ErrorCode::bad_argument, "base",
                    fmt::format("'{}' with other bytes", printable(source_->spec.name)),
                    "the tensors that were saved",
                    "the state in memory is not the one that its digests describe");
    }
    checked_ = true;
  }

 private:
  const TensorSource* source_ = nullptr;
  const Work* work_ = nullptr;
  std::shared_ptr<const PartwiseBytes> bytes_;
  bool checked_ = false;
};

std::string text_of(const TensorKey& key) {
  // Unambiguous, since names of regions hold no NUL: what is before the first one is the
  // region.
  const std::string what = key.delays ? "delays" : "weights";
  return key.region.empty() ? std::string(1, '\0') + key.source + '\0' + key.target + '\0' + what
                            : key.region + '\0' + key.name;
}

class MemoryBase final : public BaseState {
 public:
  MemoryBase(const SavedState& saved, const Work& work)
      : saved_(saved), work_(work), sources_(keyed_tensors(saved.state)) {
    // A file's generation begins at 1: 0 means that nothing was saved.
    if (saved.identity.generation == 0) {
      fail_argument(ErrorCode::bad_argument, "identity", "generation 0",
                    "that of a file, as the result of its save has it");
    }
    // Without digests nothing tells whether memory still holds what was saved.
    if (saved.digests.size() != sources_.size()) {
      fail_argument(
          ErrorCode::bad_argument, "digests", std::to_string(saved.digests.size()),
          fmt::format("those of {} tensors, as the result of the save has them", sources_.size()));
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) places_.emplace(text_of(sources_[i].key), i);
  }

  std::filesystem::path path() const override { return saved_.path; }
  FileIdentity identity() const override { return saved_.identity; }
  std::uint64_t file_bytes() const override { return saved_.identity.file_length; }
  std::vector<std::filesystem::path> files() const override { return {saved_.path}; }

  BaseNames names() const override {
    BaseNames names;
    for (const RegionSource& region : saved_.state.regions) {
      BaseNames::Region& out = names.regions.emplace_back();
      out.name = region.spec.name;
      for (const TensorSource& tensor : region.tensors) out.tensors.push_back(tensor.spec.name);
    }
    for (const ConnectionSource& connection : saved_.state.connections) {
      BaseNames::Connection& out = names.connections.emplace_back();
      out.source = container::short_name_string(connection.source);
      out.target = container::short_name_string(connection.target);
      out.delays = connection.delays.has_value();
    }
    return names;
  }

  std::unique_ptr<BaseTensor> find(const TensorKey& key) const override {
    const auto place = places_.find(text_of(key));
    if (place == places_.end()) return nullptr;
    const TensorSource& source = *sources_[place->second].tensor;
    ChainTensor tensor{.layout = source.spec.layout(), .logical_bytes = 0, .content_hash = {}};
    const auto length = format::payload_length(tensor.layout);
    if (!length) {
      fail_argument(ErrorCode::bad_argument, "base", tensor.layout.shape.to_string(),
                    "a tensor that the format has");
    }
    tensor.logical_bytes = *length;
    const TensorDigest& digest = saved_.digests[place->second];
    tensor.content_hash = digest.content_hash;
    // 0 says that it is not known; a delta does not state it then, which harms no other 0.
    const auto crc32 = digest.crc32 != 0 ? std::optional(digest.crc32) : std::nullopt;
    return std::make_unique<MemoryTensor>(tensor, crc32, source, work_);
  }

 private:
  const SavedState& saved_;
  const Work& work_;
  std::vector<KeyedTensor> sources_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

std::unique_ptr<BaseState> memory_base(const SavedState& saved, const Work& work) {
  return std::make_unique<MemoryBase>(saved, work);
}

}  // namespace thalia::state
