// Every limit there is, on every way on which files are read and written: what a file needs is
// enough, one less is one clear error.
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/formats/compressor.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/mckp.h"
#include "thalia/formats/safetensors.h"
#include "thalia/formats/v01.h"
#include "thalia/side_file.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"
#include "thalia/state/growth.h"
#include "thalia/state/quantization.h"
#include "thalia/stream.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(limits)

namespace {

using Path = std::filesystem::path;

constexpr unsigned kDepth = 9;  // of the deepest text
constexpr std::uint64_t kEnough = 1 << 22;

template <typename Options>
struct Field {
  std::string name;
  std::function<void(Options&, std::uint64_t)> set;
};

// One more limit and this does not compile until the table has it, and so every way.
const std::vector<Field<ReadLimits>>& read_limits() {
  [[maybe_unused]] const auto [file_bytes, regions, tensors, json_bytes, json_depth, allocation] =
      ReadLimits{};
  static const std::vector<Field<ReadLimits>> all{
      {"max_file_bytes", [](ReadLimits& l, std::uint64_t n) { l.max_file_bytes = n; }},
      {"max_regions",
       [](ReadLimits& l, std::uint64_t n) { l.max_regions = static_cast<std::uint32_t>(n); }},
      {"max_tensors",
       [](ReadLimits& l, std::uint64_t n) { l.max_tensors = static_cast<std::uint32_t>(n); }},
      {"max_json_bytes", [](ReadLimits& l, std::uint64_t n) { l.max_json_bytes = n; }},
      {"max_json_depth",
       [](ReadLimits& l, std::uint64_t n) { l.max_json_depth = static_cast<unsigned>(n); }},
      {"max_allocation_bytes", [](ReadLimits& l, std::uint64_t n) { l.max_allocation_bytes = n; }},
  };
  return all;
}

SaveOptions saving(std::optional<Codec> codec = Codec::zstd) {
  return {.compression = {.codec = codec, .chunk_bytes = 4096},
          .output = {.durability = Durability::none},
          .io = IoMode::buffered,
          .work = {.threads = 1}};
}

std::string deep_text() {
  return R"({"a":)" + std::string(kDepth - 1, '[') + std::string(kDepth - 1, ']') + R"(,"note":")" +
         std::string(3000, 'x') + R"("})";
}

// Three regions, of which one is in a connection with itself, and one larger than its file.
BrainState sample(int step) {
  BrainState brain;
  for (const char* name : {"a", "b", "c"}) {
    BrainRegion& region = brain.regions.add(name, {.n_neurons = 64});
    Tensor weights = Tensor::zeros(DType::f32, {64, 256});
    weights.mutable_as<float>()[7] = static_cast<float>(step);
    region.weights()["w"] = std::move(weights);
    region.weights()["v"] = Tensor::zeros(DType::u8, {64});
  }
  brain.connectivity.add({.source = "a", .target = "a", .weights = Tensor::zeros(DType::u8, {64})});
  brain.metadata = parse_json(deep_text());
  return brain;
}

struct Way {
  const char* name;
  std::function<void(const Path& folder, const ReadLimits& limits)> go;
  /// The names of limits that do not apply on this way.
  std::set<std::string> without{};
  unsigned regions = 3;
  unsigned depth = kDepth;
};

ReadOptions reading(const ReadLimits& limits, Access access = Access::mapped) {
  return {.input = {.access = access, .limits = limits}, .work = {.threads = 1}};
}
ConvertOptions converting(const ReadLimits& limits) {
  return {.save = saving(), .chain = {.read = reading(limits)}};
}

void read_all(const Path& path, const ReadOptions& options) {
  const Reader reader = Reader::open(path, options);
  reader.metadata_json();
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    reader.region(r).config_json();
    reader.region(r).metadata_json();
    for (std::uint32_t t = 0; t < reader.region(r).tensor_count(); ++t)
      Tensor::from(reader.region(r).tensor(t), options.input.limits);
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i)
    Tensor::from(reader.connection(i).weights, options.input.limits);
}

void read_chain(const Path& path, const ReadLimits& limits) {
  const ChainReader chain = ChainReader::open(path, {.read = reading(limits)});
  chain.reader().metadata_json();
  for (std::uint32_t r = 0; r < chain.reader().region_count(); ++r) {
    for (std::uint32_t t = 0; t < chain.reader().region(r).tensor_count(); ++t)
      chain.read(chain.reader().region(r).tensor(t));
  }
}

const Path& copy_of(const Path& file, const Path& copy) {
  std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
  return copy;
}

