// Files of a few bytes that hold hundreds of MiB, on every way on which files are read: the limit
// on allocations holds on each, whatever the file.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/frame/zstd_frame.h"
#include "format/v01.h"
#include "formats/v01/binary.h"
#include "formats/v01/header.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/mckp.h"
#include "thalia/formats/mithril.h"
#include "thalia/side_file.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"
#include "thalia/state/growth.h"
#include "thalia/stream.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(hostile_memory)

namespace {

using Path = std::filesystem::path;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kHeld = 256 * kMiB;       // by each file
constexpr std::uint64_t kAllowed = 16 * kMiB;     // of one allocation
constexpr std::uint64_t kTolerated = 144 * kMiB;  // of the process: buffers, several allocations

ReadLimits limits() {
  return {.max_allocation_bytes = kAllowed};
}
ReadOptions reading() {
  return {.input = {.limits = limits()}, .work = {.threads = 1}};
}
SaveOptions saving() {
  return {.output = {.durability = Durability::none},
          .io = IoMode::buffered,
          .work = {.threads = 1, .memory_bytes = 4 * kMiB}};
}

// What `action` made the process take, in bytes, in a child of its own. An error is what most ways
// end with; running out of memory, or anything else, is no such end.
std::uint64_t memory_of(const std::function<void()>& action) {
  const pid_t child = ::fork();
  BOOST_TEST_REQUIRE(child >= 0);
  if (child == 0) {
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    int status = 0;
    try {
      action();
    } catch (const Error&) {
    } catch (...) {
      status = 1;
    }
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    const auto mebibytes = (after.ru_maxrss - before.ru_maxrss) / 1024;
    ::_exit(status != 0 ? 255 : static_cast<int>(std::min<long>(mebibytes, 254)));
  }
  int status = 0;
  BOOST_TEST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST_REQUIRE(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) != 255, "another end than an Error");
  return static_cast<std::uint64_t>(WEXITSTATUS(status)) * kMiB;
}

void write_bytes(const Path& path, const std::vector<std::byte>& bytes) {
  write_file(path, text_of(bytes));
}

void write_zeros(const Path& path, std::uint32_t chunk_bytes, bool last_is_one) {
  SaveOptions options = saving();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = chunk_bytes;
  std::vector<float> zeros(kHeld / sizeof(float));
  if (last_is_one) zeros.back() = 1;
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "r", .n_neurons = 1024});
  writer.add_tensor(region, {.name = "w", .shape = {1024, zeros.size() / 1024}},
                    as_byte_span(zeros));
  writer.commit();
}

// A dense tensor of zeros that was stored sparse, as the state's metadata say.
void write_sparse_brain(const Path& path, SparseStorage sparse) {
  BrainState brain;
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 1024});
  region.weights()["w"] = Tensor::zeros(DType::f32, {1024, kHeld / 4096});
  BrainCheckpoint::save(brain, path, {.sparse = sparse, .save = saving()});
}

// The header of a 0.1 file with one region, and what is not one after it.
void write_v01_bomb(const Path& path) {
  std::vector<std::byte> body(kHeld);
  format::V01FileHeader header = formats::to_disk({});
  header.num_regions = 1;
  std::memcpy(body.data(), &header, sizeof header);
  std::vector<std::byte> frame;
  codec::zstd_encode(3, body, frame);
  write_bytes(path, frame);
}

// A frame without a seek table, of what is no header.
void write_zero_frame(const Path& path) {
  std::vector<std::byte> frame;
  codec::zstd_encode(3, std::vector<std::byte>(kHeld), frame);
  write_bytes(path, frame);
}

void write_mckp(const Path& path) {
  const std::vector<float> zeros(kHeld / sizeof(float));
  MckpWriter writer(path, {.output = {.durability = Durability::none}, .work = {.threads = 1}});
  writer.add("r.w", Tensor::borrow(DType::f32, {zeros.size()}, as_byte_span(zeros)));
  writer.commit();
}

void write_mckp_text(const Path& path) {
  std::string text = "{\"a\":[0";
  while (text.size() < kHeld / 8) text += ",0";
  MckpWriter writer(
      path, {.header = {.metadata = text + "]}"}, .output = {.durability = Durability::none}});
  writer.commit();
}

void write_json(const Path& path) {
  std::string text = "{\"a\":[0";
  while (text.size() < kHeld / 8) text += ",0";
  Writer writer(path, saving());
  writer.set_metadata(text + "]}");
  writer.add_region({.name = "r"});
  writer.commit();
}

struct Hostile {
  const char* name;
  std::function<void(const Path&)> write;
};

const std::vector<Hostile>& hostile_files() {
  static const std::vector<Hostile> files{
      {"chunk.thalia", [](const Path& path) { write_zeros(path, 1 << 28, false); }},
      {"chunk2.thalia", [](const Path& path) { write_zeros(path, 1 << 28, true); }},
      {"chunks.thalia", [](const Path& path) { write_zeros(path, 1 << 20, false); }},
      {"csr.thalia", [](const Path& path) { write_sparse_brain(path, SparseStorage::csr); }},
      {"coo.thalia", [](const Path& path) { write_sparse_brain(path, SparseStorage::coo); }},
      {"v01.thalia.zst", write_v01_bomb},
      {"nothing.thalia.zst", write_zero_frame},
      {"zeros.mckp", write_mckp},
      {"text.mckp", write_mckp_text},
      {"text.thalia", write_json},
  };
  return files;
}

struct Way {
  const char* name;
  std::function<void(const Path& file, const Path& folder)> go;
};

ConvertOptions converting() {
  return {.save = saving(), .chain = {.read = reading()}};
}

