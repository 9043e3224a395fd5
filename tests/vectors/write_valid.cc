// The valid files of tests/data/vectors. Usage: write_valid FOLDER
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "state/delta/sample.h"
#include "thalia/append.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/side_file.h"
#include "thalia/state/delta.h"
#include "thalia/state/quantization.h"
#include "thalia/writer.h"
#include "vectors/valid_file.h"

using namespace thalia;
using namespace thalia::test;

namespace {

namespace fs = std::filesystem;

void write_minimal(const fs::path& path, const SaveOptions& save = options()) {
  File file(path, save);
  const RegionId region = file->add_region({.name = "r", .config_json = R"({"tau_ms":20})"});
  file.dense(region, {.name = "w", .shape = {2, 3}});
  file.commit();
}

void write_pieces(const fs::path& path) {
  File file(path);
  file->set_metadata(R"({"description":"every piece of a region"})");
  const RegionId region = file->add_region({.name = "cortex",
                                            .config_json = R"({"tau_ms":20})",
                                            .metadata_json = R"({"note":"kept"})",
                                            .n_neurons = 4,
                                            .n_inputs = 3,
                                            .neuron_type = NeuronType::conductance_lif,
                                            .homeostatic_updated = 1'767'225'000});
  file.dense(region, {.name = "w_ff", .shape = {4, 3}});
  file.dense(region, {.name = "w_rec", .dtype = DType::f16, .shape = {4, 4}});
  for (const auto& [name, role] :
       {std::pair("thresholds", Role::homeostatic), std::pair("membrane", Role::region_state),
        std::pair("trace", Role::learning_state), std::pair("theta", Role::oscillator),
        std::pair("dopamine", Role::neuromodulator), std::pair("moment", Role::optimizer),
        std::pair("mean", Role::buffer), std::pair("rest", Role::other)})
    file.dense(region, {.name = name, .shape = {4}, .role = role});
  // A piece that ends where the next one could not begin, so that its offset can be wrong alone.
  for (const auto& [name, role] :
       {std::pair("b", Role::bias), std::pair("scale", Role::normalization),
        std::pair("table", Role::embedding)})
    file.dense(region, {.name = name, .shape = {3}, .role = role});
  file->add_region({.name = "empty"});
  file.commit();
}

void write_dtypes(const fs::path& path) {
  File file(path);
  const RegionId region = file->add_region({.name = "dtypes"});
  for (unsigned i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    file.dense(region, {.name = std::string(dtype_name(dtype)), .dtype = dtype, .shape = {5}});
  }
  const RegionId ranks = file->add_region({.name = "ranks"});
  file.dense(ranks, {.name = "0", .shape = {}});
  file.dense(ranks, {.name = "3", .dtype = DType::u8, .shape = {2, 3, 4}});
  file.dense(ranks, {.name = "8", .dtype = DType::u8, .shape = {1, 2, 1, 2, 1, 2, 1, 2}});
  file.dense(ranks, {.name = "nothing", .shape = {3, 0}});
  file.commit();
}

void write_sparse(const fs::path& path) {
  File file(path);
  const RegionId region = file->add_region({.name = "sparse"});
  std::mt19937_64 random(1);
  for (const DType dtype : {DType::f32, DType::f64, DType::boolean, DType::i8}) {
    Tensor dense = Tensor::zeros(dtype, {3, 4});
    for (const std::size_t i : {1, 6, 7})
      dense.mutable_bytes()[i * dtype_bits(dtype) / 8] = std::byte{1};
    const std::string name(dtype_name(dtype));
    file.tensor(region, {.name = "csr." + name}, dense.to_csr());
    file.tensor(region, {.name = "coo." + name}, dense.to_coo());
  }
  file.tensor(region, {.name = "none"}, Tensor::zeros(DType::f64, {2, 2}).to_csr());
  const std::vector<std::uint64_t> pointers{0, 1, 1}, columns{1}, places{1, 0, 2};
  const std::vector<float> one{0.5F};
  file->add_csr(region, {.name = "wide.csr", .shape = {2, 3}},
                CsrArrays<std::uint64_t>{pointers, columns, as_byte_span(one)});
  file->add_coo(region, {.name = "wide.coo", .shape = {2, 1, 3}},
                CooArrays<std::uint64_t>{places, as_byte_span(one)});
  file.commit();
}

void write_quantized(const fs::path& folder) {
  const fs::path plain = folder / "plain";
  {
    File file(plain);
    const RegionId region = file->add_region({.name = "r"});
    std::mt19937_64 random(2);
    file.tensor(region, {.name = "odd"}, normal_tensor({3, 7}, random));
    file.tensor(region, {.name = "w"}, normal_tensor({5, 11}, random));
    file.commit();
  }
  const auto quantize = [&](const char* name, const QuantizationOptions& how) {
    quantize_file(plain, folder / name, how, {.save = options()});
  };
  quantize("quantized.thalia", {.bits = 3, .group_size = 8, .min_elements = 1});
  quantize("quantized_widths.thalia",
           {.bits = 2.5, .group_size = 8, .adaptive = true, .min_elements = 1});
  fs::remove(plain);
}

void write_connections(const fs::path& path) {
  File file(path);
  const std::string longest(40, 'q');
  file->add_region({.name = "in", .n_neurons = 2});
  file->add_region({.name = longest, .n_neurons = 2});
  file.connect("in", longest, true);
  file.connect(longest, "in", false);
  file.connect("in", "in", false);
  file.commit();
}

void write_names(const fs::path& path) {
  File file(path);
  std::string snow = "x";
  for (int i = 0; i < 12; ++i) snow += "\u2603";
  for (const std::string& name :
       {std::string(31, 'a'), std::string(32, 'a'), snow, std::string("~")}) {
    const RegionId region = file->add_region({.name = name});
    file.dense(region, {.name = "", .dtype = DType::u8, .shape = {1}});
    file.dense(region, {.name = std::string("\0nul\0", 5), .dtype = DType::u8, .shape = {1}});
    file.dense(region, {.name = std::string(300, 't'), .dtype = DType::u8, .shape = {1}});
  }
  file.commit();
}

// Whatever a codec or a filter is for; or one chunk.
void write_chunks(const fs::path& path, Codec codec, bool all = true) {
  SaveOptions save = options();
  save.compression.codec = codec;
  save.compression.chunk_bytes = 4096;
  File file(path, save);
  const RegionId region = file->add_region({.name = "r"});
  const auto skewed = [&](DType dtype, std::uint64_t count) {
    Tensor tensor = Tensor::zeros(dtype, {count});
    const std::size_t width = dtype_bits(dtype) / 8;
    std::uint64_t noise = 1;
    for (std::size_t i = 0; i < count; ++i) {
      noise = noise * 6364136223846793005U + 1442695040888963407U;
      std::uint64_t element = noise >> (64 - 8 * (width - 1)) | std::uint64_t{0x3C}
                                                                    << (8 * width - 8);
      if (dtype == DType::i32 || dtype == DType::i64) element = 3 * i + (noise >> 63);
      std::memcpy(tensor.mutable_bytes().data() + i * width, &element, width);
    }
    file.tensor(region, {.name = std::string(dtype_name(dtype))}, tensor);
  };
  skewed(DType::f32, 500);
  if (!all) return file.commit();
  skewed(DType::bf16, 600);
  skewed(DType::f64, 200);
  skewed(DType::i32, 1500);
  skewed(DType::i64, 200);
  file.tensor(region, {.name = "zeros"}, Tensor::zeros(DType::u8, {65536}));
  if (codec == Codec::lz4) {
    // A chunk that shrinks, and one that does not.
    Tensor mixed = Tensor::zeros(DType::u8, {4600});
    std::mt19937_64 random(4);
    for (std::byte& byte : mixed.mutable_bytes().subspan(4096)) byte = std::byte(random());
    file.tensor(region, {.name = "mixed"}, mixed);
  }
  file.dense(region, {.name = "one", .dtype = DType::u8, .shape = {1}});
  file.dense(region, {.name = "nothing", .shape = {0}});
  file.commit();
}

void write_appended(const fs::path& path) {
  // None that the size of the file asks for: an append would choose anew, and leave gaps.
  SaveOptions save = options();
  save.block_log2 = 13;
  {
    File file(path, save);
    const RegionId first = file->add_region({.name = "first", .n_neurons = 2});
    file.dense(first, {.name = "w", .shape = {2, 3}});
    file.dense(first, {.name = "s", .dtype = DType::f16, .shape = {2}, .role = Role::homeostatic});
    file.dense(file->add_region({.name = "second"}), {.name = "gone", .shape = {9}});
    file.connect("first", "second", true);
    file.commit();
  }
  const AppendOptions append{.timestamp = 1'767'225'700,
                             .change = {.output = {.durability = Durability::none}}};
  const Bytes bytes = counting(DType::f32, {3});
  {
    Appender appender(path, append);
    appender.add_tensor(appender.replace_region({.name = "second"}), {.name = "new", .shape = {3}},
                        bytes);
    appender.commit();
  }
  Appender appender(path, append);
  appender.add_tensor(appender.add_region({.name = "third"}), {.name = "t", .shape = {3}}, bytes);
  appender.set_metadata(R"({"appended":true})");
  appender.set_training_steps(2000);
  appender.commit();
}

// One tensor for each way of storing a change; `all`: and what else a delta may hold.
SampleState state(int step, bool all) {
  std::mt19937_64 random(3);
  SampleState out{.regions = {{"a", {}}}, .steps = static_cast<std::uint64_t>(100 + step)};
  Tensor few = normal_tensor({20, 30}, random);
  Tensor half = Tensor::zeros(DType::boolean, {9, 8});
  Tensor moved = normal_tensor({10, 10}, random);
  Tensor low_rank = normal_tensor({13, 11}, random);
  Tensor sparse = Tensor::zeros(DType::f32, {6, 5});
  for (int i = 0; i < step; ++i) {
    few.mutable_as<float>()[i * 100 + 7] = 1.5F;
    half.mutable_bytes()[static_cast<std::size_t>(i) + 3] = std::byte{1};
  }
  for (float& value : moved.mutable_as<float>()) value *= 1 + 1e-4F * static_cast<float>(step);
  for (std::size_t i = 0; i < 143; ++i)
    low_rank.mutable_as<float>()[i] +=
        static_cast<float>(step) * std::sin(float(i / 11)) * std::cos(float(i % 11));
  for (std::size_t i = 0; i < 8; ++i)
    sparse.mutable_as<float>()[i * 3] =
        static_cast<float>(i + 1) * (1 + 1e-5F * static_cast<float>(step));
  auto& a = out.regions["a"];
  a["same"] = {random_tensor(DType::bf16, {9}, random)};
  a["few"] = {few};
  a["flags"] = {half, Role::other};
  a["moved"] = {moved};
  a["low_rank"] = {low_rank};
  if (!all) return out;
  out.regions["b"];
  a["grown"] = {Tensor::zeros(DType::f64, {3 + static_cast<std::uint64_t>(step), 4}), Role::other};
  a["csr"] = {sparse.to_csr()};
  a["coo"] = {sparse.to_coo(), Role::other};
  if (step > 0) out.regions["b"]["new"] = {random_tensor(DType::u8, {5}, random), Role::other};
  out.connections[{"a", "b"}] = moved;
  return out;
}

void write_deltas(const fs::path& folder) {
  save_full(state(0, true), folder / "base.thalia", options());
  save_full(state(0, false), folder / "small_base.thalia", options());
  DeltaOptions delta = delta_options();
  delta.loss.low_rank.emplace(
      LowRankOptions{.bits_per_element = 2, .include = {"low_rank"}, .min_elements = 1});
  save_delta(state(1, false), folder / "small_base.thalia", folder / "small.delta.thalia", delta);
  save_delta(state(1, true), folder / "base.thalia", folder / "one.delta.thalia", delta);
  delta.save.compression.codec = Codec::zstd;
  save_delta(state(2, true), folder / "one.delta.thalia", folder / "two.delta.thalia", delta);
}

// Unused bits after the last element, and a change that is stored as a difference.
void write_packed_delta(const fs::path& folder) {
  SampleState now{.regions = {{"a", {}}}, .steps = 100};
  std::mt19937_64 random(5);
  Tensor packed = Tensor::zeros(DType::u4, {401});
  for (std::byte& byte : packed.mutable_bytes().first(200)) byte = std::byte(random());
  now.regions["a"]["packed"] = {packed, Role::other};
  save_full(now, folder / "packed_base.thalia", options());
  packed.mutable_bytes()[7] ^= std::byte{0x30};
  packed.mutable_bytes()[200] ^= std::byte{0x03};
  now.regions["a"]["packed"] = {packed, Role::other};
  now.steps = 101;
  save_delta(now, folder / "packed_base.thalia", folder / "packed.delta.thalia", delta_options());
}

// Elements of every pattern of bits, a third of which moved by little, and a few by much.
Tensor stepped(const Tensor& base) {
  Tensor out = base.owned();
  const MutableByteSpan bytes = out.mutable_bytes();
  const std::size_t width = dtype_bits(out.dtype()) / 8;
  std::mt19937_64 random(17);
  for (std::size_t i = 0; i < bytes.size(); i += width) {
    const std::uint64_t chance = random();
    if (chance % 3 != 0) continue;
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i, width);
    const std::uint64_t step = 1 + (chance >> 8 & ((1U << (chance >> 4 & 7)) - 1));
    bits = static_cast<std::uint16_t>((chance >> 32 & 1) != 0 ? bits + step : bits - step);
    std::memcpy(bytes.data() + i, &bits, width);
  }
  return out;
}

void write_steps(const fs::path& folder) {
  SampleState now{.regions = {{"a", {}}}, .steps = 100};
  auto& a = now.regions["a"];
  std::mt19937_64 random(16);
  for (const DType dtype :
       {DType::bf16, DType::f16, DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz,
        DType::f8_e5m2fnuz, DType::f8_e8m0, DType::i8, DType::u8, DType::i16, DType::u16})
    a[std::string(dtype_name(dtype))] = {random_tensor(dtype, {7, 30}, random)};
  a["chunks"] = {random_tensor(DType::bf16, {5000}, random)};
  save_full(now, folder / "steps_base.thalia", options());
  for (auto& [name, tensor] : a) tensor.tensor = stepped(tensor.tensor);
  now.steps = 101;
  save_delta(now, folder / "steps_base.thalia", folder / "steps.delta.thalia", delta_options());
}

void write_wrapped(const fs::path& folder) {
  for (const char* ending : {".zst", ".lz4"}) {
    const fs::path wrapped = folder / (std::string("pieces.thalia") + ending);
    compress_checkpoint(
        folder / "pieces.thalia", wrapped,
        {.frame_bytes = 4096, .output = {.durability = Durability::none}, .work = {.threads = 1}});
  }
  compress_checkpoint(
      folder / "one.delta.thalia", folder / "one.delta.thalia.zst",
      {.frame_bytes = 4096, .output = {.durability = Durability::none}, .work = {.threads = 1}});
  write_metadata_file(folder / "pieces.thalia", folder / "pieces.thalia.meta",
                      {.output = {.durability = Durability::none}});
  write_metadata_file(folder / "connections.thalia", folder / "connections.thalia.meta",
                      {.output = {.durability = Durability::none}});
}

void write_all(const fs::path& folder) {
  write_minimal(folder / "minimal.thalia");
  File(folder / "nothing.thalia").commit();
  write_pieces(folder / "pieces.thalia");
  write_dtypes(folder / "dtypes.thalia");
  write_sparse(folder / "sparse.thalia");
  write_quantized(folder);
  write_connections(folder / "connections.thalia");
  write_names(folder / "names.thalia");
  SaveOptions save = options();
  save.leaves = LeafAlgorithm::xxh3_128;
  write_minimal(folder / "xxh3_leaves.thalia", save);
  for (const auto& [name, type] : {std::pair("checksum_none", ChecksumType::none),
                                   std::pair("checksum_sha256", ChecksumType::sha256),
                                   std::pair("checksum_crc32", ChecksumType::crc32)}) {
    save = options();
    save.checksum = type;
    write_minimal(folder / (std::string(name) + ".thalia"), save);
  }
  for (const auto& [name, codec] : {std::pair("zstd", Codec::zstd), std::pair("lz4", Codec::lz4),
                                    std::pair("plane_entropy", Codec::plane_entropy),
                                    std::pair("packed_exponents", Codec::packed_exponents)})
    write_chunks(folder / (std::string(name) + ".thalia"), codec);
  write_chunks(folder / "one_chunk.thalia", Codec::zstd, false);
  write_appended(folder / "appended.thalia");
  write_deltas(folder);
  write_packed_delta(folder);
  write_steps(folder);
  write_wrapped(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_valid FOLDER\n";
    return 2;
  }
  try {
    write_all(argv[1]);
    write_details(argv[1]);
  } catch (const Error& error) {
    std::cerr << "write_valid: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
