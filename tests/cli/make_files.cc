// Writes the files that the transcripts look at into the folder given. Equal bytes on every run.
#include <array>
#include <bit>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cli/make_grown.h"
#include "thalia/formats.h"
#include "thalia/state.h"
#include "thalia/thalia.h"

using namespace thalia;
namespace fs = std::filesystem;

namespace {

// 2026-11-21 03:23:20 UTC.
constexpr std::uint64_t kTimestamp = 1795231400;

SaveOptions fixed_options() {
  SaveOptions options;
  options.timestamp = kTimestamp;
  options.file_uuid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  options.output.durability = Durability::none;
  options.work.threads = 1;
  options.block_log2 = 20;  // sizes and offsets without gaps
  return options;
}

// Small regions with every role and encoding, and a connection.
void write_basic(const fs::path& path, const SaveOptions& options) {
  const std::array<float, 12> w_in{0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 4.5f, 5, 0.1f};
  const std::array<std::uint32_t, 5> rows{0, 1, 1, 3, 4};
  const std::array<std::uint32_t, 4> columns{3, 0, 2, 1};
  const std::array<float, 4> stored{0.25f, -1, 2, 1e-8f};
  const std::array<float, 4> membrane{-65, -70.5f, -50, 0};
  const std::array<std::uint16_t, 4> trace{0x3C00, 0x2E66, 0x7C00, 0xFE00};
  const std::array<double, 1> phase{3.141592653589793};
  const std::array<std::uint16_t, 2> dopamine{0x3F80, 0xC049};
  const std::array<std::uint64_t, 6> at{0, 1, 1, 2, 0, 3};
  const std::array<std::int8_t, 3> coo_values{1, -2, 3};
  const std::array<std::uint16_t, 8> delays{1, 2, 3, 4, 5, 6, 7, 8};
  const std::array<std::uint8_t, 2> mask{1, 0};

  Writer writer(path, options);
  writer.set_metadata(
      R"({"description": "two regions", "growth_history": [{"step": 10, "region": "cortex", "neurons_added": 2}, )"
      R"({"step": 20, "region": "cortex", "neurons_added": 1}]})");
  writer.set_training_steps(12345);
  const RegionId cortex = writer.add_region({.name = "cortex",
                                             .config_json = R"({"tau_ms": 20.0})",
                                             .metadata_json = R"({"note": "grown twice"})",
                                             .n_neurons = 4,
                                             .n_inputs = 3,
                                             .neuron_type = NeuronType::lif});
  writer.add_tensor(cortex, {.name = "w_in", .shape = {3, 4}}, as_byte_span(w_in));
  writer.add_csr(cortex, {.name = "w_rec", .shape = {4, 4}},
                 CsrArrays<std::uint32_t>{rows, columns, as_byte_span(stored)});
  writer.add_tensor(cortex, {.name = "threshold", .shape = {4}, .role = Role::homeostatic},
                    as_byte_span(membrane));
  writer.add_tensor(cortex, {.name = "membrane", .shape = {4}, .role = Role::region_state},
                    as_byte_span(membrane));
  writer.add_tensor(
      cortex, {.name = "trace", .dtype = DType::f16, .shape = {4}, .role = Role::learning_state},
      as_byte_span(trace));
  writer.add_tensor(cortex,
                    {.name = "phase", .dtype = DType::f64, .shape = {}, .role = Role::oscillator},
                    as_byte_span(phase));
  writer.add_tensor(
      cortex,
      {.name = "dopamine", .dtype = DType::bf16, .shape = {2}, .role = Role::neuromodulator},
      as_byte_span(dopamine));
  const RegionId hippocampus = writer.add_region({.name = "hippocampus", .n_neurons = 2});
  writer.add_coo(hippocampus, {.name = "w", .dtype = DType::i8, .shape = {2, 4}},
                 CooArrays<std::uint64_t>{at, as_byte_span(coo_values)});
  writer.add_tensor(hippocampus,
                    {.name = "mask", .dtype = DType::boolean, .shape = {2}, .role = Role::buffer},
                    as_byte_span(mask));
  writer.add_tensor(hippocampus, {.name = "none", .shape = {0, 3}, .role = Role::other}, {});
  const ConnectionId projection = writer.add_connection("cortex", "hippocampus");
  writer.add_connection_weights(projection, {.shape = {2, 4}},
                                as_byte_span(w_in).first(8 * sizeof(float)));
  writer.add_connection_delays(projection, {.dtype = DType::u16, .shape = {2, 4}},
                               as_byte_span(delays));
  writer.commit();
}

// Above the threshold of a summary, in several dimensions and encodings.
void write_large(const fs::path& path, const SaveOptions& options) {
  std::vector<std::int64_t> vector(1001);
  std::iota(vector.begin(), vector.end(), std::int64_t{-500});
  std::vector<float> matrix(64 * 48);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i) / 8;
  std::vector<std::uint32_t> rows(2001);
  std::iota(rows.begin(), rows.end(), 0u);
  const std::vector<std::uint32_t> columns(2000, 5);
  std::vector<float> stored(2000);
  std::iota(stored.begin(), stored.end(), 0.0f);

  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_tensor(region, {.name = "vector", .dtype = DType::i64, .shape = {1001}},
                    as_byte_span(vector));
  writer.add_tensor(region, {.name = "matrix", .shape = {64, 48}}, as_byte_span(matrix));
  writer.add_tensor(region, {.name = "cube", .shape = {8, 8, 48}}, as_byte_span(matrix));
  writer.add_csr(region, {.name = "sparse", .shape = {2000, 8}},
                 CsrArrays<std::uint32_t>{rows, columns, as_byte_span(stored)});
  writer.commit();
}

