// Checking what is in memory already, so that hashing counts and not the disk: verify_all() beside
// a plain read, a copy and XXH3 of the same bytes, and verify(), which also takes the CRC-32 and
// the content hash of every tensor.
#include <memory>

#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/reader.h"

namespace thalia::bench::verify_subject {
namespace {

struct File {
  File(const Settings& settings, std::uint64_t bytes, const SaveOptions& options)
      : folder(settings.disk), path(folder / "verify.thalia") {
    const auto weights = measure::normal_f32(bytes);
    measure::save(path, as_byte_span(weights), DType::f32, measure::kTensorBytes, options);
    measure::settle(settings.disk);
    raw.emplace(path);
    touch_pages(raw->bytes());
  }

  void verify_all() const {
    // A reader checks a block once: each run needs a new one.
    Reader::open(path, {.verification = Verification::at_open});
  }

  ScratchFolder folder;
  std::filesystem::path path;
  std::optional<RawMapping> raw;
};

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  const auto add = [&](const std::string& name, std::uint64_t bytes, LeafAlgorithm leaves,
                       auto ours, auto floor) {
    suite.add(name + ", " + size_name(bytes), [=] {
      const auto file = std::make_shared<File>(
          settings, bytes,
          SaveOptions{.leaves = leaves, .output = {.durability = Durability::none}});
      Comparison comparison{.ours = ours(file), .floor = floor(file)};
      comparison.bytes = file->raw->bytes().size();
      return comparison;
    });
  };
  const auto ours_all = [](std::shared_ptr<File> file) {
    return Side{"open and verify_all", [=] { file->verify_all(); }};
  };
  const auto ours_verify = [](std::shared_ptr<File> file) {
    return Side{"verify", [=] { measure::verify(file->path); }};
  };
  const auto read = [](std::shared_ptr<File> file) {
    return Side{"read, all cores", [=] { read_all(file->raw->bytes(), 0); }};
  };
  const auto hash = [](std::shared_ptr<File> file) {
    return Side{"XXH3-128, all cores", [=] { hash_all(file->raw->bytes(), 0); }};
  };
  const auto mapped_hash = [](std::shared_ptr<File> file) {
    return Side{"map, XXH3-128, all cores", [=] { hash_all(RawMapping(file->path).bytes(), 0); }};
  };
  const auto memory_copy = [](std::shared_ptr<File> file) {
    const auto target = std::make_shared<std::vector<std::byte>>(file->raw->bytes().size());
    return Side{"memcpy, one core", [=] { copy(file->raw->bytes(), *target); }};
  };

  constexpr LeafAlgorithm kXxh3 = LeafAlgorithm::xxh3_128;
  std::vector<std::uint64_t> sizes{64u << 10, 1u << 20, 16u << 20, settings.bytes()};
  if (settings.smoke) sizes = {settings.bytes()};
  for (const std::uint64_t bytes : sizes) {
    add("verify_all, xxh3 leaves, beside a read", bytes, kXxh3, ours_all, read);
    add("verify_all, xxh3 leaves, beside the hash", bytes, kXxh3, ours_all, hash);
    add("verify_all, xxh3 leaves, beside map and hash", bytes, kXxh3, ours_all, mapped_hash);
    add("verify_all, xxh3 leaves, beside memcpy", bytes, kXxh3, ours_all, memory_copy);
    add("verify beside verify_all, xxh3 leaves", bytes, kXxh3, ours_verify, ours_all);
  }
  add("verify_all, sha256 leaves, beside memcpy", settings.bytes(), LeafAlgorithm::sha256, ours_all,
      memory_copy);
  return false;
}

}  // namespace thalia::bench::verify_subject
