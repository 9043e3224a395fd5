// Files as a delta's base. The base's tensors are read through their own chain, whatever its depth:
// a delta is always taken against what comes out, so that errors of lossy links do not add up.
#include <algorithm>
#include <optional>
#include <utility>

#include "container/read/stored_connection.h"
#include "state/delta/base_state.h"
#include "state/delta/file_chain.h"
#include "state/delta/held_base.h"
#include "state/delta/tensor_chain.h"

namespace thalia::state {
namespace {

// The chain is both the description and the bytes: opening it costs nothing more.
class FileTensor final : public BaseTensor {
 public:
  explicit FileTensor(TensorChain chain)
      : BaseTensor(chain.result(), chain.crc32()),
        chain_(std::make_shared<const TensorChain>(std::move(chain))) {}
  std::shared_ptr<const PartwiseBytes> open() override { return chain_; }

 private:
  std::shared_ptr<const TensorChain> chain_;
};

class FileBase final : public BaseState {
 public:
  explicit FileBase(const ChainReader& chain)
      : chain_(chain), files_(state::files_of(chain)), top_(files_.file(0)) {}

  std::filesystem::path path() const override { return top_.mapping().path(); }

  FileIdentity identity() const override { return identity_of(top_, chain_.depth()); }

  std::uint64_t file_bytes() const override { return top_.mapping().disk_bytes(); }
  std::vector<std::filesystem::path> files() const override { return chain_.paths(); }

  BaseNames names() const override {
    BaseNames names;
    for (std::uint32_t r = 0; r < top_.region_count(); ++r) {
      const RegionView region = top_.region_view(r);
      BaseNames::Region& out = names.regions.emplace_back();
      out.name = region.name();
      for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
        out.tensors.emplace_back(region.tensor(t).name());
    }
    for (std::uint32_t c = 0; c < top_.connection_count(); ++c) {
      // Short names, as the file has them; note_changed_regions() compares them as such.
      container::StoredConnection stored = container::stored_connection(top_, c);
      BaseNames::Connection& out = names.connections.emplace_back();
      out.source = std::move(stored.source);
      out.target = std::move(stored.target);
      out.delays = stored.delays.has_value();
    }
    return names;
  }

  std::unique_ptr<BaseTensor> find(const TensorKey& key) const override {
    std::optional<TensorChain> found = TensorChain::find(files_, 0, key);
    return found ? std::make_unique<FileTensor>(*std::move(found)) : nullptr;
  }

 private:
  const ChainReader& chain_;
  const FileChain& files_;
  const detail::OpenFile& top_;
};

}  // namespace

std::unique_ptr<BaseState> file_base(const ChainReader& chain) {
  return std::make_unique<FileBase>(chain);
}

}  // namespace thalia::state