// Names that a terminal must not see as they are.
void write_names(const fs::path& path) {
  const std::array<float, 1> value{1};
  Writer writer(path, fixed_options());
  const RegionId odd = writer.add_region({.name = "two\nlines"});
  for (const char* name : {"tab\there", "red\x1b[31m", "back\\slash", "caf\xc3\xa9",
                           "\xe6\xbc\xa2\xe5\xad\x97", "left\xe2\x80\xae", "a/b"})
    writer.add_tensor(odd, {.name = name, .shape = {1}}, as_byte_span(value));
  writer.add_tensor(odd, {.name = "", .shape = {1}}, as_byte_span(value));
  writer.add_tensor(odd, {.name = "twice", .shape = {1}}, as_byte_span(value));
  const RegionId other = writer.add_region({.name = "a,b"});
  writer.add_tensor(other, {.name = "twice", .shape = {1}}, as_byte_span(value));
  writer.commit();
}

// For every dtype of up to 16 bits a tensor "codes" with every code in ascending order.
void write_codes(const fs::path& path) {
  std::vector<std::vector<std::uint8_t>> payloads(kDTypeCount);
  Writer writer(path, fixed_options());
  const RegionId region = writer.add_region({.name = "codes"});
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DType dtype = static_cast<DType>(code);
    const unsigned bits = dtype_bits(dtype);
    if (bits > 16) continue;
    const std::uint64_t count = dtype == DType::boolean   ? 2
                                : dtype == DType::ternary ? 2
                                                          : std::uint64_t{1} << bits;
    std::vector<std::uint8_t>& payload = payloads[code];
    payload.resize((count * bits + 7) / 8);
    for (std::uint64_t value = 0; value < count; ++value) {
      for (unsigned bit = 0; bit < bits; ++bit) {
        if (value >> bit & 1) {
          const std::uint64_t position = value * bits + bit;
          payload[position / 8] |= static_cast<std::uint8_t>(1u << (position % 8));
        }
      }
    }
    writer.add_tensor(region,
                      {.name = std::string(dtype_name(dtype)), .dtype = dtype, .shape = {count}},
                      as_byte_span(payload));
  }
  const std::array<std::complex<float>, 2> c64{{{1, -2}, {0.5f, 0}}};
  const std::array<std::complex<double>, 1> c128{{{0.1, 1e300}}};
  const std::array<std::uint64_t, 1> u64{~std::uint64_t{0}};
  writer.add_tensor(region, {.name = "c64", .dtype = DType::c64, .shape = {2}}, as_byte_span(c64));
  writer.add_tensor(region, {.name = "c128", .dtype = DType::c128, .shape = {}},
                    as_byte_span(c128));
  writer.add_tensor(region, {.name = "u64", .dtype = DType::u64, .shape = {1}}, as_byte_span(u64));
  writer.commit();
}

