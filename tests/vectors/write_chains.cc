// Deltas that change more than elements, and bases that are elsewhere.
#include <algorithm>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "state/delta/sample.h"
#include "thalia/compress.h"
#include "thalia/state/quantization.h"
#include "vectors/valid_file.h"

namespace thalia::test {
namespace {

namespace fs = std::filesystem;

// A base with what a delta may change otherwise than element by element.
SampleState before() {
  std::mt19937_64 random(13);
  SampleState out{.regions = {{"a", {}}, {"b", {}}}, .steps = 200};
  auto& a = out.regions["a"];
  a["narrowed"] = {bits<std::uint32_t>(
      DType::f32, {4, 8},
      {0x3F800000, 0xC0200000, 0x477FE000, 0x477FEF00, 0x477FF000, 0xC788B800, 0x322BCC77,
       0x33800000, 0x33000000, 0x33000001, 0x387FDA40, 0x80000000, 0x7F800000, 0xFF800000,
       0x3F801000, 0x3F803000, 0x3F801008, 0x40490FD0, 0xBDCCCCCD, 0x7E967699, 0x7FA12345,
       0xFFC12345, 0x7F800001, 0xFF8FFFFF, 0x00000000, 0x40000000, 0x44801000, 0x45001000,
       0x45003000, 0x45800C00, 0xC2050000, 0x36EAE18B})};
  a["columns"] = {normal_tensor({6, 40}, random)};
  a["rows"] = {normal_tensor({40, 6}, random)};
  a["corner"] = {normal_tensor({3, 4, 20}, random)};
  a["narrower"] = {normal_tensor({12, 40}, random)};
  a["blocks"] = {long_tensor(140'000), Role::other};
  a["codes"] = {normal_tensor({8, 32}, random)};
  const std::vector<std::uint64_t> pointers{0, 2, 2, 3}, columns{1, 0x1'0000'0003, 0x1'FFFF'FFFF};
  const std::vector<float> values{1.5F, -2.25F, 8};
  const auto wide =
      Tensor::csr(DType::f32, {3, 0x2'0000'0000},
                  CsrArrays<std::uint64_t>{pointers, columns, std::as_bytes(std::span(values))});
  a["wide"] = {wide};
  a["wide.moved"] = {wide};
  out.regions["b"]["gone"] = {normal_tensor({4}, random)};
  out.connections[{"a", "b"}] = normal_tensor({12, 12}, random);
  out.connections[{"b", "a"}] = normal_tensor({12, 12}, random);
  return out;
}

// The same after some steps. `codes` is what came out of them.
SampleState after(const Tensor& codes) {
  SampleState out = before();
  std::mt19937_64 random(14);
  auto& a = out.regions["a"];
  // What the base's numbers become as f16, and one that moved.
  a["narrowed"] = {bits<std::uint16_t>(
      DType::f16, {4, 8},
      {0x3C00, 0xC100, 0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 0x0000, 0x0001, 0x0000, 0x0001, 0x03FF,
       0x8000, 0x7C00, 0xFC00, 0x3C00, 0x3C02, 0x3C01, 0x4248, 0xAE66, 0x7C00, 0x7F09, 0xFE09,
       0x7E00, 0xFE7F, 0x0000, 0x4001, 0x6400, 0x6800, 0x6802, 0x6C00, 0xD028, 0x0075})};
  const auto resized = [](const Tensor& old, std::uint64_t rows, std::uint64_t columns) {
    Tensor fresh = Tensor::zeros(DType::f32, {rows, columns});
    for (std::uint64_t i = 0; i < std::min(rows, old.shape()[0]); ++i)
      for (std::uint64_t j = 0; j < std::min(columns, old.shape()[1]); ++j)
        fresh.mutable_as<float>()[i * columns + j] = old.as<float>()[i * old.shape()[1] + j];
    return fresh;
  };
  Tensor columns = resized(a["columns"].tensor, 6, 43);
  columns.mutable_as<float>()[42] = 0.5F;
  a["columns"] = {columns};
  Tensor rows = resized(a["rows"].tensor, 37, 7);
  rows.mutable_as<float>()[3] = 0.5F;
  a["rows"] = {rows};
  Tensor narrower = resized(a["narrower"].tensor, 12, 30);
  narrower.mutable_as<float>()[3] = 0.5F;
  a["narrower"] = {narrower};
  const Tensor old = a["corner"].tensor;
  Tensor corner = Tensor::zeros(DType::f32, {2, 5, 21});
  for (std::uint64_t i = 0; i < 2; ++i)
    for (std::uint64_t j = 0; j < 4; ++j)
      for (std::uint64_t k = 0; k < 20; ++k)
        corner.mutable_as<float>()[(i * 5 + j) * 21 + k] = old.as<float>()[(i * 4 + j) * 20 + k];
  a["corner"] = {corner};
  Tensor blocks = a["blocks"].tensor.owned();
  for (const std::size_t i : {0U, 65'535U, 131'072U, 139'999U})
    blocks.mutable_bytes()[i] ^= std::byte{0x55};
  a["blocks"] = {blocks, Role::other};
  Tensor changed = codes.owned();
  changed.mutable_as<float>()[100] = 0.25F;
  a["codes"] = {changed};
  Tensor moved = a["wide.moved"].tensor.owned();
  moved.mutable_bytes().back() ^= std::byte{0x80};
  a["wide.moved"] = {moved};
  for (auto& [pair, matrix] : out.connections) matrix.mutable_as<float>()[5] = 0.125F;
  out.regions["b"].clear();
  out.steps = 210;
  return out;
}

void write_changed(const fs::path& folder) {
  const fs::path plain = folder / "plain", base = folder / "changed_base.thalia";
  SaveOptions save = options();
  save.compression = {.codec = Codec::zstd};
  save_full(before(), plain, save);
  quantize_file(plain, base, {.bits = 6, .group_size = 32, .include = {"codes"}, .min_elements = 1},
                {.save = save});
  fs::remove(plain);
  const ChainReader chain = ChainReader::open(base);
  const auto view = chain.reader().region("a").at("codes");
  StateSource state = state_source(after(Tensor::from(view).to_dense().owned()));
  std::swap(state.connections[0], state.connections[1]);  // as an append may number them
  DeltaOptions delta = delta_options();
  delta.save.output.durability = Durability::none;
  write_delta(state, chain, folder / "changed.delta.thalia", delta);
}

// Deltas whose bases are elsewhere, or are wrapped.
void write_bases(const fs::path& folder) {
  const fs::path elsewhere = folder.parent_path() / "bases";
  fs::create_directories(elsewhere);
  std::mt19937_64 random(15);
  SampleState state{.regions = {{"a", {}}}, .steps = 300};
  state.regions["a"]["w"] = {normal_tensor({16, 16}, random)};
  // A file of this name lies beside the delta too, and is another.
  save_full(state, elsewhere / "minimal.thalia", options());
  save_full(state, folder / "near_base.thalia", options());
  compress_checkpoint(
      folder / "near_base.thalia", folder / "near_base.thalia.zst",
      {.frame_bytes = 4096, .output = {.durability = Durability::none}, .work = {.threads = 1}});
  state.regions["a"]["w"].tensor.mutable_as<float>()[17] = 1;
  state.steps = 301;
  save_delta(state, elsewhere / "minimal.thalia", folder / "elsewhere.delta.thalia",
             delta_options());
  save_delta(state, folder / "near_base.thalia", folder / "near.delta.thalia", delta_options());
  save_delta(state, folder / "near_base.thalia.zst", folder / "wrapped_base.delta.thalia",
             delta_options());
}

// Numbers of 8 or 16 bits, some of which are another in their lowest bit.
Tensor nudged(const Tensor& base, std::size_t each) {
  Tensor out = base.owned();
  const std::size_t width = dtype_bits(out.dtype()) / 8;
  const MutableByteSpan bytes = out.mutable_bytes();
  for (std::size_t i = 0; i < bytes.size(); i += each * width) bytes[i] ^= std::byte{1};
  return out;
}

// A packed delta with values in every column, and what comes out of it.
void write_brief(const fs::path& folder) {
  std::mt19937_64 random(18);
  SampleState now{.regions = {{"a", {}}, {"b", {}}}, .steps = 100};
  auto& a = now.regions["a"];
  auto& b = now.regions["b"];
  const Tensor weights = normal_tensor({20, 30}, random);
  for (const char* name : {"a.weight", "weight"})
    a[name] = {random_tensor(DType::bf16, {7, 30}, random)};
  a["bytes"] = {random_tensor(DType::i8, {210}, random)};
  a["listed"] = {weights};
  a["moved"] = {weights, Role::optimizer};
  a["thresholds"] = {weights, Role::homeostatic};
  b["low_rank"] = {weights};
  b["same"] = {weights};
  b["sparse"] = {Tensor::zeros(DType::f32, {9, 9}).to_csr()};
  now.connections[{"a", "b"}] = weights;
  save_full(now, folder / "brief_base.thalia", options());

  for (const char* name : {"a.weight", "weight", "bytes"})
    a[name].tensor = nudged(a[name].tensor, 9);
  a["listed"].tensor = weights.owned();
  a["listed"].tensor.mutable_as<float>()[7] = 1;
  a["moved"].tensor = weights.owned();
  for (float& value : a["moved"].tensor.mutable_as<float>()) value *= 1.001F;
  b["low_rank"].tensor = weights.owned();
  for (std::size_t i = 0; i < 600; ++i)
    b["low_rank"].tensor.mutable_as<float>()[i] +=
        static_cast<float>(i / 30) * static_cast<float>(i % 30);
  Tensor sparse = Tensor::zeros(DType::f32, {9, 9});
  sparse.mutable_as<float>()[40] = 1;
  b["sparse"].tensor = sparse.to_csr();
  b["whole"] = {random_tensor(DType::u8, {50}, random), Role::other};
  now.steps = 101;
  now.metadata = R"({"step":101})";
  DeltaOptions delta = delta_options();
  delta.pack = true;
  delta.loss.low_rank.emplace(
      LowRankOptions{.bits_per_element = 2, .include = {"low_rank"}, .min_elements = 1});
  const fs::path packed = folder / "brief_packed.delta.thalia";
  save_delta(now, folder / "brief_base.thalia", packed, delta);
  decompress_checkpoint(packed, folder / "brief.delta.thalia",
                        {.output = {.durability = Durability::none}});
}

}  // namespace

void write_chains(const fs::path& folder) {
  write_changed(folder);
  write_bases(folder);
  write_brief(folder);
}

}  // namespace thalia::test