Way converted_to(const char* name) {
  return {name, [name](const Path& file, const Path& folder) {
            convert(file, folder / name, converting());
          }};
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"views",
       [](const Path& file, const Path&) {
         const Reader reader = Reader::open(file, reading());
         const TensorView tensor = reader.tensor("w");
         std::vector<std::byte> element(4);
         const std::vector<SliceRange> one{{1, 2}, {3, 4}};
         tensor.read_slice(one, element);
       }},
      {"tensor",
       [](const Path& file, const Path&) {
         Tensor::from(Reader::open(file, reading()).tensor("w"), limits());
       }},
      {"stream",
       [](const Path& file, const Path&) {
         const Reader reader = Reader::open(file, reading());
         StreamReader stream(reader, {.work = {.threads = 1, .memory_bytes = 4 * kMiB}});
         for (const StreamedTensor& tensor : stream) static_cast<void>(tensor);
       }},
      {"state", [](const Path& file,
                   const Path&) { BrainCheckpoint::load(file, {.chain = {.read = reading()}}); }},
      {"state, later",
       [](const Path& file, const Path&) {
         const BrainState brain =
             BrainCheckpoint::load(file, {.lazy = true, .chain = {.read = reading()}});
         brain.regions.at("r");
       }},
      {"info", [](const Path& file, const Path&) { BrainCheckpoint::info(file, reading()); }},
      {"verify",
       [](const Path& file, const Path&) {
         verify(file, {.input = {.limits = limits()}, .work = {.threads = 1}});
       }},
      {"detect", [](const Path& file, const Path&) { detect_format(file); }},
      converted_to("out.thalia"),
      converted_to("out.safetensors"),
      converted_to("out.mckp"),
      {"precision",
       [](const Path& file, const Path& folder) {
         ConvertOptions options = converting();
         options.precision = parse_precision_policy("fp16");
         convert(file, folder / "half.thalia", options);
       }},
      {"migrate",
       [](const Path& file, const Path& folder) {
         migrate(file, folder / "out_0_1.thalia", {0, 1, 0},
                 {.across_major = true, .chain = {.read = reading()}, .save = saving()});
       }},
      {"migrate up",
       [](const Path& file, const Path& folder) {
         migrate(file, folder / "out_1_0.thalia", {1, 0, 0},
                 {.chain = {.read = reading()}, .save = saving()});
       }},
      {"extract",
       [](const Path& file, const Path& folder) {
         extract(file, {"r"}, folder / "extracted.thalia", converting());
       }},
      {"merge",
       [](const Path& file, const Path& folder) {
         merge({file, file}, folder / "merged.thalia", {}, converting());
       }},
      {"diff",
       [](const Path& file, const Path& folder) {
         diff(Reader::open(file, reading()), Reader::open(folder / "chunk2.thalia", reading()),
              {.values = true, .input = {.limits = limits()}, .work = {.threads = 1}});
       }},
      {"delta",
       [](const Path& file, const Path& folder) {
         const ChainReader base = ChainReader::open(folder / "chunk2.thalia", {.read = reading()});
         const ChainReader top = ChainReader::open(file, {.read = reading()});
         write_delta(state_source(top), base, folder / "x.delta.thalia",
                     {.save = {.output = {.durability = Durability::none},
                               .work = {.threads = 1, .memory_bytes = 4 * kMiB}}});
         resolve(folder / "x.delta.thalia", folder / "resolved.thalia", {.read = reading()},
                 saving());
       }},
      {"grow",
       [](const Path& file, const Path& folder) {
         const Path copy = folder / "grown.thalia";
         std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
         grow_file(copy, "r", 1, {},
                   {.change = {.output = {.durability = Durability::none},
                               .input = {.limits = limits()}}});
       }},
      {"side file",
       [](const Path& file, const Path& folder) {
         write_metadata_file(file, folder / "x.meta", {.input = {.limits = limits()}});
       }},
      {"wrapper", [](const Path& file, const Path&) { read_wrapper(file, limits()); }},
      {"0.1", [](const Path& file, const Path&) { read_v01(file, reading()); }},
      {"0.1, binary",
       [](const Path& file, const Path&) { BinaryReader(file, reading()).read_index(); }},
      {"mckp",
       [](const Path& file, const Path&) {
         const MckpFile mckp = MckpFile::open(
             file, {.chain = {.read = {.input = {.limits = limits()}, .work = {.threads = 1}}}});
         for (const MckpTensor& tensor : mckp.tensors()) mckp.read(tensor.name);
       }},
      {"mst",
       [](const Path& file, const Path&) {
         const MstFile mst = MstFile::open(file, {.input = {.limits = limits()}});
         for (const MstTensor& tensor : mst.tensors()) mst.read(tensor.name);
       }},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_limit_holds_on_every_way) {
  if (kSanitized) return;  // which keep what is freed
  const TemporaryFolder folder;
  for (const Hostile& hostile : hostile_files()) {
    const Path path = folder / hostile.name;
    BOOST_TEST_CONTEXT(hostile.name) {
      memory_of([&] { hostile.write(path); });
      BOOST_TEST_REQUIRE(std::filesystem::exists(path));
    }
  }
  // What would be taken without the limit is more than is tolerated: else nothing is shown.
  BOOST_TEST(memory_of([&] { Tensor::from(Reader::open(folder / "chunk.thalia").tensor("w")); }) >
             kTolerated);
  for (const Hostile& hostile : hostile_files()) {
    for (const Way& way : ways()) {
      BOOST_TEST_CONTEXT(hostile.name << ", " << way.name) {
        BOOST_TEST(memory_of([&] { way.go(folder / hostile.name, folder.path()); }) < kTolerated);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