void write_safetensors(const fs::path& path) {
  const std::array<float, 6> weight{1, 2, 3, 4, 5, 6};
  const std::array<std::uint16_t, 3> bias{0x3F80, 0x4000, 0x4040};
  const std::array<std::int64_t, 1> steps{7};
  save_safetensors(path,
                   {{"model.layers.0.weight", DType::f32, {2, 3}, as_byte_span(weight)},
                    {"model.layers.0.bias", DType::bf16, {3}, as_byte_span(bias)},
                    {"model.layers.1.weight", DType::f32, {3, 2}, as_byte_span(weight)},
                    {"steps", DType::i64, {}, as_byte_span(steps)}},
                   SafetensorsMetadata{std::pair<std::string, std::string>("format", "pt")},
                   {.durability = Durability::none});
}

// Two checkpoints by key, the second a delta of the first.
void write_steps(const fs::path& folder) {
  const CheckpointCompressor compressor(
      {.compression = {.codec = Codec::zstd}, .work = {.threads = 1}},
      std::make_shared<LocalStorage>(folder / "steps",
                                     OutputOptions{.durability = Durability::none}));
  std::vector<float> weights(600, 0.5f);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    weights[step] = 2;
    Checkpoint checkpoint{.tensors = {}, .metadata = Value::object(), .training_step = step};
    checkpoint.metadata["lr"] = 0.1;
    checkpoint.tensors["model.w"] =
        Tensor::copy_of<float>({20, 30}, std::span<const float>(weights));
    checkpoint.tensors["scale"] = Tensor::copy_of<float>({}, std::array{1.5f});
    const std::string previous = step == 1 ? "" : "step_1";
    compressor.save(checkpoint, "step_" + std::to_string(step), previous);
  }
}

void write_all(const fs::path& folder) {
  write_basic(folder / "basic.thalia", fixed_options());
  write_large(folder / "large.thalia", fixed_options());
  write_names(folder / "names.thalia");
  write_codes(folder / "codes.thalia");
  write_safetensors(folder / "model.safetensors");
  write_grown_files(folder, fixed_options());
  write_steps(folder);
  Writer(folder / "empty.thalia", fixed_options()).commit();

  SaveOptions options = fixed_options();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  write_large(folder / "zstd.thalia", options);
  options.compression.codec = Codec::lz4;
  write_large(folder / "lz4.thalia", options);

  options = fixed_options();
  for (const auto& [type, name] :
       {std::pair{ChecksumType::none, "none"}, std::pair{ChecksumType::crc32, "crc32"},
        std::pair{ChecksumType::sha256, "sha256"}}) {
    options.checksum = type;
    write_basic(folder / (std::string(name) + ".thalia"), options);
  }
  options.checksum = ChecksumType::block_tree;
  options.leaves = LeafAlgorithm::sha256;
  options.block_log2 = 12;
  write_basic(folder / "tree.thalia", options);
}

}  // namespace

namespace {

// A file for each element type, with one matrix of it.
void write_types(const fs::path& folder) {
  fs::create_directory(folder);
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    const Shape shape{2, 8};
    std::vector<std::byte> elements(*shape.byte_length(dtype));
    // Booleans are 0 or 1, and no ternary digit is 2: these are 1, 3, 0 and 1.
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = dtype == DType::boolean   ? std::byte(i % 2)
                    : dtype == DType::ternary ? std::byte{0b01'00'11'01}
                                              : std::byte(i * 37 % 101);
    }
    const std::string name(dtype_name(dtype));
    Writer writer(folder / (name + ".thalia"), fixed_options());
    writer.add_tensor(writer.add_region({.name = "model"}),
                      {.name = "weight", .dtype = dtype, .shape = shape}, elements);
    writer.commit();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    write_all(argv[1]);
    write_types(fs::path(argv[1]) / "types");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
