// Deltas of low rank. docs/format/mckp.md, "Low rank".
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/fail.h"
#include "boost_test.h"
#include "format/low_rank.h"
#include "formats/mckp/format.h"
#include "formats/mckp/parts.h"
#include "formats/mckp/samples.h"
#include "support/errors.h"
#include "thalia/formats/compressor.h"

using namespace thalia;
using test::NamedTensors;

BOOST_AUTO_TEST_SUITE(mckp_low_rank)

namespace {

const MckpMethod kProducts{.delta = true, .low_rank = true};

Tensor matrix() {
  return test::normal_f32({80, 64}, 1);
}

// Every element moves by the product of a column and a row.
Tensor moved(const Tensor& from, float by) {
  Tensor to = from;
  const std::span<float> elements = to.mutable_as<float>();
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] += by * std::sin(static_cast<float>(i / 64)) * static_cast<float>(i % 64 + 1);
  return to;
}

double distance(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.as<float>().size(); ++i)
    largest = std::max(largest, std::abs(double{a.as<float>()[i]} - double{b.as<float>()[i]}));
  return largest;
}

MckpWriteOptions asked(const char* metadata = "{}") {
  return {.low_rank = LowRankOptions{},
          .header = {.metadata = metadata, .previous = MckpPrevious{"before", {}}},
          .work = {.threads = 2}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_comes_out_is_close_and_is_what_was_hashed) {
  for (const auto digests : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
    const Tensor before = matrix(), now = moved(before, 1e-4f);
    MckpWriteOptions options = asked();
    options.header.content_digests = digests;
    MckpWriteResult result, exact;
    const std::string bytes = test::mckp_bytes({{"w", now}}, options, {{"w", before}}, &result);
    options.low_rank.reset();
    test::mckp_bytes({{"w", now}}, options, {{"w", before}}, &exact);
    const MckpFile file = test::open_bytes(bytes, {.verify = true});
    BOOST_TEST((file.find("w")->method == kProducts));
    BOOST_TEST(result.delta_tensors == 1u);
    BOOST_TEST(result.low_rank_tensors == 1u);
    BOOST_TEST(result.file_bytes * 4 < exact.file_bytes);
    const Tensor restored = file.read("w", before);
    BOOST_TEST(result.largest_error == distance(restored, now));
    BOOST_TEST(result.largest_error < 1e-3);
    BOOST_TEST(result.largest_error > 0);
    // The hash is that of a file that holds what comes out.
    MckpWriteResult whole;
    test::mckp_bytes({{"w", restored}}, {.header = {.content_digests = digests}}, {}, &whole);
    BOOST_TEST((whole.content_hash == result.content_hash));
    BOOST_CHECK_THROW(file.read("w"), MissingBaseError);
  }
}

BOOST_AUTO_TEST_CASE(what_has_to_be_exact_is) {
  Tensor strange = moved(matrix(), 1e-4f);
  strange.mutable_as<float>()[7] = std::numeric_limits<float>::infinity();
  Tensor few = matrix();
  few.mutable_as<float>()[100] = 3;
  const NamedTensors before{{"w", matrix()},
                            {"few", matrix()},
                            {"strange", matrix()},
                            {"optimizer.exp_avg", matrix()},
                            {"flat", test::normal_f32({5120}, 1)},
                            {"ids", test::random_tensor(DType::i32, {80, 64}, 1)}};
  const NamedTensors now{{"w", matrix()},
                         {"few", few},
                         {"strange", strange},
                         {"optimizer.exp_avg", moved(matrix(), 1e-4f)},
                         {"flat", test::normal_f32({5120}, 2)},
                         {"ids", test::random_tensor(DType::i32, {80, 64}, 2)}};
  MckpWriteResult result;
  const MckpFile file = test::open_bytes(test::mckp_bytes(now, asked(), before, &result));
  BOOST_TEST(result.low_rank_tensors == 0u);
  BOOST_TEST(result.largest_error == 0);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& [name, tensor] = now[i];
    BOOST_TEST((file.read(name, before[i].second) == tensor), name);
  }
  // A name that is asked for is taken whatever it says.
  MckpWriteOptions options = asked();
  options.low_rank->include = {"optimizer.*"};
  const MckpFile other = test::open_bytes(test::mckp_bytes(
      {{"optimizer.exp_avg", moved(matrix(), 1e-4f)}}, options, {{"optimizer.exp_avg", matrix()}}));
  BOOST_TEST((other.find("optimizer.exp_avg")->method == kProducts));
}

