// The next state is written into a file of its own and renamed over the old one, as every save is:
// a crash leaves one or the other. What did not change is read of the old file, so a delta needs
// only itself. A process that has the old file open keeps the old state.
#include "store/follow/into_file.h"

#include <utility>

#include "base/fail.h"
#include "base/inside.h"
#include "base/utf8.h"
#include "container/read/reader_of.h"
#include "io/system/posix_error.h"
#include "state/delta/save_state.h"
#include "state/delta/tensor_chain.h"
#include "store/load/checked_file.h"
#include "thalia/error.h"

namespace thalia::store {
namespace {

class HeldFile final : public state::HeldBase {
 public:
  HeldFile(ChainReader file, FileIdentity identity) : file_(std::move(file)), identity_(identity) {}
  FileIdentity identity() const override { return identity_; }
  std::optional<state::HeldBytes> find(const state::TensorKey& key) const override {
    std::optional<state::TensorChain> found =
        state::TensorChain::find(state::files_of(file_), 0, key);
    if (!found) return std::nullopt;
    return state::HeldBytes{.tensor = found->result(),
                            .crc32 = found->crc32(),
                            .bytes = std::make_shared<const state::TensorChain>(*std::move(found))};
  }

 private:
  ChainReader file_;
  FileIdentity identity_;
};

bool is_same(const ChainTensor& a, const ChainTensor& b) {
  return a.content_hash == b.content_hash && a.layout == b.layout;
}

// Texts and tensors of the regions of one state against those of another; `found` gets what
// differs.
void compare_region(const state::FileChain& chain, const RegionView& region,
                    const state::FileChain& old, StateDifference& found) {
  const auto before = old.file(0).find_region(region.name());
  if (!before) {
    found.texts = true;
  } else {
    const RegionView other = old.file(0).region_view(*before);
    found.texts = found.texts || region.config_json() != other.config_json() ||
                  region.metadata_json() != other.metadata_json() ||
                  region.n_neurons() != other.n_neurons() ||
                  region.n_inputs() != other.n_inputs() ||
                  region.neuron_type() != other.neuron_type();
  }
  for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
    const state::TensorKey key{.region = std::string(region.name()),
                               .name = std::string(region.tensor(t).name())};
    const auto now = state::TensorChain::find(chain, 0, key);
    const auto then = state::TensorChain::find(old, 0, key);
    if (!then || !is_same(now->result(), then->result()))
      found.changed.push_back(fmt::format("{}/{}", key.region, key.name));
  }
}

bool same_connections(const state::FileChain& chain, const state::FileChain& old) {
  const Reader now = container::reader_over(chain.link(0).file());
  const Reader then = container::reader_over(old.link(0).file());
  if (now.connection_count() != then.connection_count()) return false;
  for (std::uint32_t c = 0; c < now.connection_count(); ++c) {
    const ConnectionView connection = now.connection(c);
    for (const bool delays : {false, true}) {
      const state::TensorKey key{
          .source = connection.source, .target = connection.target, .delays = delays};
      const auto a = state::TensorChain::find(chain, 0, key);
      const auto b = state::TensorChain::find(old, 0, key);
      if (a.has_value() != b.has_value()) return false;
      if (a && !is_same(a->result(), b->result())) return false;
    }
  }
  return true;
}

}  // namespace

void IntoFile::find() {
  file_.reset();
  try {
    ReadOptions read = options_.chain.read;
    const Reader reader = Reader::open(options_.into, read);
    // What is based on another file is not what this writes.
    if (!reader.delta_base()) file_ = ChainReader::open(reader, {.read = read});
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& error) {
    // It is written anew.
    if (io::is_out_of_resources(error)) throw;
  }
}

StateDifference IntoFile::compare(const state::FileChain& chain) const {
  StateDifference found;
  const detail::OpenFile& top = chain.file(0);
  const Reader now = container::reader_over(chain.link(0).file());
  if (!file_) {
    found.texts = true;
    for (std::uint32_t r = 0; r < top.region_count(); ++r) {
      const RegionView region = top.region_view(r);
      for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
        found.changed.push_back(fmt::format("{}/{}", region.name(), region.tensor(t).name()));
    }
    return found;
  }
  const state::FileChain& old = state::files_of(*file_);
  const Reader& then = file_->reader();
  found.texts = now.metadata_json() != then.metadata_json() ||
                now.header().training_steps != then.header().training_steps ||
                now.region_count() != then.region_count() || !same_connections(chain, old);
  for (std::uint32_t r = 0; r < top.region_count(); ++r)
    compare_region(chain, top.region_view(r), old, found);
  for (std::uint32_t r = 0; r < then.region_count(); ++r) {
    const RegionView region = then.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const std::string name(region.tensor(t).name());
      const auto place = chain.link(0).find({.region = std::string(region.name()), .name = name});
      if (!place) found.removed.push_back(fmt::format("{}/{}", region.name(), name));
    }
  }
  return found;
}

std::shared_ptr<const state::HeldBase> IntoFile::held(const FileIdentity& identity) const {
  return file_ ? std::make_shared<const HeldFile>(*file_, identity) : nullptr;
}

std::uint64_t IntoFile::prepare(const std::shared_ptr<const state::FileChain>& chain) {
  const Work& work = options_.chain.read.work;
  prepared_.reset();
  io::AtomicFile file(options_.into, {.output = options_.output, .cancel = work.cancel});
  const auto reader =
      detail::Inside::make<ChainReader>(chain, container::reader_over(chain->link(0).file()));
  const SaveResult saved = state::save_state(
      state_source(reader), file.fd(), options_.into,
      {.output = {.durability = Durability::none, .reproducible = options_.output.reproducible},
       .work = {
           .threads = work.threads, .memory_bytes = work.memory_bytes, .cancel = work.cancel}});
  prepared_ = std::move(file);
  return saved.file_bytes;
}

void IntoFile::commit() {
  io::AtomicFile file = std::move(*prepared_);
  prepared_.reset();
  file.commit();
  find();
}

}  // namespace thalia::store
