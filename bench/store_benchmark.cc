// The store: a save through it beside the same durable save without it; listing beside reading the
// folder's names and sizes; pruning beside removing the files; restoring through the deltas of the
// default policy beside a full checkpoint.
#include <algorithm>
#include <memory>
#include <thread>

#include "floors.h"
#include "integrity/sha256.h"
#include "io/folder/folder.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "store/run/journal.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"
#include "thalia/store.h"

namespace thalia::bench::store_subject {
namespace {

RunConfig config_of(const std::string& extension) {
  RunConfig config;
  config.extension = extension;
  config.phases = {{.name = "train", .metric = Metric{"loss", Direction::min}}};
  config.deltas.kind = DeltaPolicy::Kind::never;
  return config;
}

// Weights in memory, a run, and a folder beside it.
struct Saves {
  Saves(const std::filesystem::path& where, std::uint64_t bytes)
      : folder(where), parent(where), weights(measure::normal_f32(bytes)) {
    create_run(folder / "run", config_of("thalia"));
    writer.emplace(folder / "run");
  }

  void declare(Writer& file) const {
    const RegionId region = file.add_region({.name = "model"});
    const std::size_t count = measure::kTensorBytes / sizeof(float);
    for (std::size_t at = 0; at < weights.size(); at += count) {
      const std::span<const float> part =
          std::span(weights).subspan(at, std::min(count, weights.size() - at));
      file.add_tensor(region, {.name = "w" + std::to_string(at), .shape = {part.size()}},
                      as_byte_span(part));
    }
  }
  void save_through_store() {
    Writer file = writer->new_checkpoint("train", ++step);
    declare(file);
    writer->commit(std::move(file), {.metric = 1.0 / static_cast<double>(step)});
  }
  void save_bare() const {
    Writer file(folder / "bare.thalia");
    declare(file);
    file.commit();
  }
  // What no save with a digest can be faster than.
  void save_bare_beside_sha256() const {
    const std::jthread other([&] { integrity::sha256(as_byte_span(std::span(weights))); });
    save_bare();
  }
  // Neither side has an old file to remove, or a disk that is busy with one.
  void clear() {
    std::filesystem::remove(folder / "bare.thalia");
    for (const CheckpointEntry& entry : writer->run().list("train"))
      std::filesystem::remove(writer->run().path_of(entry));
    ready_to_write(parent, weights.size() * sizeof(float));
  }

  ScratchFolder folder;
  std::filesystem::path parent;
  std::vector<float> weights;
  std::optional<RunWriter> writer;
  std::uint64_t step = 0;
};

// A run of many small files, with what their saves would have noted.
struct Many {
  Many(const std::filesystem::path& where, std::uint64_t files) : folder(where), count(files) {
    create_run(folder / "run", config_of("pt"));
    fill();
  }

  std::filesystem::path phase() const { return folder / "run/train/checkpoints"; }
  Run run() const { return Run::open(folder / "run"); }

  void fill() {
    const OutputOptions output{.durability = Durability::none};
    std::string journal;
    for (std::uint64_t step = 1; step <= count; ++step) {
      const std::string name = run().file_name("train", step);
      if (!std::filesystem::exists(phase() / name)) {
        for (const char* const ending : {"", ".sha256"}) {
          OutputFile file(phase() / (name + ending), output);
          file.write(as_byte_span(name));
          file.commit();
        }
      }
      journal += store::journal_text({.file = name,
                                      .step = step,
                                      .bytes = name.size(),
                                      .saved_at = step,
                                      .sha256 = std::string(64, '0'),
                                      .metric = 1.0 / static_cast<double>(step)});
    }
    OutputFile file(phase() / "journal.jsonl", output);
    file.write(as_byte_span(journal));
    file.commit();
  }

  void read_names_and_sizes() const {
    const io::Folder there(phase());
    std::uint64_t bytes = 0;
    for (const io::FolderEntry& entry : there.entries()) bytes += there.facts(entry.name)->bytes;
    if (bytes == 0) throw std::runtime_error("an empty folder");
  }
  // Half of them, and their digests.
  void remove_half() const {
    const io::Folder there(phase());
    for (std::uint64_t step = 1; step <= count / 2; ++step) {
      const std::string name = run().file_name("train", step);
      there.remove(name);
      there.remove(name + ".sha256");
    }
    there.sync();
  }
  void prune_half() const {
    RunWriter writer(folder / "run");
    writer.prune(
        "train",
        {.policy = RetentionPolicy{.keep_last = static_cast<std::uint32_t>(count - count / 2)}});
  }