void write_files(const Path& folder) {
  const BrainSaveOptions dense{.sparse = SparseStorage::dense, .save = saving()};
  BrainCheckpoint::save(sample(1), folder / "f.thalia", dense);
  BrainCheckpoint::save(sample(2), folder / "g.thalia", dense);
  BrainCheckpoint::save_delta(sample(2), folder / "d.delta.thalia", folder / "f.thalia",
                              {.brain = dense});
  for (const char* ending : {".zst", ".lz4"})
    compress_checkpoint(folder / "f.thalia", folder / (std::string("f.thalia") + ending),
                        {.frame_bytes = 4096, .output = {.durability = Durability::none}});
  migrate(folder / "f.thalia", folder / "f01.thalia", {0, 1, 0},
          {.across_major = true, .save = saving(Codec::none)});
  convert(folder / "f.thalia", folder / "f.mckp", {.save = saving()});
  convert(folder / "f.thalia", folder / "f.safetensors", {.save = saving(Codec::none)});
  write_metadata_file(folder / "f.thalia", folder / "f.meta",
                      {.output = {.durability = Durability::none}});
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"reader", [](const Path& f, const ReadLimits& l) { read_all(f / "f.thalia", reading(l)); }},
      {"reader, copied",
       [](const Path& f, const ReadLimits& l) {
         read_all(f / "f.thalia", reading(l, Access::copied));
       }},
      {"reader, zst",
       [](const Path& f, const ReadLimits& l) { read_all(f / "f.thalia.zst", reading(l)); }},
      {"reader, lz4",
       [](const Path& f, const ReadLimits& l) { read_all(f / "f.thalia.lz4", reading(l)); }},
      {"stream",
       [](const Path& f, const ReadLimits& l) {
         const Reader reader = Reader::open(f / "f.thalia", reading(l));
         StreamReader stream(reader, {.work = {.threads = 1, .memory_bytes = 4 << 20}});
         for (const StreamedTensor& tensor : stream) static_cast<void>(tensor);
       },
       {"max_json_depth"}},
      {"verify",
       [](const Path& f, const ReadLimits& l) {
         verify(f / "f.thalia", {.input = {.limits = l}, .work = {.threads = 1}});
       }},
      {"chain", [](const Path& f, const ReadLimits& l) { read_chain(f / "d.delta.thalia", l); }},
      {"verify, chain",
       [](const Path& f, const ReadLimits& l) {
         verify_chain(f / "d.delta.thalia", {.input = {.limits = l}, .work = {.threads = 1}});
       }},
      {"diff",
       [](const Path& f, const ReadLimits& l) {
         diff(Reader::open(f / "f.thalia", reading(l)), Reader::open(f / "g.thalia", reading(l)),
              {.values = true, .input = {.limits = l}, .work = {.threads = 1}});
       }},
      {"state",
       [](const Path& f, const ReadLimits& l) {
         BrainCheckpoint::load(f / "f.thalia", {.chain = {.read = reading(l)}});
       }},
      {"info",
       [](const Path& f, const ReadLimits& l) {
         BrainCheckpoint::info(f / "f.thalia", reading(l));
       },
       {"max_allocation_bytes"}},
      {"migrate down",
       [](const Path& f, const ReadLimits& l) {
         migrate(f / "f.thalia", f / "out01.thalia", {0, 1, 0},
                 {.across_major = true, .chain = {.read = reading(l)}, .save = saving()});
       }},
      {"migrate up",
       [](const Path& f, const ReadLimits& l) {
         migrate(f / "f01.thalia", f / "out10.thalia", {1, 0, 0},
                 {.chain = {.read = reading(l)}, .save = saving()});
       },
       {"max_allocation_bytes"},  // tensors stay where they lie in the file
       4},                        // and the index has connectivity, too
      {"0.1",
       [](const Path& f, const ReadLimits& l) { read_v01(f / "f01.thalia", reading(l)); },
       {"max_allocation_bytes"},
       4},
      {"mckp",
       [](const Path& f, const ReadLimits& l) {
         const MckpFile file = MckpFile::open(
             f / "f.mckp", {.chain = {.read = {.input = {.limits = l}, .work = {.threads = 1}}}});
         for (const MckpTensor& tensor : file.tensors()) file.read(tensor.name);
       },
       {"max_regions"},
       0,
       kDepth + 1},  // one more: the header is an object around it
      {"safetensors",
       [](const Path& f, const ReadLimits& l) {
         SafetensorsFile::open(f / "f.safetensors", reading(l));
       },
       {"max_regions", "max_json_depth", "max_allocation_bytes"}},
      {"convert to thalia",
       [](const Path& f, const ReadLimits& l) {
         convert(f / "f.thalia", f / "o.thalia", converting(l));
       }},
      {"convert to mckp",
       [](const Path& f, const ReadLimits& l) {
         convert(f / "f.thalia", f / "o.mckp", converting(l));
       }},
      {"convert from mckp",
       [](const Path& f, const ReadLimits& l) {
         convert(f / "f.mckp", f / "o.thalia", converting(l));
       },
       {"max_regions"},
       0,
       kDepth + 1},
      {"convert from safetensors",
       [](const Path& f, const ReadLimits& l) {
         convert(f / "f.safetensors", f / "o.thalia", converting(l));
       },
       {"max_regions", "max_json_depth", "max_allocation_bytes"}},
      {"extract",
       [](const Path& f, const ReadLimits& l) {
         extract(f / "f.thalia", {"a"}, f / "o.thalia", converting(l));
       }},
      {"merge",
       [](const Path& f, const ReadLimits& l) {
         merge({f / "f.thalia", f / "f.thalia"}, f / "o.thalia", {}, converting(l));
       }},
      {"resolve",
       [](const Path& f, const ReadLimits& l) {
         resolve(f / "d.delta.thalia", f / "o.thalia", {.read = reading(l)}, saving());
       }},
      {"grow",
       [](const Path& f, const ReadLimits& l) {
         grow_file(copy_of(f / "f.thalia", f / "grown.thalia"), "b", 1, {},
                   {.change = {.output = {.durability = Durability::none},
                               .input = {.limits = l},
                               .work = {.threads = 1}}});
       }},
      {"compact",
       [](const Path& f, const ReadLimits& l) {
         compact(f / "f.thalia", f / "o.thalia",
                 {.output = {.durability = Durability::none},
                  .input = {.limits = l},
                  .work = {.threads = 1}});
       },
       {"max_allocation_bytes"}},
      {"quantize",
       [](const Path& f, const ReadLimits& l) {
         quantize_file(f / "f.thalia", f / "o.thalia", {},
                       {.save = saving(), .input = {.limits = l}});
       }},
      {"side file, written",
       [](const Path& f, const ReadLimits& l) {
         write_metadata_file(f / "f.thalia", f / "o.meta",
                             {.output = {.durability = Durability::none},
                              .input = {.limits = l},
                              .work = {.threads = 1}});
       },
       {"max_json_depth", "max_allocation_bytes"}},
      {"side file",
       [](const Path& f, const ReadLimits& l) {
         Reader::open(f / "f.meta", reading(l)).metadata_json();
       }},
      {"unwrap",
       [](const Path& f, const ReadLimits& l) {
         decompress_checkpoint(f / "f.thalia.zst", f / "o.thalia",
                               {.input = {.limits = l},
                                .output = {.durability = Durability::none},
                                .work = {.threads = 1}});
       },
       {"max_regions", "max_tensors", "max_json_bytes", "max_json_depth"}},
      {"history",
       [](const Path&, const ReadLimits& l) { parse_growth_history(deep_text(), l); },
       {"max_file_bytes", "max_regions", "max_tensors", "max_allocation_bytes"}},
      {"value",
       [](const Path&, const ReadLimits& l) { parse_json(deep_text(), l); },
       {"max_file_bytes", "max_regions", "max_tensors", "max_allocation_bytes"}},
  };
  return all;
}