BOOST_AUTO_TEST_CASE(options_are_checked_where_they_are_given) {
  const auto refuse = [](LowRankOptions wrong, const char* field) {
    MckpWriteOptions options = asked();
    options.low_rank = wrong;
    BOOST_CHECK_EXCEPTION(test::mckp_bytes({}, options), UsageError,
                          test::says(ErrorCode::bad_argument, field));
    BOOST_CHECK_EXCEPTION(CheckpointCompressor({.low_rank_deltas = wrong}), UsageError,
                          test::says(ErrorCode::bad_argument, field));
  };
  refuse({.bits_per_element = 0}, "bits_per_element");
  refuse({.max_rank = 0}, "max_rank");
  refuse({.max_relative_error = 2}, "max_relative_error");
  BOOST_CHECK_EXCEPTION(test::mckp_bytes({}, asked(R"({"lossy_generation":10})")), UsageError,
                        test::has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(errors_do_not_add_up_along_a_chain) {
  const auto storage = std::make_shared<MemoryStorage>();
  const CheckpointCompressor compressor(
      {.low_rank_deltas = LowRankOptions{}, .cached_bytes = 1 << 20}, storage);
  Checkpoint state;
  state.tensors["w"] = matrix();
  compressor.save(state, "0");
  for (int i = 1; i < 5; ++i) {
    state.tensors["w"] = moved(state.tensors["w"], 1e-4f * static_cast<float>(i));
    const CheckpointMeta meta = compressor.save(state, std::to_string(i), std::to_string(i - 1));
    BOOST_TEST(meta.low_rank_tensors == 1u);
    BOOST_TEST(meta.lossy_generation == 1u);
    const Checkpoint loaded = compressor.load(std::to_string(i));
    BOOST_TEST(distance(loaded.tensors.at("w"), state.tensors["w"]) == meta.largest_error);
    BOOST_TEST(loaded.metadata.at("lossy_generation").as_uint64() == 1u);
  }
  // What was restored and is stored so again is of the next generation.
  Checkpoint again = compressor.load("4");
  again.tensors["w"] = moved(again.tensors["w"], 1e-4f);
  BOOST_TEST(compressor.save(again, "5", "4").lossy_generation == 2u);
  MckpChain::open(*storage, "5").verify_content();
}

BOOST_AUTO_TEST_CASE(payloads_that_lie_are_refused_before_memory_is_asked_for) {
  const Tensor before = matrix();
  const std::string bytes =
      test::mckp_bytes({{"w", moved(before, 1e-4f)}}, asked(), {{"w", before}});
  const MckpFile good = test::open_bytes(bytes);
  const MckpTensor& tensor = *good.find("w");
  const std::string payload =
      bytes.substr(tensor.offset + formats::mckp_block_header("w"), tensor.compressed_size);
  const std::uint32_t method = formats::pack_method(kProducts);
  const auto file_of = [&](const std::string& stored, std::uint32_t bits, const char* dtype,
                           const std::string& shape, std::uint64_t size) {
    test::Parts parts = test::one_tensor(stored, size, bits, dtype, shape);
    const std::string none = R"("previous_checkpoint_hash":null,"previous_key":null)";
    parts.json.replace(
        parts.json.find(none), none.size(),
        R"("previous_checkpoint_hash":")" + std::string(64, '0') + R"(","previous_key":"before")");
    parts.flags = formats::kMckpFlagDelta | formats::kMckpFlagLowRank;
    return parts.bytes();
  };
  const auto read = [&](const std::string& stored) {
    MckpReadOptions options;
    options.chain.read.input.limits.max_allocation_bytes = 1 << 20;
    return test::open_bytes(file_of(stored, method, "F32", "[80,64]", 80 * 64 * 4), options)
        .read("t", before);
  };
  BOOST_TEST((read(payload) == good.read("w", before)));

  using Header = format::LowRankHeader;
  const auto refuse = [&](const char* field,
                          const std::function<void(Header&, std::string&)>& lie) {
    std::string stored = payload;
    Header header;
    std::memcpy(&header, stored.data(), sizeof header);
    lie(header, stored);
    std::memcpy(stored.data(), &header, std::min(sizeof header, stored.size()));
    BOOST_CHECK_EXCEPTION(read(stored), FormatError, [&](const Error& error) {
      return std::string_view(error.what()).find(field) != std::string_view::npos;
    });
  };
  refuse("rank", [](Header& h, std::string& stored) {
    h.rank = 0;
    h.code_length = 0;
    stored.resize(sizeof h);
  });
  refuse("rank", [](Header& h, std::string&) { h.rank = 65; });
  refuse("rank", [](Header& h, std::string&) { h.rank = 0xffffffff; });
  refuse("code_length", [](Header& h, std::string&) { h.rank = h.rank + 1; });
  refuse("code_length", [](Header& h, std::string&) { h.code_length = ~std::uint64_t{0}; });
  refuse("code_length", [](Header&, std::string& stored) { stored.pop_back(); });
  refuse("code_length", [](Header&, std::string& stored) { stored += '\0'; });
  refuse("lossy_generation", [](Header& h, std::string&) { h.lossy_generation = 0; });
  refuse("max_error", [](Header& h, std::string&) { h.max_error = 0x7ff8000000000000; });
  refuse("zero_28", [](Header& h, std::string&) { h.zero_28[3] = 1; });
  refuse("widths", [](Header&, std::string& stored) { stored[64] = 0; });
  refuse("widths", [](Header&, std::string& stored) { stored[64] = 9; });
  refuse("", [](Header&, std::string& stored) { stored.resize(10); });
  refuse("", [](Header&, std::string& stored) { stored.clear(); });

  // What the header of the file says of it.
  const auto refuse_file = [&](std::uint32_t bits, const char* dtype, const char* shape,
                               std::uint64_t size, const char* says) {
    BOOST_CHECK_EXCEPTION(test::open_bytes(file_of(payload, bits, dtype, shape, size)), Error,
                          test::says(ErrorCode::inconsistent, says));
  };
  const std::uint64_t size = 80 * 64 * 4;
  refuse_file(method, "F32", "[5120]", size, "shape");
  refuse_file(method, "F32", "[80,64,1]", size, "shape");
  refuse_file(method, "I32", "[80,64]", size, "method");
  refuse_file(method & ~0x100u, "F32", "[80,64]", size, "method");
  refuse_file(method | 0x2000, "F32", "[80,64]", size, "method");
  refuse_file(method | 1, "F32", "[80,64]", size, "method");
  refuse_file(method | 0x200 | 4 << 16, "F32", "[80,64]", size, "method");
  refuse_file(method & ~0x1000u, "F32", "[80,64]", size, "flags");
  BOOST_CHECK_EXCEPTION(test::open_bytes(file_of(payload, method | 0x4000, "F32", "[80,64]", size)),
                        UnsupportedError, test::has_code(ErrorCode::unsupported_feature));
  BOOST_CHECK_THROW(good.read("w", test::normal_f32({64, 80}, 1)), ShapeMismatchError);
}

BOOST_AUTO_TEST_SUITE_END()
