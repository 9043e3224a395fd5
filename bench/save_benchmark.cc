// Saving: into memory beside memcpy and pwrite; to the disk, synced on both sides, beside pwrite
// and fsync of the same bytes, and beside pwrite with early write-back; many small tensors beside
// one large.
#include <memory>

#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"

namespace thalia::bench::save_subject {
namespace {

struct Hashing {
  const char* name;
  ChecksumType checksum;
  LeafAlgorithm leaves;
};
constexpr Hashing kNone{"no checksum", ChecksumType::none, LeafAlgorithm::xxh3_128};
constexpr Hashing kXxh3{"xxh3 leaves", ChecksumType::block_tree, LeafAlgorithm::xxh3_128};
constexpr Hashing kSha256{"sha256 leaves", ChecksumType::block_tree, LeafAlgorithm::sha256};

// Weights in memory, and a folder to save them to.
struct Work {
  Work(const std::filesystem::path& where, std::shared_ptr<const std::vector<float>> what)
      : folder(where), parent(where), weights(std::move(what)) {}

  ByteSpan payload() const { return as_byte_span(*weights); }

  Side ours(Hashing hashing, Durability durability,
            std::uint64_t tensor_bytes = measure::kTensorBytes, const std::string& what = "save",
            IoMode io = IoMode::automatic) const {
    const SaveOptions options{.checksum = hashing.checksum,
                              .leaves = hashing.leaves,
                              .output = {.durability = durability},
                              .io = io};
    return {what + ", " + hashing.name, [=, this] {
              measure::save(folder / "a.thalia", payload(), DType::f32, tensor_bytes, options);
            }};
  }
  Side pwrite(const char* name, Sync sync, unsigned threads) const {
    return {name, [=, this] { write_file(folder / "b.raw", payload(), sync, threads); }};
  }
  Side direct_write() const {
    const auto memory = std::make_shared<measure::PageMemory>(payload());
    return {"O_DIRECT pwrite, 16 at a time, fsync",
            [=, this] { write_file_direct(folder / "b.raw", *memory); }};
  }
  Side memory_copy() const {
    const auto target = std::make_shared<std::vector<std::byte>>(payload().size());
    return {"memcpy, one core", [=, this] { copy(payload(), *target); }};
  }

  /// Each run starts without a file, with a disk that has nothing left to do, and with memory for
  /// the page cache.
  void clear() const {
    std::filesystem::remove(folder / "a.thalia");
    std::filesystem::remove(folder / "b.raw");
    ready_to_write(parent, payload().size());
  }

  ScratchFolder folder;
  std::filesystem::path parent;
  std::shared_ptr<const std::vector<float>> weights;
};

template <typename Sides>
void add(PairedSuite& suite, const std::string& name, std::shared_ptr<const Work> work,
         Sides sides) {
  suite.add(name, [=] {
    auto [ours, floor] = sides(*work);
    return Comparison{
        .ours = ours, .floor = floor, .bytes = work->payload().size(), .prepare = [work] {
          work->clear();
        }};
  });
}

void add_in_memory(PairedSuite& suite, const std::string& size,
                   const std::shared_ptr<const Work>& work) {
  for (const Hashing& hashing : {kNone, kXxh3, kSha256}) {
    add(suite, "in memory, " + size + ", " + hashing.name + ", beside memcpy", work,
        [=](const Work& w) {
          return std::pair(w.ours(hashing, Durability::none), w.memory_copy());
        });
  }
  for (const Hashing& hashing : {kNone, kXxh3}) {
    add(suite, "in memory, " + size + ", " + hashing.name + ", beside pwrite", work,
        [=](const Work& w) {
          return std::pair(w.ours(hashing, Durability::none),
                           w.pwrite("pwrite, all cores", Sync::none, 0));
        });
  }
}

void add_on_disk(PairedSuite& suite, const std::string& size,
                 const std::shared_ptr<const Work>& work) {
  add(suite, "on disk, not synced, " + size + ", beside pwrite", work, [](const Work& w) {
    return std::pair(w.ours(kXxh3, Durability::none), w.pwrite("pwrite, one core", Sync::none, 1));
  });
  add(suite, "on disk, synced, " + size + ", beside pwrite and fsync", work, [](const Work& w) {
    return std::pair(w.ours(kXxh3, Durability::full), w.pwrite("pwrite, fsync", Sync::at_end, 1));
  });
  add(suite, "on disk, synced, " + size + ", beside early write-back", work, [](const Work& w) {
    return std::pair(w.ours(kXxh3, Durability::full),
                     w.pwrite("pwrite, sync_file_range, fsync", Sync::early_and_end, 1));
  });
  add(suite, "on disk, synced, " + size + ", beside direct writes", work,
      [](const Work& w) { return std::pair(w.ours(kXxh3, Durability::full), w.direct_write()); });
  add(suite, "on disk, synced, " + size + ", direct beside buffered", work, [](const Work& w) {
    return std::pair(w.ours(kXxh3, Durability::full),
                     w.ours(kXxh3, Durability::full, measure::kTensorBytes,
                            "save through the page cache", IoMode::buffered));
  });
}

// The payloads together are the large one's bytes.
void add_small_tensors(PairedSuite& suite, const Settings& settings) {
  constexpr std::uint64_t kSmallBytes = 4096;
  const std::uint64_t count = settings.at_most(100'000, 100);
  const auto weights =
      std::make_shared<std::vector<float>>(measure::normal_f32(count * kSmallBytes));
  const auto work = std::make_shared<const Work>(settings.memory, weights);
  const std::string name = "in memory, " + std::to_string(count) + " tensors of 4 KiB, ";
  add(suite, name + "beside one large", work, [=](const Work& w) {
    return std::pair(w.ours(kXxh3, Durability::none, kSmallBytes, "save small"),
                     w.ours(kXxh3, Durability::none, w.payload().size(), "save large"));
  });
  add(suite, name + "beside memcpy", work, [=](const Work& w) {
    return std::pair(w.ours(kXxh3, Durability::none, kSmallBytes, "save small"), w.memory_copy());
  });
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  const auto weights = std::make_shared<std::vector<float>>(measure::normal_f32(settings.bytes()));
  const std::string size = settings.smoke ? "smoke" : std::to_string(settings.mib) + " MiB of f32";
  add_in_memory(suite, size, std::make_shared<const Work>(settings.memory, weights));
  add_small_tensors(suite, settings);
  if (settings.disk.empty() || is_in_memory(settings.disk)) {
    suite.add("on disk, " + size, [=]() -> Comparison {
      throw Skipped(settings.disk.string() + " is in memory; --dir names a folder on a disk");
    });
    return false;
  }
  add_on_disk(suite, size, std::make_shared<const Work>(settings.disk, weights));
  return false;
}

}  // namespace thalia::bench::save_subject
