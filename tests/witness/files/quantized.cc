// Files with quantized tensors, or a chain of changes of low rank, and beside them the elements
// that the library restores.
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "parts.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/state/quantization.h"
#include "thalia/state/tensor_value.h"
#include "thalia/writer.h"

namespace witness::quantized {

using namespace thalia;

namespace {

constexpr std::uint64_t kElements = 1001;

// Numbers of many sizes, both signs among them: a linear congruential generator, and a wave.
template <typename T>
std::vector<T> numbers(double scale) {
  std::vector<T> out(kElements);
  std::uint64_t state = 7;
  for (std::size_t i = 0; i < out.size(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double uniform = static_cast<double>(state >> 11) * 0x1p-53;
    out[i] = static_cast<T>((uniform - 0.4) * scale * std::exp2(std::sin(double(i) / 50) * 6));
  }
  return out;
}

void write(const std::filesystem::path& folder, const std::string& name,
           const QuantizationOptions& options, Codec codec) {
  const std::filesystem::path plain = folder / "plain";
  SaveOptions save{.leaves = LeafAlgorithm::sha256, .timestamp = 1767225600};
  save.file_uuid.emplace();
  Writer writer(plain, save);
  const RegionId region = writer.add_region({.name = "r"});
  const auto f32 = numbers<float>(1), huge = numbers<float>(1e36F), tiny = numbers<float>(1e-43F);
  const auto f64 = numbers<double>(1e-200);
  // The same bits as halves: most exponents occur, and those of infinities and NaN do not.
  std::vector<std::uint16_t> halves(kElements);
  for (std::size_t i = 0; i < halves.size(); ++i)
    halves[i] = static_cast<std::uint16_t>(i * 77 % 0x7000 | (i % 3 == 0 ? 0x8000 : 0));
  const auto add = [&](const char* of, DType dtype, ByteSpan bytes) {
    writer.add_tensor(region, {.name = of, .dtype = dtype, .shape = {7, 143}}, bytes);
  };
  add("f32", DType::f32, as_byte_span(f32));
  add("huge", DType::f32, as_byte_span(huge));
  add("tiny", DType::f32, as_byte_span(tiny));
  add("f64", DType::f64, as_byte_span(f64));
  add("f16", DType::f16, as_byte_span(halves));
  add("bf16", DType::bf16, as_byte_span(halves));
  writer.commit();
  save.compression.codec = codec;
  quantize_file(plain, folder / (name + ".thalia"), options, {.save = save});
  std::filesystem::remove(plain);
  const Reader reader = Reader::open(folder / (name + ".thalia"));
  for (const char* of : {"f32", "huge", "tiny", "f64", "f16", "bf16"}) {
    const Tensor restored = Tensor::from(reader.tensor(of));
    std::ofstream file(folder / (name + "." + of), std::ios::binary);
    file.write(reinterpret_cast<const char*>(restored.bytes().data()),
               static_cast<std::streamsize>(restored.bytes().size()));
  }
}

constexpr std::uint64_t kRows = 48, kColumns = 40;

// Step by step a product of two waves more, in every type.
void write_chain(const std::filesystem::path& folder) {
  const SaveOptions save{.leaves = LeafAlgorithm::sha256, .timestamp = 1};
  const auto path = [&](int step) { return folder / (std::to_string(step) + ".delta"); };
  for (int step = 0; step <= 2; ++step) {
    std::vector<double> f64(kRows * kColumns);
    for (std::size_t i = 0; i < f64.size(); ++i) {
      const auto row = static_cast<double>(i / kColumns),
                 column = static_cast<double>(i % kColumns);
      f64[i] =
          std::sin(double(i * i)) + 0.1 * step * std::sin(row / 3 + step) * std::cos(column / 7);
    }
    const std::vector<float> f32(f64.begin(), f64.end());
    std::vector<std::uint16_t> bf16(f32.size()), f16(f32.size());
    for (std::size_t i = 0; i < f32.size(); ++i) {
      bf16[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(f32[i]) >> 16);
      // The numbers are from 1 to 2: the exponent is 15.
      f16[i] = static_cast<std::uint16_t>(15 << 10 | static_cast<int>((f32[i] + 2) * 200));
    }
    const std::filesystem::path plain = step == 0 ? path(0) : folder / "plain";
    Writer writer(plain, save);
    const RegionId region = writer.add_region({.name = "r"});
    const auto add = [&](const char* of, DType dtype, ByteSpan bytes) {
      writer.add_tensor(region, {.name = of, .dtype = dtype, .shape = {kRows, kColumns}}, bytes);
    };
    add("f32", DType::f32, as_byte_span(f32));
    add("f64", DType::f64, as_byte_span(f64));
    add("f16", DType::f16, as_byte_span(f16));
    add("bf16", DType::bf16, as_byte_span(bf16));
    writer.commit();
    if (step == 0) continue;
    DeltaOptions options{.save = {.leaves = LeafAlgorithm::sha256,
                                  .compression = {.codec = Codec::none},
                                  .timestamp = 1},
                         .pack = false};
    options.loss.low_rank.emplace(LowRankOptions{.bits_per_element = 1.5, .min_elements = 1});
    write_delta(state_source(ChainReader::open(plain)), ChainReader::open(path(step - 1)),
                path(step), options);
  }
  const ChainReader chain = ChainReader::open(path(2));
  for (const char* of : {"f32", "f64", "f16", "bf16"}) {
    const Tensor restored = chain.read(chain.reader().tensor(of));
    std::ofstream file(folder / (std::string("2.") + of), std::ios::binary);
    file.write(reinterpret_cast<const char*>(restored.bytes().data()),
               static_cast<std::streamsize>(restored.bytes().size()));
  }
}

}  // namespace

void run(const std::filesystem::path& folder) {
  const auto store = Codec::none;
  write(folder, "bits1", {.bits = 1, .group_size = 8, .min_elements = 1}, store);
  write(folder, "bits3", {.bits = 3, .group_size = 64, .min_elements = 1}, store);
  write(folder, "bits5", {.bits = 5, .group_size = 0, .min_elements = 1}, store);
  write(folder, "bits8", {.bits = 8, .group_size = 128, .min_elements = 1}, store);
  write(folder, "mixed", {.bits = 2.5, .group_size = 32, .adaptive = true, .min_elements = 1},
        store);
}

void run_low_rank(const std::filesystem::path& folder) {
  write_chain(folder);
}

}  // namespace witness::quantized