// The error that a limit ends with; nullopt if it is enough.
std::optional<FormatError> beyond(const Way& way, const Path& folder,
                                  const Field<ReadLimits>& limit, std::uint64_t value) {
  ReadLimits limits;
  limit.set(limits, value);
  try {
    way.go(folder, limits);
  } catch (const FormatError& error) {
    return error;
  }
  return std::nullopt;
}

void check_limit(const Way& way, const Path& folder, const Field<ReadLimits>& limit) {
  if (const auto error = beyond(way, folder, limit, kEnough)) {
    BOOST_ERROR(error->what());
    return;
  }
  const bool bounded = beyond(way, folder, limit, 1).has_value();
  BOOST_TEST(bounded != way.without.contains(limit.name));
  if (!bounded) return;
  std::uint64_t low = 1;  // too little
  std::uint64_t high = kEnough;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (beyond(way, folder, limit, middle) ? low : high) = middle;
  }
  if (limit.name == "max_regions") BOOST_TEST(high == way.regions);
  if (limit.name == "max_json_depth") BOOST_TEST(high == way.depth);
  const FormatError error = *beyond(way, folder, limit, low);
  BOOST_TEST((error.code() == ErrorCode::limit_exceeded), error.what());
  BOOST_TEST(error.message().find(limit.name) != std::string::npos, error.what());
  BOOST_TEST(error.context().value == std::to_string(high), error.what());
  BOOST_TEST(error.context().bound == std::to_string(low), error.what());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_limit_holds_on_every_way_and_not_one_earlier) {
  const TemporaryFolder folder;
  write_files(folder.path());
  for (const Way& way : ways()) {
    for (const Field<ReadLimits>& limit : read_limits()) {
      BOOST_TEST_CONTEXT(way.name << ", " << limit.name) {
        check_limit(way, folder.path(), limit);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
