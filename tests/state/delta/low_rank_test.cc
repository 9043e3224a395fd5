// Changes of matrices as products of low rank: how near they come, what is left exact, and what
// hostile payloads are.
#include "thalia/state/delta.h"

#include <algorithm>
#include <cstring>

#include "boost_test.h"
#include "codec/lossy/code_packing.h"
#include "codec/lossy/low_rank.h"
#include "codec/lossy/quantize.h"
#include "container/read/low_rank_arrays.h"
#include "format/low_rank.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"
#include "state/low_rank/low_rank_change.h"
#include "state/low_rank/truncated_svd.h"
#include "state/quantize/quantization_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(low_rank)

namespace {

constexpr std::uint64_t kRows = 60, kColumns = 90;

// Products with singular values that fall by halves, and a little of everything besides.
std::vector<double> low_rank_numbers(std::uint64_t rank, double noise) {
  std::vector<double> out = normal_numbers(kRows * kColumns, noise, 99);
  for (std::uint64_t k = 0; k < rank; ++k) {
    const auto left = normal_numbers(kRows, 1, 2 * k + 10);
    const auto right = normal_numbers(kColumns, std::ldexp(0.1, -static_cast<int>(k)), 2 * k + 11);
    for (std::uint64_t i = 0; i < kRows; ++i)
      for (std::uint64_t j = 0; j < kColumns; ++j) out[i * kColumns + j] += left[i] * right[j];
  }
  return out;
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

double norm(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

Tensor matrix(DType dtype, const std::vector<double>& numbers) {
  return tensor_of(dtype, {kRows, kColumns}, numbers);
}

DeltaResult save_delta(const std::filesystem::path& base, const std::filesystem::path& now,
                       const std::filesystem::path& target, const LowRankOptions& options,
                       std::vector<std::string> exclude = {}) {
  return write_delta(state_source(ChainReader::open(now)), ChainReader::open(base), target,
                     {.loss = {.exclude = std::move(exclude), .low_rank = options},
                      .save = {.timestamp = 1767225600,
                               .output = {.durability = Durability::none},
                               .work = {.threads = 2}}});
}

codec::LowRankFactors read_within(const format::TensorEntry& entry, ByteSpan payload,
                                  std::uint64_t most) {
  io::MemoryBudget budget({.max_allocation_bytes = most}, payload.size());
  return container::read_low_rank(entry, payload, budget);
}

Tensor read(const std::filesystem::path& path, std::string_view name) {
  const ChainReader chain = ChainReader::open(path);
  return chain.read(chain.reader().tensor(name));
}

}  // namespace

BOOST_AUTO_TEST_CASE(adds_products_to_any_part_of_a_matrix) {
  codec::LowRankFactors factors{.rows = 3, .columns = 700, .rank = 2, .left = {}, .right = {}};
  factors.left = normal_numbers(6, 1);
  factors.right = normal_numbers(1400, 1, 2);
  const std::vector<double> base = normal_numbers(2100, 1, 3);
  std::vector<double> expected(2100);
  for (std::size_t e = 0; e < expected.size(); ++e) {
    double change = 0;
    for (std::size_t k = 0; k < 2; ++k)
      change += factors.left[k * 3 + e / 700] * factors.right[k * 700 + e % 700];
    expected[e] = base[e] + change;
  }
  for (const auto& [first, count] : {std::pair(0, 2100), std::pair(5, 1), std::pair(699, 2),
                                     std::pair(600, 1300), std::pair(2099, 1), std::pair(7, 0)}) {
    std::vector<double> part(base.begin() + first, base.begin() + first + count);
    codec::add_low_rank(DType::f64, factors, static_cast<std::uint64_t>(first),
                        std::as_writable_bytes(std::span(part)));
    BOOST_TEST(std::equal(part.begin(), part.end(), expected.begin() + first));
  }
  // What is too large stays finite.
  factors = {.rows = 1, .columns = 2, .rank = 1, .left = {1e300}, .right = {1e10, -1e10}};
  std::vector<std::byte> halves(4);
  codec::add_low_rank(DType::f16, factors, 0, halves);
  BOOST_TEST(hex(halves) == "ff7bfffb");
}

BOOST_AUTO_TEST_CASE(finds_the_leading_singular_vectors) {
  const auto numbers = low_rank_numbers(3, 0);
  const std::vector<float> given(numbers.begin(), numbers.end());
  for (const std::uint64_t most : {3U, 10U, 200U}) {
    const state::TruncatedSvd svd = state::truncated_svd(given, kRows, kColumns, most, 1);
    BOOST_TEST(svd.rank >= 3u);
    BOOST_TEST(svd.rank <= std::min(most, kRows));
    std::vector<double> made(numbers.size());
    for (std::uint64_t k = 0; k < svd.rank; ++k)
      for (std::uint64_t i = 0; i < kRows; ++i)
        for (std::uint64_t j = 0; j < kColumns; ++j)
          made[i * kColumns + j] += svd.left[k * kRows + i] * svd.right[k * kColumns + j];
    BOOST_TEST(norm(made, numbers) < 1e-5 * norm(numbers, std::vector<double>(numbers.size())));
  }
  BOOST_TEST(state::truncated_svd(std::vector<float>(20), 4, 5, 3, 1).rank == 0u);
  BOOST_TEST(state::truncated_svd({}, 0, 5, 3, 1).rank == 0u);
}

BOOST_AUTO_TEST_CASE(gives_back_a_change_within_the_error_that_it_reports) {
  const std::vector<double> old = normal_numbers(kRows * kColumns, 0.5);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const TemporaryFolder folder;
    const Tensor before = matrix(dtype, old);
    const Tensor after = matrix(dtype, sum(old, low_rank_numbers(4, 1e-4)));
    write_layer(folder / "0.thalia", {{"w", before}});
    write_layer(folder / "1.thalia", {{"w", after}});
    const DeltaResult result =
        save_delta(folder / "0.thalia", folder / "1.thalia", folder / "d", {.bits_per_element = 2});
    BOOST_TEST(verify(folder / "d").ok());
    BOOST_TEST_REQUIRE(result.low_rank.size() == 1u);
    const LowRankReport& report = result.low_rank.front();
    const auto made = numbers_of(read(folder / "d", "w"));
    const double lost = norm(made, numbers_of(after));
    BOOST_TEST(
        std::fabs(report.relative_error / (lost / norm(numbers_of(before), numbers_of(after))) -
                  1) < 1e-9);
    BOOST_TEST(std::fabs(report.rms_error / (lost / std::sqrt(kRows * kColumns)) - 1) < 1e-9);
    BOOST_TEST(report.relative_error < 0.1);
    BOOST_TEST(report.name == "w");
    BOOST_TEST(report.rank >= 4u);
    BOOST_TEST(report.stored_bytes < before.bytes().size() / 2);
    const ResolveResult whole = resolve(folder / "d", folder / "full");
    BOOST_TEST(whole.depth == 1u);
    BOOST_TEST(verify(folder / "full").ok());
    BOOST_TEST(numbers_of(Tensor::from(layer_tensor(folder / "full", "w"))) == made);
    BOOST_TEST(Reader::open(folder / "full").metadata_json().find("\"lossy_generation\":1") !=
               std::string_view::npos);
  }
}

BOOST_AUTO_TEST_CASE(spends_more_for_less_error) {
  const TemporaryFolder folder;
  const std::vector<double> old = normal_numbers(kRows * kColumns, 0.5);
  write_layer(folder / "0", {{"w", matrix(DType::f32, old)}});
  write_layer(folder / "1", {{"w", matrix(DType::f32, sum(old, low_rank_numbers(10, 1e-3)))}});
  double error = 1;
  for (const double bits : {0.3, 0.6, 1.2, 2.5}) {
    const auto result =
        save_delta(folder / "0", folder / "1", folder / "d", {.bits_per_element = bits});
    BOOST_TEST_REQUIRE(result.low_rank.size() == 1u);
    BOOST_TEST(result.low_rank[0].relative_error < error);
    error = result.low_rank[0].relative_error;
    // Codes within the budget; header and parameters besides.
    const double codes = bits * kRows * kColumns / 8;
    BOOST_TEST(static_cast<double>(result.low_rank[0].stored_bytes) <=
               codes + 64 + 8 + 33.0 * result.low_rank[0].rank);
  }
}

BOOST_AUTO_TEST_CASE(errors_do_not_add_up_along_a_chain) {
  const TemporaryFolder folder;
  std::vector<double> numbers = normal_numbers(kRows * kColumns, 0.5);
  write_layer(folder / "0", {{"w", matrix(DType::f32, numbers)}});
  std::string base = "0";
  for (int i = 1; i <= 6; ++i) {
    numbers = sum(numbers, low_rank_numbers(2, 1e-4));
    const std::string now = std::to_string(i), target = now + ".delta";
    write_layer(folder / now, {{"w", matrix(DType::f32, numbers)}});
    const auto result =
        save_delta(folder / base, folder / now, folder / target, {.bits_per_element = 2});
    BOOST_TEST_REQUIRE(result.low_rank.size() == 1u);
    BOOST_TEST(verify(folder / target).ok());
    BOOST_TEST(norm(numbers_of(read(folder / target, "w")), numbers) / std::sqrt(kRows * kColumns) <
               0.01);
    base = target;
  }
}

BOOST_AUTO_TEST_CASE(leaves_exact_what_has_to_be_or_gains_nothing) {
  const TemporaryFolder folder;
  const std::vector<double> old = normal_numbers(kRows * kColumns, 0.5);
  const std::vector<double> now = sum(old, low_rank_numbers(2, 1e-4));
  std::vector<double> with_nan = now, changed = old;
  with_nan[7] = std::nan("");
  changed[70] = 12;
  const auto layer = [&](const std::vector<double>& numbers, const std::vector<double>& nan,
                         const std::vector<double>& one) {
    const Tensor tensor = matrix(DType::f32, numbers);
    return std::vector<NamedTensor>{
        {"a.weight", tensor},
        {"b.exp_avg", tensor},
        {"c.state", tensor, Role::optimizer},
        {"d.flat", tensor_of(DType::f32, {kRows * kColumns}, numbers)},
        {"e.nan", matrix(DType::f32, nan)},
        {"f.one", matrix(DType::f32, one)},
        {"g.same", matrix(DType::f32, old)},
        {"h.excluded", tensor},
    };
  };
  write_layer(folder / "0", layer(old, old, old));
  write_layer(folder / "1", layer(now, with_nan, changed));
  const auto result =
      save_delta(folder / "0", folder / "1", folder / "d", {.bits_per_element = 2}, {"h.*"});
  BOOST_TEST(verify(folder / "d").ok());
  BOOST_TEST_REQUIRE(result.low_rank.size() == 1u);
  BOOST_TEST(result.low_rank[0].name == "a.weight");
  BOOST_TEST(result.same == 1u);
  for (const char* name :
       {"b.exp_avg", "c.state", "d.flat", "e.nan", "f.one", "g.same", "h.excluded"})
    BOOST_TEST(bool(read(folder / "d", name) == Tensor::from(layer_tensor(folder / "1", name))));
  // Where too much would be lost, nothing is.
  const auto strict = save_delta(folder / "0", folder / "1", folder / "d",
                                 {.bits_per_element = 2, .max_relative_error = 1e-9});
  BOOST_TEST(strict.low_rank.empty());
  BOOST_TEST(
      bool(read(folder / "d", "a.weight") == Tensor::from(layer_tensor(folder / "1", "a.weight"))));
}

BOOST_AUTO_TEST_CASE(respects_the_bound_on_losses) {
  const TemporaryFolder folder;
  const std::vector<double> old = normal_numbers(kRows * kColumns, 0.5);
  write_layer(folder / "0", {{"w", matrix(DType::f32, old)}});
  Writer writer(folder / "1", quiet_save());
  writer.set_metadata(R"({"lossy_generation":3,"max_lossy_generations":3})");
  const Tensor now = matrix(DType::f32, sum(old, low_rank_numbers(2, 0)));
  writer.add_tensor(writer.add_region({.name = "layer"}), {.name = "w", .shape = now.shape()},
                    now.bytes());
  writer.commit();
  BOOST_CHECK_EXCEPTION(save_delta(folder / "0", folder / "1", folder / "d", {}), UsageError,
                        says(ErrorCode::wrong_state, "lossy_generation", "got 4", "at most 3"));
  BOOST_TEST(!std::filesystem::exists(folder / "d"));
}

BOOST_AUTO_TEST_CASE(refuses_options_that_make_no_sense) {
  const auto refused = [](const LowRankOptions& options, const char* field) {
    BOOST_CHECK_EXCEPTION(state::check_low_rank(options), UsageError,
                          says(ErrorCode::bad_argument, field));
  };
  refused({.bits_per_element = 0}, "bits_per_element");
  refused({.bits_per_element = double(NAN)}, "bits_per_element");
  refused({.max_rank = 0}, "max_rank");
  refused({.max_relative_error = 1.5}, "max_relative_error");
  refused({.max_generations = std::uint16_t{0}}, "max_generations");
}

// The example of docs/format/deltas.md, "low_rank_delta".
BOOST_AUTO_TEST_CASE(makes_of_the_documents_example_what_the_document_says) {
  format::LowRankHeader header{};
  header.rank = 1;
  header.lossy_generation = 1;
  header.max_lossy_generations = 10;
  header.code_length = 2;
  const std::vector<double> parameters = {1, 1, 0, 0.5};
  std::vector<std::byte> payload(106);
  std::memcpy(payload.data(), &header, sizeof header);
  payload[64] = std::byte{2};
  std::memcpy(payload.data() + 72, parameters.data(), 32);
  payload[104] = std::byte{0x08};
  payload[105] = std::byte{0x34};
  format::TensorEntry entry{};
  entry.shape[0] = 2;
  entry.shape[1] = 3;
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  codec::add_low_rank(DType::f32, read_within(entry, payload, 1 << 20), 0,
                      std::as_writable_bytes(std::span(numbers)));
  BOOST_TEST(numbers == (std::vector<float>{1, 2.5F, 4.5F, 4, 6.5F, 10.5F}));
}

BOOST_AUTO_TEST_CASE(reads_codes_of_any_number_and_width) {
  constexpr std::uint64_t kMany = 9'003, kFew = 5, kMemory = (kMany + kFew) * sizeof(double);
  for (unsigned bits = 1; bits <= codec::kMaxQuantizedBits; ++bits) {
    std::vector<std::uint8_t> codes(kMany + kFew);
    for (std::size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<std::uint8_t>(i * 7 % (1u << bits));
    const std::uint64_t left = codec::packed_bytes(kMany, bits);
    format::LowRankHeader header{};
    header.rank = 1;
    header.lossy_generation = 1;
    header.max_lossy_generations = 10;
    header.code_length = left + codec::packed_bytes(kFew, bits);
    std::vector<std::byte> payload(104 + header.code_length);
    std::memcpy(payload.data(), &header, sizeof header);
    payload[64] = static_cast<std::byte>(bits);
    std::memcpy(payload.data() + 72, std::vector<double>{1, 2, 3, 0.5}.data(), 32);
    codec::pack_codes(bits, std::span(codes).first(kMany),
                      MutableByteSpan(payload).subspan(104, left));
    codec::pack_codes(bits, std::span(codes).last(kFew),
                      MutableByteSpan(payload).subspan(104 + left));
    format::TensorEntry entry{};
    entry.shape[0] = kMany;
    entry.shape[1] = kFew;
    const codec::LowRankFactors factors = read_within(entry, payload, kMemory);
    for (std::size_t i = 0; i < codes.size(); ++i)
      BOOST_TEST_REQUIRE((i < kMany ? factors.left[i] == 1 + 2 * codes[i]
                                    : factors.right[i - kMany] == 3 + 0.5 * codes[i]));
    BOOST_CHECK_THROW(read_within(entry, payload, kMemory - 1), FormatError);
  }
}

BOOST_AUTO_TEST_CASE(factors_of_all_links_count_together) {
  const TemporaryFolder folder;
  std::vector<double> numbers = normal_numbers(kRows * kColumns, 0.5);
  write_layer(folder / "0", {{"w", matrix(DType::f32, numbers)}});
  constexpr int kLinks = 4;
  for (int i = 1; i <= kLinks; ++i) {
    numbers = sum(numbers, low_rank_numbers(3, 0));
    write_layer(folder / "now", {{"w", matrix(DType::f32, numbers)}});
    const std::string base = i == 1 ? "0" : std::to_string(i - 1) + ".delta";
    const DeltaResult result =
        save_delta(folder / base, folder / "now", folder / (std::to_string(i) + ".delta"),
                   {.bits_per_element = 1});
    BOOST_TEST_REQUIRE(result.low_rank.size() == 1u);
    BOOST_TEST(result.low_rank[0].rank >= 3u);
  }
  const auto within = [&](std::uint64_t bytes) {
    ChainOptions options;
    options.read.input.limits.max_allocation_bytes = bytes;
    const ChainReader chain =
        ChainReader::open(folder / (std::to_string(kLinks) + ".delta"), options);
    return chain.read(chain.reader().tensor("w"));
  };
  // What one link takes: three factors, of rows and columns. The tensor itself counts too.
  constexpr std::uint64_t kTensor = kRows * kColumns * sizeof(float);
  constexpr std::uint64_t kLink = 3 * (kRows + kColumns) * sizeof(double);
  BOOST_TEST(bool(within(100 * kTensor) == read(folder / "4.delta", "w")));
  BOOST_CHECK_EXCEPTION(within(kTensor + (kLinks - 1) * kLink), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(refuses_payloads_that_break_a_rule) {
  const std::vector<double> old = normal_numbers(kRows * kColumns, 0.5);
  const Tensor before = matrix(DType::f32, old);
  const Tensor after = matrix(DType::f32, sum(old, low_rank_numbers(3, 1e-3)));
  const auto change = state::low_rank_change(DType::f32, before.shape(), before.bytes(),
                                             after.bytes(), {.bits_per_element = 1}, {1, 10}, 1);
  BOOST_TEST_REQUIRE(change.has_value());
  format::TensorEntry entry{};
  entry.shape[0] = kRows;
  entry.shape[1] = kColumns;
  const auto read = [&](ByteSpan payload) { return read_within(entry, payload, 1 << 20); };
  std::vector<std::byte> made(before.bytes().begin(), before.bytes().end());
  codec::add_low_rank(DType::f32, read(change->payload), 0, made);
  BOOST_TEST(bool(made == change->result));
  BOOST_CHECK_THROW(read_within(entry, change->payload, 100), FormatError);
  for (std::size_t length = 0; length < change->payload.size(); ++length)
    BOOST_CHECK_THROW(read(ByteSpan(change->payload).first(length)), FormatError);
  const std::uint64_t rank = change->report.rank;
  const std::uint64_t parameters = (64 + rank + 7) / 8 * 8;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < change->payload.size(); ++at) {
    for (const int value : {0, 1, 0x80, 0xFF}) {
      std::vector<std::byte> damaged = change->payload;
      if (damaged[at] == static_cast<std::byte>(value)) continue;
      damaged[at] = static_cast<std::byte>(value);
      try {
        const codec::LowRankFactors factors = read(damaged);
        codec::add_low_rank(DType::f32, factors, 0, made);
        // Bounds, errors, parameters and codes may be others; counts, widths and zeros not.
        const bool may = (at >= 4 && at < 8) || (at >= 16 && at < 40) || at >= parameters;
        BOOST_TEST_REQUIRE(may, "byte " << at << " as " << value);
      } catch (const FormatError&) {
        ++refused;
      }
    }
  }
  BOOST_TEST(refused > 100u);
}

BOOST_AUTO_TEST_SUITE_END()
