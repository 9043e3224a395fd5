// Whole checkpoints under keys of a storage, each as a difference to a previous one.
#include "thalia/formats/compressor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/formats/mckp.h"
#include "thalia/state/value.h"
#include "thalia/storage.h"
#include "thalia/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// Used with the GIL held; the calls themselves need none.
class Compressor {
  // Ctrl-C ends the call, and all that other threads do with this one.
  template <typename Action>
  auto run(const Action& action) {
    if (stop_.stop_requested()) renew();
    const CheckpointCompressor compressor = *compressor_;
    const std::stop_source stop = stop_;
    return interruptible([&](const std::stop_token& interrupted) {
      const std::stop_callback forward(interrupted, [&] { stop.request_stop(); });
      return action(compressor);
    });
  }

 public:
  Compressor(const std::string& storage, bool delta_enabled, bool byte_grouping,
             std::optional<int> level, unsigned max_chain, unsigned threads)
      : config_{.delta_enabled = delta_enabled,
                .byte_grouping = byte_grouping,
                .max_chain = max_chain,
                .work = {.threads = threads}},
        storage_(open_storage(storage)) {
    if (level) config_.compression = {.codec = Codec::zstd, .level = *level};
    renew();
  }

  StorageBackend& storage() const { return *storage_; }

  // `tensors`: (name, dtype, shape, buffer) each.
  CheckpointMeta save(const ListOf<nb::any>& tensors, const std::string& metadata_json,
                      std::optional<std::uint64_t> training_step, const std::string& key,
                      const std::string& previous_key) {
    std::vector<HeldBuffer> held;
    held.reserve(tensors.size());
    Checkpoint checkpoint{.metadata = parse_json(metadata_json), .training_step = training_step};
    for (const nb::handle item : tensors) {
      const auto tensor = nb::cast<nb::tuple>(item);
      held.emplace_back(tensor[3], HeldBuffer::Use::read);
      const auto extents = nb::cast<std::vector<std::uint64_t>>(tensor[2]);
      checkpoint.tensors.insert_or_assign(
          nb::cast<std::string>(tensor[0]),
          Tensor::borrow(dtype_of(nb::cast<std::string>(tensor[1])),
                         Shape(std::span<const std::uint64_t>(extents)), held.back().bytes()));
    }
    return run([&](const CheckpointCompressor& compressor) {
      return compressor.save(checkpoint, key, previous_key);
    });
  }

  // ([(name, dtype, shape, bytes)], metadata, training step)
  TupleWith<ListOf<TupleWith<std::string, std::string, Shape, OwnedBytes>>, std::string,
            std::optional<std::uint64_t>>
  load(const std::string& key) {
    Checkpoint checkpoint =
        run([&](const CheckpointCompressor& compressor) { return compressor.load(key); });
    nb::list tensors;
    for (auto& [name, tensor] : checkpoint.tensors) {
      const auto memory = std::make_shared<Tensor>(std::move(tensor));
      tensors.append(nb::make_tuple(text_object(name), dtype_name(memory->dtype()), memory->shape(),
                                    OwnedBytes{memory->mutable_bytes(), memory}));
    }
    return nb::make_tuple(tensors, text_object(to_json(checkpoint.metadata)),
                          checkpoint.training_step);
  }

  // (metadata, training step), from the header alone.
  TupleWith<std::string, std::optional<std::uint64_t>> metadata(const std::string& key) const {
    const MckpHeader header = interruptible([&](const std::stop_token&) {
      return MckpFile::from_bytes(storage().view(key), key).header();
    });
    return nb::make_tuple(text_object(header.metadata), header.training_step);
  }

 private:
  void renew() {
    stop_ = std::stop_source();
    config_.work.cancel = stop_.get_token();
    compressor_.emplace(config_, storage_);
  }

  CompressorConfig config_;
  std::shared_ptr<StorageBackend> storage_;
  std::stop_source stop_;
  std::optional<CheckpointCompressor> compressor_;
};

}  // namespace

void bind_compressor(nb::module_& module) {
  bind_result<CheckpointMeta>(
      module, "CheckpointMeta", "What save() stored. Sizes are in bytes.",
      field("key", &CheckpointMeta::key),
      field("original_size", &CheckpointMeta::original_size, "The size of all tensors."),
      field("compressed_size", &CheckpointMeta::compressed_size, "The size of the stored file."),
      field("previous_key", &CheckpointMeta::previous_key,
            "Where any tensor is stored as a difference."),
      field("tensors", &CheckpointMeta::tensors),
      field("delta_tensors", &CheckpointMeta::delta_tensors,
            "Tensors that are stored as differences."),
      field(
          "content_hash", [](auto& meta) -> auto& { return meta.signature.hash; },
          "The hash of the checkpoint, however it is stored: docs/format/mckp.md, \"Content "
          "hash\"."))
      .def_prop_ro("ratio", &CheckpointMeta::ratio, "original_size / compressed_size.");
  nb::class_<Compressor>(module, "Compressor")
      .def(nb::init<const std::string&, bool, bool, std::optional<int>, unsigned, unsigned>(),
           nb::arg("storage"), nb::arg("delta_enabled"), nb::arg("byte_grouping"),
           nb::arg("level").none(), nb::arg("max_chain"), nb::arg("threads"))
      .def("save", &Compressor::save, nb::arg("tensors"), nb::arg("metadata_json"),
           nb::arg("training_step").none(), nb::arg("key"), nb::arg("previous_key"))
      .def("load", &Compressor::load, nb::arg("key"))
      .def("metadata", &Compressor::metadata, nb::arg("key"))
      .def("exists",
           [](const Compressor& self, const std::string& key) {
             const Unlocked unlocked;
             return self.storage().exists(key);
           })
      .def("erase",
           [](const Compressor& self, const std::string& key) {
             const Unlocked unlocked;
             return self.storage().erase(key);
           })
      .def("keys", [](const Compressor& self) {
        std::vector<std::string> keys;
        {
          const Unlocked unlocked;
          keys = self.storage().list();
        }
        return text_list(keys);
      });
}

}  // namespace thalia::python