  ScratchFolder folder;
  std::uint64_t count;
};

// A run whose policy for deltas is the default, and a training that has changed `changed` of every
// ten tensors at each save, all their weights by little: the lower half of the mantissa.
struct Learning {
  Learning(const std::filesystem::path& where, std::uint64_t bytes, std::size_t changed)
      : folder(where), memory(bytes) {
    RunConfig config = config_of("thalia");
    config.deltas = {};
    create_run(folder / "run", config);
    RunWriter writer(folder / "run");
    std::vector<float> weights = measure::normal_f32(bytes);
    const std::vector<float> noise = measure::normal_f32(bytes);
    const std::size_t each = std::max<std::size_t>(weights.size() / kTensors, 1);
    for (std::uint64_t step = 1; step <= kSaves; ++step) {
      Writer file(folder / "state.thalia", {.output = {.durability = Durability::none}});
      const RegionId region = file.add_region({.name = "model"});
      for (std::size_t i = 0; i < kTensors; ++i) {
        const std::span<float> part = std::span(weights).subspan(i * each, each);
        if (i % 10 < changed)
          for (std::size_t k = 0; k < each; ++k)
            part[k] *= 1 + noise[(k * step + i) % noise.size()] / 64;
        file.add_tensor(region, {.name = "w" + std::to_string(i), .shape = {each}},
                        as_byte_span(std::span<const float>(part)));
      }
      file.commit();
      writer.save("train", step, state_source(ChainReader::open(folder / "state.thalia")));
      std::filesystem::remove(folder / "state.thalia");
    }
    const std::vector<CheckpointEntry> entries = run().list("train");
    deepest = std::ranges::max(entries, {}, &CheckpointEntry::depth);
    full = entries.front();
    if (!deepest.is_delta()) throw Skipped("every file is full, by the policy");
    measure::settle(where);
  }

  Run run() const { return Run::open(folder / "run"); }
  void forget() const {
    for (const CheckpointEntry& entry : run().list("train")) drop_from_cache(run().path_of(entry));
  }
  void restore(const CheckpointEntry& entry, LoadCheck check) {
    const LoadedCheckpoint loaded = run().load("train", {.check = check, .step = entry.step});
    const RegionView region = *loaded.chain.reader().find_region("model");
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const std::uint64_t length = loaded.chain.describe(region.tensor(i)).logical_bytes;
      loaded.chain.read(region.tensor(i), MutableByteSpan(memory).subspan(at, length));
      at += length;
    }
  }

  static constexpr std::size_t kTensors = 40;
  static constexpr std::uint64_t kSaves = 12;
  ScratchFolder folder;
  std::vector<std::byte> memory;
  CheckpointEntry deepest, full;
};

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  const std::uint64_t bytes = settings.bytes();
  const std::string size = settings.smoke ? "smoke" : std::to_string(settings.mib) + " MiB of f32";
  const auto add_save = [&](const std::string& beside, void (Saves::*save)() const) {
    suite.add("save, " + size + ", beside " + beside, [=] {
      const auto saves = std::make_shared<Saves>(settings.disk, bytes);
      return Comparison{.ours = {"save through the store", [=] { saves->save_through_store(); }},
                        .floor = {beside, [=] { ((*saves).*save)(); }},
                        .bytes = bytes,
                        .prepare = [=] { saves->clear(); }};
    });
  };
  add_save("a durable save", &Saves::save_bare);
  add_save("a durable save and SHA-256 at once", &Saves::save_bare_beside_sha256);
  const std::uint64_t count = settings.at_most(10'000, 100);
  suite.add("list " + std::to_string(count) + " checkpoints, beside names and sizes", [=] {
    const auto many = std::make_shared<Many>(settings.disk, count);
    return Comparison{.ours = {"list", [=] { many->run().list("train"); }},
                      .floor = {"readdir, fstatat", [=] { many->read_names_and_sizes(); }}};
  });
  suite.add("prune half of " + std::to_string(count) + " checkpoints, beside unlink", [=] {
    const auto many = std::make_shared<Many>(settings.disk, count);
    return Comparison{.ours = {"prune", [=] { many->prune_half(); }},
                      .floor = {"unlink, fsync of the folder", [=] { many->remove_half(); }},
                      .prepare = [=] { many->fill(); }};
  });
  // As the disk has them: what the policy promises is of a restore after the machine went down.
  for (const std::size_t changed : {1u, 3u, 10u}) {
    for (const LoadCheck check : {LoadCheck::digest, LoadCheck::on_touch}) {
      const std::string digest = check == LoadCheck::digest ? ", with digests" : "";
      suite.add(
          "restore the deepest of " + std::to_string(Learning::kSaves) + " saves, " +
              std::to_string(changed) + " of 10 tensors learn" + digest,
          [=] {
            const auto learning = std::make_shared<Learning>(settings.disk, bytes / 4, changed);
            return Comparison{
                .ours = {"through " + std::to_string(learning->deepest.depth) + " deltas",
                         [=] { learning->restore(learning->deepest, check); }},
                .floor = {"a full checkpoint", [=] { learning->restore(learning->full, check); }},
                .bytes = bytes / 4,
                .prepare = [=] { learning->forget(); }};
          });
    }
  }
  return false;
}

}  // namespace thalia::bench::store_subject
