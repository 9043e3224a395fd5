// Whole checkpoints under keys of a storage, each as a difference to a previous one.
#include "thalia/formats/compressor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
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

using StoppedBy = std::stop_source;

// What Python keeps under keys: an object with put, get, delete, exists and list, as
// thalia_checkpoint/mithril/_storage.py makes of a user's. Its methods are called on any thread,
// and what they raise comes out of the call that needed them.
class PythonStorage final : public StorageBackend {
 public:
  explicit PythonStorage(nb::object object) : object_(held_object(std::move(object))) {}

  // In one call, with all bytes: an object of which a part was written is nobody's.
  void put_stream(std::string_view key, const ByteProducer& produce) override {
    check_storage_key(key);
    std::vector<std::byte> bytes;
    produce([&](ByteSpan piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    with_gil(
        [&] { object_->attr("put")(text_object(key), nb::bytes(bytes.data(), bytes.size())); });
  }

  std::uint64_t size(std::string_view key) const override { return view(key).bytes.size(); }

  void get_range(std::string_view key, std::uint64_t offset, MutableByteSpan out) const override {
    const StoredBytes whole = view(key);
    if (offset > whole.bytes.size() || out.size() > whole.bytes.size() - offset) {
      fail_choice("offset", std::to_string(offset),
                  "bytes within the " + std::to_string(whole.bytes.size()) + " of the object");
    }
    std::ranges::copy(whole.bytes.subspan(offset, out.size()), out.begin());
  }

  bool erase(std::string_view key) override { return ask<bool>("delete", key); }

  bool exists(std::string_view key) const override { return ask<bool>("exists", key); }

  std::vector<std::string> list(std::string_view prefix) const override {
    std::vector<std::string> keys;
    with_gil([&] {
      keys = nb::cast<std::vector<std::string>>(object_->attr("list")(text_object(prefix)));
    });
    return keys;
  }

  // The adapter gives `bytes`, which nobody changes.
  StoredBytes view(std::string_view key) const override {
    check_storage_key(key);
    StoredBytes found;
    with_gil([&] {
      const auto held = held_object(object_->attr("get")(text_object(key)));
      const auto bytes = nb::cast<nb::bytes>(*held);
      found = {{static_cast<const std::byte*>(bytes.data()), bytes.size()}, held};
    });
    return found;
  }

 private:
  template <typename Answer>
  Answer ask(const char* method, std::string_view key) const {
    check_storage_key(key);
    Answer answer{};
    with_gil([&] { answer = nb::cast<Answer>(object_->attr(method)(text_object(key))); });
    return answer;
  }

  std::shared_ptr<nb::object> object_;
};

// `ask`: (name) -> (dtype, shape, buffer), or None where nothing is known.
std::function<std::optional<Tensor>(std::string_view, const Tensor&)> sensitivity_of(
    nb::object ask) {
  if (ask.is_none()) return {};
  return [held = held_object(std::move(ask))](std::string_view name, const Tensor& /*tensor*/) {
    std::optional<Tensor> known;
    with_gil([&] {
      const nb::object found = (*held)(text_object(name));
      if (found.is_none()) return;
      const auto parts = nb::cast<nb::tuple>(found);
      const HeldBuffer bytes(parts[2], HeldBuffer::Use::read);
      known = tensor_in(bytes, parts[0], parts[1]).owned();
    });
    return known;
  };
}

// The tensors of a state, borrowed from the buffers that hold them, or copies.
struct PreparedCheckpoint {
  std::vector<HeldBuffer> held;
  Checkpoint checkpoint;

  PreparedCheckpoint(PreparedCheckpoint&&) = delete;
  // `tensors`: (name, dtype, shape, buffer) each.
  PreparedCheckpoint(const ListOf<nb::any>& tensors, const std::string& metadata_json,
                     std::optional<std::uint64_t> training_step, bool copy)
      : checkpoint{.metadata = parse_json(metadata_json), .training_step = training_step} {
    held.reserve(tensors.size());
    for (const nb::handle item : tensors) {
      const auto parts = nb::cast<nb::tuple>(item);
      held.emplace_back(parts[3], HeldBuffer::Use::read);
      checkpoint.tensors.insert_or_assign(nb::cast<std::string>(parts[0]),
                                          tensor_in(held.back(), parts[1], parts[2]));
    }
    if (!copy) return;
    {
      const Unlocked unlocked;
      for (auto& [name, tensor] : checkpoint.tensors) tensor = tensor.owned();
    }
    held.clear();
  }
};

using StoredTensors = ListOf<TupleWith<std::string, std::string, Shape, OwnedBytes>>;
// (tensors, metadata, training step)
using Restored = TupleWith<StoredTensors, std::string, std::optional<std::uint64_t>>;

Restored restored(Checkpoint checkpoint) {
  nb::list tensors;
  for (auto& [name, tensor] : checkpoint.tensors) {
    const auto memory = std::make_shared<Tensor>(std::move(tensor));
    tensors.append(nb::make_tuple(text_object(name), dtype_name(memory->dtype()), memory->shape(),
                                  OwnedBytes{memory->mutable_bytes(), memory}));
  }
  return nb::make_tuple(tensors, text_object(to_json(checkpoint.metadata)),
                        checkpoint.training_step);
}

// Used with the GIL held; the calls themselves need none. Each has a stop of its own, which Ctrl-C
// requests too.
class Compressor {
  template <typename Action>
  auto run(StoppedBy& stop, const Action& action) const {
    CompressorConfig config = config_;
    config.work.cancel = stop.get_token();
    return interruptible([&](const std::stop_token& interrupted) {
      const std::stop_callback forward(interrupted, [&] { stop.request_stop(); });
      return action(CheckpointCompressor(config, storage_));
    });
  }

 public:
  // `storage`: a URI, or an object as of PythonStorage.
  Compressor(const nb::object& storage, bool delta_enabled, bool byte_grouping,
             std::optional<int> level, unsigned max_chain, unsigned threads,
             std::optional<QuantizationConfig> quantization, const std::optional<Members>& low_rank)
      : config_{.delta_enabled = delta_enabled,
                .byte_grouping = byte_grouping,
                .quantization = std::move(quantization),
                .max_chain = max_chain,
                .work = {.threads = threads}} {
    if (nb::isinstance<nb::str>(storage)) {
      storage_ = open_storage(nb::cast<std::string>(storage));
    } else {
      storage_ = std::make_shared<PythonStorage>(storage);
    }
    if (low_rank) config_.low_rank_deltas = low_rank_options(*low_rank);
    if (level) config_.compression = {.codec = Codec::zstd, .level = *level};
    const CheckpointCompressor checked(config_, storage_);
  }

  CheckpointMeta save(const PreparedCheckpoint& prepared, const std::string& key,
                      const std::string& previous_key, StoppedBy& stop) const {
    return run(stop, [&](const CheckpointCompressor& compressor) {
      return compressor.save(prepared.checkpoint, key, previous_key);
    });
  }

  Restored load(const std::string& key, StoppedBy& stop) const {
    return restored(
        run(stop, [&](const CheckpointCompressor& compressor) { return compressor.load(key); }));
  }

  TupleWith<CheckpointMeta, OwnedBytes> compress(const PreparedCheckpoint& prepared,
                                                 const std::string& previous_key,
                                                 StoppedBy& stop) const {
    CompressedCheckpoint made = run(stop, [&](const CheckpointCompressor& compressor) {
      return compressor.compress(prepared.checkpoint, previous_key);
    });
    const auto bytes = std::make_shared<std::vector<std::byte>>(std::move(made.bytes));
    return nb::make_tuple(std::move(made.meta), OwnedBytes{*bytes, bytes});
  }

  Restored decompress(nb::handle file, StoppedBy& stop) const {
    const HeldBuffer held(file, HeldBuffer::Use::read);
    return restored(run(stop, [&](const CheckpointCompressor& compressor) {
      return compressor.decompress(
          {.meta = {}, .bytes = {held.bytes().begin(), held.bytes().end()}});
    }));
  }

  // (metadata, training step), from the header alone.
  TupleWith<std::string, std::optional<std::uint64_t>> metadata(const std::string& key) const {
    const MckpHeader header = interruptible([&](const std::stop_token&) {
      return MckpFile::from_bytes(storage_->view(key), key).header();
    });
    return nb::make_tuple(text_object(header.metadata), header.training_step);
  }

  bool exists(const std::string& key) const {
    return interruptible([&](const std::stop_token&) { return storage_->exists(key); });
  }

  bool erase(const std::string& key) const {
    return interruptible([&](const std::stop_token&) { return storage_->erase(key); });
  }

  ListOf<std::string> keys() const {
    return text_list(interruptible([&](const std::stop_token&) { return storage_->list(); }));
  }

 private:
  CompressorConfig config_;
  std::shared_ptr<StorageBackend> storage_;
};

// A bytes object whose bytes are yet to be written, which nobody else has seen.
nb::bytes new_bytes(std::size_t size) {
  auto made =
      nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

// Bytes of the same length that make(data, out) writes.
template <typename Make>
nb::bytes made_of(nb::handle data, const Make& make) {
  const HeldBuffer held(data, HeldBuffer::Use::read);
  nb::bytes made = new_bytes(held.bytes().size());
  const MutableByteSpan out(reinterpret_cast<std::byte*>(PyBytes_AsString(made.ptr())),
                            made.size());
  {
    const Unlocked unlocked;
    make(held.bytes(), out);
  }
  return made;
}

void bind_steps(nb::module_& module) {
  module.def(
      "group_bytes",
      [](nb::handle data, unsigned width) {
        return made_of(data,
                       [&](ByteSpan from, MutableByteSpan to) { group_bytes(from, width, to); });
      },
      nb::arg("data"), nb::arg("width"));
  module.def(
      "ungroup_bytes",
      [](nb::handle data, unsigned width) {
        return made_of(data,
                       [&](ByteSpan from, MutableByteSpan to) { ungroup_bytes(from, width, to); });
      },
      nb::arg("data"), nb::arg("width"));
  module.def(
      "xor_bytes",
      [](nb::handle data, nb::handle previous) {
        const HeldBuffer other(previous, HeldBuffer::Use::read);
        return made_of(
            data, [&](ByteSpan from, MutableByteSpan to) { xor_bytes(from, other.bytes(), to); });
      },
      nb::arg("data"), nb::arg("previous"));
}

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
      field("quantized_tensors", &CheckpointMeta::quantized_tensors,
            "Tensors that are stored as codes of a few bits."),
      field("low_rank_tensors", &CheckpointMeta::low_rank_tensors,
            "Differences that are sums of a few products."),
      field("largest_error", &CheckpointMeta::largest_error,
            "The largest error of a number of both of these."),
      field("lossy_generation", &CheckpointMeta::lossy_generation,
            "How often the state was stored so; 0 where it never was."),
      field(
          "content_hash", [](auto& meta) -> auto& { return meta.signature.hash; },
          "The hash of the checkpoint, however it is stored: docs/format/mckp.md, \"Content "
          "hash\"."))
      .def_prop_ro("ratio", &CheckpointMeta::ratio, "original_size / compressed_size.");
  bind_steps(module);
  nb::class_<StoppedBy>(module, "Stop").def(nb::init<>()).def("request", [](StoppedBy& stop) {
    stop.request_stop();
  });
  nb::class_<PreparedCheckpoint>(module, "PreparedCheckpoint")
      .def(nb::init<const ListOf<nb::any>&, const std::string&, std::optional<std::uint64_t>,
                    bool>(),
           nb::arg("tensors"), nb::arg("metadata_json"), nb::arg("training_step").none(),
           nb::arg("copy"));
  nb::class_<QuantizationConfig>(module, "QuantizationConfig")
      .def(
          "__init__",
          [](QuantizationConfig* self, unsigned bits, std::vector<std::string> exclude,
             nb::object sensitivity, std::uint64_t max_generations) {
            new (self) QuantizationConfig{.bits = bits,
                                          .exclude = std::move(exclude),
                                          .sensitivity = sensitivity_of(std::move(sensitivity)),
                                          .max_generations = max_generations};
          },
          nb::arg("bits"), nb::arg("exclude"), nb::arg("sensitivity").none(),
          nb::arg("max_generations"));
  nb::class_<Compressor>(module, "Compressor")
      .def(nb::init<const nb::object&, bool, bool, std::optional<int>, unsigned, unsigned,
                    std::optional<QuantizationConfig>, const std::optional<Members>&>(),
           nb::arg("storage"), nb::arg("delta_enabled"), nb::arg("byte_grouping"),
           nb::arg("level").none(), nb::arg("max_chain"), nb::arg("threads"),
           nb::arg("quantization").none(), nb::arg("low_rank").none())
      .def("save", &Compressor::save, nb::arg("checkpoint"), nb::arg("key"),
           nb::arg("previous_key"), nb::arg("stop"))
      .def("load", &Compressor::load, nb::arg("key"), nb::arg("stop"))
      .def("compress", &Compressor::compress, nb::arg("checkpoint"), nb::arg("previous_key"),
           nb::arg("stop"))
      .def("decompress", &Compressor::decompress, nb::arg("file"), nb::arg("stop"))
      .def("metadata", &Compressor::metadata, nb::arg("key"))
      .def("exists", &Compressor::exists, nb::arg("key"))
      .def("erase", &Compressor::erase, nb::arg("key"))
      .def("keys", &Compressor::keys);
}

}  // namespace thalia::python
