// Checkpoints under the keys base, next (a delta of base), small (quantized), store (a delta that
// is not compressed), thin (sparse tensors), thinner (a delta of thin), wide and products (a delta
// of low rank of wide), and what each tensor restores to in KEY.expected/NAME.
#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "parts.h"
#include "thalia/formats/compressor.h"

namespace witness::mckp {

namespace {

using namespace thalia;

// Floats around zero, and their upper halves.
std::vector<std::uint32_t> floats(std::size_t count) {
  std::vector<std::uint32_t> out(count);
  std::uint64_t state = 7;
  for (std::uint32_t& bits : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto noise = static_cast<std::uint32_t>(state >> 33);
    bits = (noise & 0x807FFFFF) | (120 + noise % 7) << 23;
  }
  return out;
}

Checkpoint sample() {
  const std::vector<std::uint32_t> f32 = floats(3000);
  std::vector<std::uint16_t> bf16;
  for (const std::uint32_t bits : f32) bf16.push_back(static_cast<std::uint16_t>(bits >> 16));
  const std::vector<std::int64_t> steps{1, -2, 300, 1 << 30};
  Checkpoint out;
  out.training_step = 1000;
  out.metadata["run"] = "witness";
  out.tensors["bf16"] = Tensor::copy_of(DType::bf16, {50, 60}, as_byte_span(bf16));
  out.tensors["empty"] = Tensor::copy_of(DType::f32, {0, 4}, {});
  out.tensors["f32"] = Tensor::copy_of(DType::f32, {3000}, as_byte_span(f32));
  out.tensors["i64"] = Tensor::copy_of(DType::i64, {2, 2}, as_byte_span(steps));
  out.tensors["scalar"] =
      Tensor::copy_of(DType::f32, {}, as_byte_span(f32).first(sizeof(std::uint32_t)));
  return out;
}

Checkpoint next_step() {
  Checkpoint out = sample();
  std::vector<std::uint32_t> f32 = floats(3000);
  for (std::uint32_t i = 0; i < f32.size(); i += 3) f32[i] ^= 1 + i % 5;
  out.tensors["f32"] = Tensor::copy_of(DType::f32, {3000}, as_byte_span(f32));
  out.training_step = 1010;
  return out;
}

// Every third number is there, and one more each with padding in front, and with wide indices.
Checkpoint thin_step(std::uint32_t changed) {
  std::vector<std::uint32_t> f32 = floats(3000);
  for (std::size_t i = 0; i < f32.size(); ++i)
    if (i % 3 != 0) f32[i] = 0;
  f32[300] ^= changed;
  const std::vector<std::uint64_t> indices{3, 1ull << 40, 5, 2};
  const std::vector<double> numbers{0, 1.5, 0, -2, 0, 3};
  Checkpoint out;
  out.tensors["csr"] = Tensor::copy_of(DType::f32, {50, 60}, as_byte_span(f32)).to_csr();
  out.tensors["coo"] = Tensor::copy_of<double>({1, 2, 3}, numbers).to_coo();
  out.tensors["dense"] = Tensor::copy_of<double>({6}, numbers);
  out.tensors["wide"] =
      Tensor::coo<std::uint64_t>(DType::f32, {(1ull << 40) + 1, 6},
                                 {.indices = indices, .values = as_byte_span(f32).first(8)});
  return out;
}

// Matrices that move by an outer product.
Checkpoint wide_step(float moved) {
  constexpr std::uint64_t kRows = 72, kColumns = 64;
  std::vector<float> f32(kRows * kColumns);
  std::vector<double> f64(kRows * kColumns);
  for (std::uint64_t i = 0; i < f32.size(); ++i) {
    const auto row = static_cast<float>(i / kColumns), column = static_cast<float>(i % kColumns);
    f32[i] = 1 / (row + 1.5f) + moved * (row - 30) * (column + 7);
    f64[i] = static_cast<double>(column) / 7 - static_cast<double>(f32[i]);
  }
  Checkpoint out;
  out.tensors["f32"] = Tensor::copy_of<float>({kRows, kColumns}, f32);
  out.tensors["f64"] = Tensor::copy_of<double>({kRows, kColumns}, f64);
  return out;
}

void write_expected(const CheckpointCompressor& compressor, const LocalStorage& storage,
                    const std::string& key) {
  const auto folder = storage.folder() / (key + ".expected");
  std::filesystem::create_directory(folder);
  for (const auto& [name, tensor] : compressor.load(key).tensors) {
    const ByteSpan bytes = tensor.bytes();
    std::ofstream file(folder / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file) throw std::runtime_error("cannot write " + (folder / name).string());
  }
}

void write_all(const std::string& folder) {
  const auto storage =
      std::make_shared<LocalStorage>(folder, OutputOptions{.durability = Durability::none});
  const CheckpointCompressor plain({.compression = {.codec = Codec::zstd}}, storage);
  plain.save(sample(), "base");
  plain.save(next_step(), "next", "base");
  const CheckpointCompressor stored(
      {.compression = {.codec = Codec::none}, .content_digests = LeafAlgorithm::sha256}, storage);
  stored.save(next_step(), "store", "base");
  const CheckpointCompressor lossy(
      {.compression = {.codec = Codec::zstd},
       .quantization = QuantizationConfig{.bits = 3, .exclude = {"bf16"}}},
      storage);
  lossy.save(sample(), "small");
  plain.save(thin_step(0), "thin");
  plain.save(thin_step(3), "thinner", "thin");
  plain.save(wide_step(0), "wide");
  const CheckpointCompressor products({.low_rank_deltas = LowRankOptions{.max_rank = 3}}, storage);
  products.save(wide_step(1e-4f), "products", "wide");
  for (const char* key : {"base", "next", "store", "small", "thin", "thinner", "wide", "products"})
    write_expected(plain, *storage, key);
}

}  // namespace

void run(const std::filesystem::path& folder) {
  write_all(folder);
}

}  // namespace witness::mckp
