#include <fmt/format.h>

#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "crash/store_run.h"
#include "integrity/content_hash.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/reader.h"
#include "thalia/state/value.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace describing {
namespace {

std::string hash_of(ByteSpan bytes) {
  return test::hex(integrity::xxh3_128(bytes));
}

// A save tells when it was made.
std::string without_time(std::string metadata) {
  constexpr std::string_view kMember = "\"created\":\"";
  const std::size_t at = metadata.find(kMember);
  if (at == std::string::npos) return metadata;
  return metadata.erase(at, metadata.find('"', at + kMember.size()) + 1 - at);
}

// The state that a file stands for, whether it is a delta or not.
std::string state_of(const ChainReader& chain) {
  const Reader& reader = chain.reader();
  std::string text = fmt::format("{} {}", reader.header().training_steps,
                                 without_time(std::string(reader.metadata_json())));
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView tensor = region.tensor(i);
      const Tensor read = chain.read(tensor);
      text += fmt::format("{}/{} {} {}", region.name(), tensor.name(), read.shape().to_string(),
                          hash_of(read.bytes()));
    }
  }
  return hash_of(test::bytes_of(text));
}

// The times of its making are no part of what a text says.
std::string number_text(const std::optional<double>& number) {
  return number ? fmt::format("{}", *number) : "-";
}

class Description {
 public:
  explicit Description(const Run& run) : run_(run), is_thalia_(run.config().is_thalia()) {
    loading_.read.work.threads = 1;
  }

  std::string text() {
    add("run", "is there");
    for (const PhaseConfig& phase : run_.config().phases) {
      add_checkpoints(phase.name);
      add_beginning(phase.name);
    }
    add_gates();
    if (run_.config().pool) add_pool();
    std::string all;
    for (const auto& [key, value] : items_) all += key + "\t" + value + "\n";
    return all;
  }

 private:
  void add(const std::string& key, const std::string& value) { items_[key] = value; }

  void add_checkpoints(const std::string& phase) {
    for (const CheckpointEntry& entry : run_.list(phase)) {
      const std::string key = fmt::format("checkpoint {} {}", phase, entry.step);
      LoadOptions options = loading_;
      options.step = entry.step;
      if (is_thalia_) {
        const LoadedCheckpoint loaded = run_.load(phase, options);
        add(key, state_of(loaded.chain) + " " + number_text(entry.metric));
        const auto paths = loaded.chain.paths();
        // With the depth: one that moved away and came back is another file.
        add(key + " form",
            paths.size() == 1
                ? "full"
                : fmt::format("on {}, {} deep", paths[1].filename().string(), paths.size() - 1));
      } else {
        add(key,
            hash_of(run_.load_bytes(phase, options).bytes.bytes) + " " + number_text(entry.metric));
      }
      if (entry.has_digest) add(key + " digest", "is there");
    }
    if (const auto latest = run_.latest(phase)) {
      add("latest " + phase, fmt::format("{} {}", phase, latest->step));
      const CheckpointEntry loaded =
          is_thalia_ ? run_.load(phase, loading_).entry : run_.load_bytes(phase, loading_).entry;
      add("load " + phase, fmt::format("{} {}", phase, loaded.step));
    }
    if (const auto best = run_.best(phase))
      add("best " + phase, fmt::format("{} {}", phase, best->step));
  }

  // A gate has a digest, or is refused.
  void add_gates() {
    for (const GateEntry& gate : run_.gates()) {
      const std::string content = is_thalia_ ? state_of(run_.load_gate(gate.name, loading_).chain)
                                             : hash_of(run_.load_gate_bytes(gate.name).bytes.bytes);
      add("gate " + gate.name, content);
      std::string sources;
      for (const PhaseConfig& phase : run_.config().phases)
        for (const CheckpointEntry& entry : run_.list(phase.name))
          for (const std::string& reason : entry.protected_by)
            if (reason == "gate " + gate.name)
              sources += fmt::format("{} {};", phase.name, entry.step);
      add("gate " + gate.name + " protects", sources);
    }
  }

  void add_pool() {
    const PoolView view = read_pool(run_);
    const fs::path folder = run_.folder() / run_.config().pool->phase / run_.config().pool->folder;
    std::set<std::uint64_t> there;
    for (const PoolMember& member : view.versions) {
      there.insert(member.version);
      add(fmt::format("version {}", member.version),
          fmt::format("{} step {} mu {} sigma {} games {}", content_of_version(member), member.step,
                      member.rating.mu, member.rating.sigma, member.games_played));
    }
    const fs::path log = folder / "pool_evictions.jsonl";
    const std::string evictions = is_file(log) ? test::read_file(log) : "";
    for (std::uint64_t version = 1; version < view.next_version; ++version)
      if (!there.contains(version) &&
          evictions.find(fmt::format("\"version\":{},", version)) != std::string::npos)
        add(fmt::format("version {}", version), "evicted");
    add("next version", std::to_string(view.next_version));
    for (const PoolMember& anchor : view.anchors) add("anchor " + anchor.name, "is there");
  }

  std::string content_of_version(const PoolMember& member) {
    const std::string bytes = test::read_file(member.path);
    const std::string digest = member.path.string() + ".sha256";
    if (is_file(digest) && test::read_file(digest).substr(0, 64) != sha256_of(bytes))
      throw std::logic_error("a digest that is not its own, of " + member.name);
    if (!is_thalia_) return hash_of(test::bytes_of(bytes));
    return state_of(PoolCache(1).get(member));
  }

  // A phase that has begun has all that it begins with.
  void add_beginning(const std::string& phase) {
    const fs::path folder = run_.folder() / phase;
    if (!is_file(folder / "transition.json")) return;
    std::string all;
    for (const char* const name : {"start.thalia", "kl_anchor.thalia"}) {
      const std::string check = fmt::format("{}.sha256", name);
      if (!is_file(folder / check)) throw std::logic_error("no digest of what begins " + phase);
      const std::string bytes = test::read_file(folder / name);
      if (test::read_file(folder / check).substr(0, 64) != sha256_of(bytes))
        throw std::logic_error("a digest that is not its own, of what begins " + phase);
      all += state_of(ChainReader::open(folder / name, {.read = loading_.read}));
    }
    parse_json(test::read_file(folder / "transition.json"));
    add("begun " + phase, all);
  }

  static std::string sha256_of(const std::string& bytes) {
    return test::hex(integrity::sha256(test::bytes_of(bytes)));
  }

  const Run& run_;
  const bool is_thalia_;
  LoadOptions loading_;
  std::map<std::string, std::string> items_;
};

}  // namespace
}  // namespace describing

std::string description_of_run(const fs::path& folder) {
  if (!is_file(folder / "run.toml")) return "";
  return describing::Description(Run::open(folder)).text();
}

}  // namespace thalia::crash
