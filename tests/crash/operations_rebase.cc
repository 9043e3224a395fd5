// A chain that is turned: two deltas of a file in frames, and another delta of the first of them.
#include <stdexcept>
#include <string>

#include "crash/content.h"
#include "crash/operation.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"
#include "thalia/text.h"
#include "thalia/verify.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace rebases {
namespace {

constexpr const char* kFiles[] = {"1.thalia", "2.thalia", "3.thalia", "branch.thalia"};

SaveOptions quick() {
  SaveOptions options = test::steady_options();
  options.output.durability = Durability::none;
  return options;
}

void add_delta(const fs::path& folder, const char* base, unsigned step, const char* name) {
  const fs::path aside = folder / "aside";
  test::Sample sample = network(step);
  sample.training_steps = step;
  test::save(aside, sample, quick());
  DeltaOptions delta;
  delta.save = quick();
  delta.save.compression.codec = Codec::none;
  write_delta(state_source(ChainReader::open(aside)), ChainReader::open(folder / base),
              folder / name, delta);
  remove_file(aside);
}

void prepare(const fs::path& folder) {
  const fs::path plain = folder / "plain";
  test::save(plain, network(1), quick());
  CompressOptions frames;
  frames.compression.codec = Codec::zstd;
  compress_checkpoint(plain, folder / kFiles[0], frames);
  remove_file(plain);
  add_delta(folder, kFiles[0], 2, kFiles[1]);
  add_delta(folder, kFiles[1], 3, kFiles[2]);
  add_delta(folder, kFiles[1], 4, kFiles[3]);
}

void turn(const fs::path& folder) {
  RebaseOptions options;
  options.save.output.reproducible = true;
  options.save.work.threads = 2;
  options.chain.read.work.threads = 2;
  rebase({folder / kFiles[2], folder / kFiles[1], folder / kFiles[0]}, options);
}

void run(const fs::path& folder, Teller& teller) {
  teller.attempt("turned");
  turn(folder);
  teller.promise("turned");
}

// All states are those of before, at each moment: that is all that is promised.
std::string observe(const fs::path& folder) {
  std::string text;
  for (const char* const name : kFiles) {
    const fs::path path = folder / name;
    const VerifyReport report = verify_chain(path);
    if (!report.ok()) throw std::logic_error(path.string() + ": " + report.findings[0].message);
    const Reader reader = ChainReader::open(path).reader();
    text += std::string(name) + " is of step " + std::to_string(reader.header().training_steps);
    const ChainReader chain = ChainReader::open(path);
    for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
      const RegionView region = reader.region(r);
      for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
        text += ", " + hex(chain.describe(region.tensor(t)).content_hash.bytes);
    }
    text += "\n";
  }
  return text;
}

// It is begun again, and finishes.
void go_on(const fs::path& folder) {
  turn(folder);
  unsigned depth = 2;
  for (const char* const name : {kFiles[0], kFiles[1], kFiles[2]})
    if (ChainReader::open(folder / name).depth() != depth--)
      throw std::logic_error(std::string(name) + " was not turned");
}

constexpr Operation kOperations[] = {
    {"rebase", prepare, run, observe, go_on},
    {"rebase, named", prepare, run_named<run>, observe, go_on},
};

}  // namespace
}  // namespace rebases

std::span<const Operation> rebase_operations() {
  return rebases::kOperations;
}

}  // namespace thalia::crash
