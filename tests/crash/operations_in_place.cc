// Changes of a file in place, and what repairs and compacts it.
#include <stdexcept>

#include "crash/content.h"
#include "crash/operation.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/reader.h"
#include "thalia/recover.h"
#include "thalia/state/edit.h"
#include "thalia/state/growth.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace in_place {
namespace {

constexpr const char* kFile = "run.thalia";

AppendOptions durable() {
  AppendOptions options;
  options.timestamp = 1'765'000'000;
  options.change.work.threads = 2;
  return options;
}

void prepare(const fs::path& folder) {
  test::save(folder / kFile, network(1));
}

std::string observe(const fs::path& folder) {
  return recovered_content_of(folder / kFile);
}

// One more append, which nothing that a crash left may be in the way of.
void append_again(const fs::path& folder) {
  const test::SampleTensor tensor = test::ramp_tensor("w", {2000});
  Appender appender(folder / kFile, durable());
  appender.add_tensor(appender.add_region({.name = "again"}), tensor.spec, tensor.payload);
  const AppendResult result = appender.commit();
  const Reader reader = Reader::open(folder / kFile);
  if (reader.header().generation != result.generation ||
      !test::same_bytes(reader.region("again").at("w").bytes(), tensor.payload))
    throw std::logic_error("the next append was lost");
  content_of(folder / kFile);
}

template <typename Step>
void do_steps(Teller& teller, unsigned steps, const Step& step) {
  for (unsigned i = 1; i <= steps; ++i) {
    const std::string name = "step " + std::to_string(i);
    teller.attempt(name);
    step(i);
    teller.promise(name);
  }
}

// A new region, then the same one again, larger.
void append(const fs::path& folder, Teller& teller, const AppendOptions& options) {
  do_steps(teller, 2, [&](unsigned i) {
    const test::SampleTensor tensor =
        test::dense_tensor("w", DType::f32, {40, 60 * i}, Role::weights, i);
    Appender appender(folder / kFile, options);
    const RegionSpec spec{.name = "new"};
    const RegionId region = i == 1 ? appender.add_region(spec) : appender.replace_region(spec);
    appender.add_tensor(region, tensor.spec, tensor.payload);
    appender.set_training_steps(100 + i);
    appender.commit();
  });
}

void run_append(const fs::path& folder, Teller& teller) {
  append(folder, teller, durable());
}

void run_append_data(const fs::path& folder, Teller& teller) {
  AppendOptions options = durable();
  options.change.output.durability = Durability::data;
  append(folder, teller, options);
}

void run_compressed_append(const fs::path& folder, Teller& teller) {
  AppendOptions options = durable();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  append(folder, teller, options);
}

// An append that a crash ended before its header was written: all else of it lies after the end.
void prepare_with_debris(const fs::path& folder) {
  prepare(folder);
  const std::string header = test::read_file(folder / kFile).substr(0, 256);
  set_in_file(folder / kFile, {{"lost", Value("gone")}}, {}, durable());
  const std::string bytes = test::read_file(folder / kFile);
  test::write_file(folder / kFile, header + bytes.substr(256) + std::string(9000, '\x77'));
}

// Files whose checksum is of the whole file.
void prepare_sha256(const fs::path& folder) {
  SaveOptions options = test::steady_options();
  options.checksum = ChecksumType::sha256;
  test::save(folder / kFile, network(1), options);
}

void run_grow(const fs::path& folder, Teller& teller) {
  do_steps(teller, 2, [&](unsigned i) {
    GrowthOptions growth;
    growth.seed = i;
    grow_file(folder / kFile, "grows", 8, growth, durable());
  });
}

void prepare_growing(const fs::path& folder) {
  test::Sample sample = network(1);
  sample.connections.clear();
  sample.regions.push_back({{.name = "grows", .n_neurons = 60, .n_inputs = 40},
                            {test::ramp_tensor("weights.w_ff", {60, 40}),
                             test::ramp_tensor("weights.w_rec", {60, 60})}});
  test::save(folder / kFile, sample);
}

void run_edit(const fs::path& folder, Teller& teller) {
  do_steps(teller, 3, [&](unsigned i) {
    if (i == 1) set_in_file(folder / kFile, {{"author", Value("Ada")}}, {}, durable());
    if (i == 2) rename_in_file(folder / kFile, "a/weights", "w", durable());
    if (i == 3) remove_from_file(folder / kFile, {"b"}, durable());
  });
}

void prepare_with_dead_bytes(const fs::path& folder) {
  prepare(folder);
  remove_from_file(folder / kFile, {"b"}, durable());
}

void run_compact(const fs::path& folder, Teller& teller) {
  do_steps(teller, 1, [&](unsigned) {
    ChangeOptions options;
    options.work.threads = 2;
    compact(folder / kFile, options);
  });
}

// A header that a crash tore between the old one and the new.
void prepare_torn(const fs::path& folder) {
  prepare_with_dead_bytes(folder);
  std::string bytes = test::read_file(folder / kFile);
  bytes.replace(40, 100, 100, '\x5A');
  test::write_file(folder / kFile, bytes);
}

void run_recover(const fs::path& folder, Teller& teller) {
  do_steps(teller, 1, [&](unsigned) { recover(folder / kFile); });
}

constexpr Operation kOperations[] = {
    {"append", prepare, run_append, observe, append_again},
    {"append, data", prepare, run_append_data, observe, append_again},
    {"compressed append", prepare, run_compressed_append, observe, append_again},
    {"append over debris", prepare_with_debris, run_append, observe, append_again},
    {"append, sha256", prepare_sha256, run_append, observe, append_again},
    {"grow in place", prepare_growing, run_grow, observe, append_again},
    {"edit in place", prepare, run_edit, observe, append_again},
    {"compact", prepare_with_dead_bytes, run_compact, observe, append_again},
    {"recover", prepare_torn, run_recover, observe, append_again},
};

}  // namespace
}  // namespace in_place

std::span<const Operation> in_place_operations() {
  return in_place::kOperations;
}

}  // namespace thalia::crash
