#include "convert/precision_run.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "codec/float/conversion.h"
#include "convert/precision_samples.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"
#include "thalia/options.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(precision_run)

namespace {

void write_checkpoint(const std::filesystem::path& path, const SaveOptions& options,
                      std::string metadata) {
  const std::vector<float> numbers = weights(kManyWeights);
  const std::vector<double> doubles(numbers.begin(), numbers.end());
  const std::vector<std::uint8_t> spikes{1, 0, 1};
  Writer writer(path, fixed_identity(options));
  if (!metadata.empty()) writer.set_metadata(std::move(metadata));
  const RegionId region = writer.add_region({.name = "r"});
  const auto add = [&](const char* name, Role role, DType dtype, ByteSpan bytes) {
    const std::uint64_t count = bytes.size() * 8 / dtype_bits(dtype);
    writer.add_tensor(region, {.name = name, .dtype = dtype, .shape = {count}, .role = role},
                      bytes);
  };
  add("w_ff", Role::weights, DType::f32, as_byte_span(numbers));
  add("w_f64", Role::weights, DType::f64, as_byte_span(doubles));
  add("membrane", Role::region_state, DType::f32, as_byte_span(numbers));
  add("spikes", Role::region_state, DType::boolean, as_byte_span(spikes));
  add("eligibility", Role::learning_state, DType::f32, as_byte_span(numbers));
  writer.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_converts_what_the_policy_says_and_nothing_else) {
  const TemporaryFolder folder;
  const std::vector<float> numbers = weights(kManyWeights);
  const std::vector<double> doubles(numbers.begin(), numbers.end());
  const ByteSpan singles = as_byte_span(numbers);
  const auto halves = as_type(DType::f32, DType::f16, singles);
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    write_checkpoint(folder / "a.thalia", {.compression = {.codec = codec, .chunk_bytes = 4096}},
                     "");
    for (const Codec target : {Codec::none, Codec::lz4}) {
      const ConvertResult result =
          convert(folder / "a.thalia", folder / "b.thalia",
                  with_precision("fp16", {.compression = {.codec = target}}));
      BOOST_TEST(verify(folder / "b.thalia").ok());
      const Reader reader = Reader::open(folder / "b.thalia");
      const auto is = [&](const char* name, DType dtype, ByteSpan bytes) {
        const TensorView view = reader.tensor(name);
        BOOST_TEST((view.dtype() == dtype), name);
        BOOST_TEST((payload(view) == std::vector(bytes.begin(), bytes.end())), name);
      };
      is("w_ff", DType::f16, halves);
      is("w_f64", DType::f16, as_type(DType::f64, DType::f16, as_byte_span(doubles)));
      is("membrane", DType::f32, singles);
      is("spikes", DType::boolean, as_byte_span(std::vector<std::uint8_t>{1, 0, 1}));
      is("eligibility", DType::f16, halves);
      BOOST_TEST(reader.metadata_json() == R"({"precision_policy":"fp16"})");
      BOOST_TEST(reader.header().flags.mixed_precision);
      BOOST_TEST(result.converted_tensors == 3u);
      BOOST_TEST(result.precision.share(PrecisionKind::fp16).count == 3u);
      BOOST_TEST(result.precision.share(PrecisionKind::fp16).bytes == 3 * 2 * kManyWeights);
      BOOST_TEST(result.precision.share(PrecisionKind::fp32).bytes == 4 * kManyWeights);
      BOOST_TEST(result.precision.share(PrecisionKind::other).bytes == 3u);
      BOOST_TEST(result.rounding.infinite.count == 0u);
      double largest = 0;
      for (std::size_t i = 0; i < kManyWeights; ++i) {
        float back = 0;
        codec::convert_elements(DType::f16, DType::f32, ByteSpan(halves).subspan(2 * i, 2),
                                std::as_writable_bytes(std::span(&back, 1)));
        largest = std::max(largest, std::fabs(double{numbers[i]} - back));
      }
      BOOST_TEST(result.rounding.largest_error == largest);
      BOOST_TEST(largest > 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_policy_that_changes_nothing_leaves_the_bytes) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {}, R"({ "note" : 1 })");
  const ConvertResult result =
      convert(folder / "a.thalia", folder / "b.thalia", with_precision("weights=keep"));
  BOOST_TEST((read_file(folder / "a.thalia") == read_file(folder / "b.thalia")));
  BOOST_TEST(result.converted_tensors == 0u);
  BOOST_TEST(result.precision.share(PrecisionKind::fp64).count == 1u);
  BOOST_TEST(result.rounding.largest_error == 0);
}

BOOST_AUTO_TEST_CASE(halves_come_back_as_f32) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {}, "");
  convert(folder / "a.thalia", folder / "b.thalia", with_precision("bf16"));
  const ConvertResult result =
      convert(folder / "b.thalia", folder / "c.thalia", with_precision("fp32"));
  const Reader reader = Reader::open(folder / "c.thalia");
  BOOST_TEST((reader.tensor("w_ff").dtype() == DType::f32));
  const auto bf16 = as_type(DType::f32, DType::bf16, as_byte_span(weights(kManyWeights)));
  BOOST_TEST((payload(reader.tensor("w_ff")) == as_type(DType::bf16, DType::f32, bf16)));
  BOOST_TEST(reader.metadata_json() == R"({"precision_policy":"fp32"})");
  BOOST_TEST(result.rounding.largest_error == 0);
  BOOST_TEST(result.converted_tensors == 3u);
}

BOOST_AUTO_TEST_CASE(metadata_keeps_its_members_and_tells_the_last_policy) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {},
                   R"({"b": 1e400, "precision_policy": {"x": 1}, "a": "\u00e9"})");
  convert(folder / "a.thalia", folder / "b.thalia", with_precision("*/w_ff=bf16"));
  BOOST_TEST(Reader::open(folder / "b.thalia").metadata_json() ==
             R"({"b":1e400,"precision_policy":"*/w_ff=bf16","a":"é"})");
}

BOOST_AUTO_TEST_CASE(counts_what_became_infinite) {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1, 65520, -1e30F, HUGE_VALF, 2049};
  for (const char* name : {"a.thalia", "b.safetensors"}) {
    if (name[0] == 'a') {
      Writer writer(folder / name, fixed_identity());
      writer.add_tensor(writer.add_region({.name = "r"}),
                        {.name = "w", .dtype = DType::f32, .shape = {5}}, as_byte_span(numbers));
      writer.commit();
    } else {
      save_safetensors(folder / name, {{"w", DType::f32, {5}, as_byte_span(numbers)}});
    }
    for (const char* target : {"c.thalia", "c.safetensors"}) {
      const ConvertResult result = convert(folder / name, folder / target, with_precision("fp16"));
      BOOST_TEST(result.rounding.infinite.count == 2u);
      BOOST_TEST(result.rounding.largest_error == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(names_the_tensor_that_lost_most) {
  const TemporaryFolder folder;
  const std::vector<float> a{0x1p-30F, 0x1p-20F, 1}, b{0x1p-30F, -0x1p-30F, 1e9F}, c{1, 2, 3};
  save_safetensors(folder / "a.safetensors", {{"l.0.x", DType::f32, {3}, as_byte_span(a)},
                                              {"l.0.y", DType::f32, {3}, as_byte_span(b)},
                                              {"l.1.z", DType::f32, {3}, as_byte_span(c)}});
  convert(folder / "a.safetensors", folder / "a.thalia");
  const auto check = [&](const char* input, const char* output, const std::string& prefix) {
    const RoundingLoss rounding =
        convert(folder / input, folder / output, with_precision("weights=fp16")).rounding;
    const auto is = [&](const RoundedNumbers& numbers, std::uint64_t count, const char* worst,
                        std::uint64_t in_worst) {
      BOOST_TEST(numbers.count == count);
      BOOST_TEST(numbers.worst == (count == 0 ? "" : prefix + worst));
      BOOST_TEST(numbers.worst_count == in_worst);
    };
    is(rounding.zeroed, 3, "l.0.y", 2);
    is(rounding.subnormal, 1, "l.0.x", 1);
    is(rounding.infinite, 1, "l.0.y", 1);
    is(rounding.nan, 0, "", 0);
    BOOST_TEST(rounding.largest_error == 0x1p-30);
    BOOST_TEST(rounding.largest_error_tensor == prefix + "l.0.x");
  };
  check("a.safetensors", "b.safetensors", "");
  check("a.safetensors", "b.thalia", "");
  check("a.safetensors", "b.mckp", "");
  check("a.thalia", "c.thalia", "l.0/");
  check("a.thalia", "c.safetensors", "");
  check("a.thalia", "c.mckp", "");
}

// A file, and what it becomes in other formats, under the same policy.
BOOST_AUTO_TEST_CASE(twins_are_treated_alike) {
  const TemporaryFolder folder;
  const std::vector<float> numbers = weights(64);
  std::vector<NamedArray> tensors;
  for (const char* name : {"h.0.attn.weight", "h.0.attn.b", "h.0.ln_1.weight", "wte.weight",
                           "h.0.attn.weight.exp_avg", "optimizer.lr_weights", "head.bias", "rest"})
    tensors.push_back({name, DType::f32, {8, 8}, as_byte_span(numbers)});
  tensors.push_back({"h.0.ln_1.bias", DType::f32, {64}, as_byte_span(numbers)});
  save_safetensors(folder / "a.safetensors", tensors);
  convert(folder / "a.safetensors", folder / "a.thalia");
  convert(folder / "a.safetensors", folder / "a.mckp");
  for (const char* policy :
       {"fp16", "mixed", "weights=bf16,biases=fp16", "default=bf16", "h.0.*=bf16",
        "h.0/h.0.attn.weight=bf16", "*exp_avg=fp16,weights=bf16", "default=fp16,match=original"}) {
    convert(folder / "a.safetensors", folder / "1.safetensors", with_precision(policy));
    const auto one = SafetensorsFile::open(folder / "1.safetensors");
    for (const char* twin : {"a.thalia", "a.mckp"}) {
      convert(folder / twin, folder / "2.safetensors", with_precision(policy));
      const auto other = SafetensorsFile::open(folder / "2.safetensors");
      BOOST_TEST_REQUIRE(one.tensors().size() == other.tensors().size());
      for (std::size_t i = 0; i < one.tensors().size(); ++i) {
        const NamedArray &a = one.tensors()[i], &b = other.tensors()[i];
        BOOST_TEST(a.name == b.name);
        BOOST_TEST(dtype_name(a.dtype) == dtype_name(b.dtype), policy << ", " << a.name);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(optimizer_state_is_imported_as_such_and_stays_exact) {
  const TemporaryFolder folder;
  const std::vector<float> small(64, 1e-12F);
  save_safetensors(folder / "a.safetensors",
                   {{"l.0.w", DType::f32, {8, 8}, as_byte_span(small)},
                    {"l.0.w.exp_avg_sq", DType::f32, {8, 8}, as_byte_span(small)}});
  const ConvertResult result =
      convert(folder / "a.safetensors", folder / "a.thalia", with_precision("fp16"));
  BOOST_TEST(result.rounding.zeroed.count == 64u);
  BOOST_TEST(result.rounding.zeroed.worst == "l.0.w");
  const Reader reader = Reader::open(folder / "a.thalia");
  BOOST_TEST((reader.tensor("l.0.w").role() == Role::weights));
  BOOST_TEST((reader.tensor("l.0.w.exp_avg_sq").role() == Role::optimizer));
  BOOST_TEST((reader.tensor("l.0.w.exp_avg_sq").dtype() == DType::f32));
  // Their names tell the roles again: nothing is lost on the way back.
  BOOST_TEST(convert(folder / "a.thalia", folder / "b.safetensors").losses.empty());
}

BOOST_AUTO_TEST_CASE(sparse_values_and_connections_are_converted) {
  const TemporaryFolder folder;
  // Three row pointers and one coordinate: f64 values follow padding, f16 values without.
  const std::vector<std::uint32_t> rows{0, 1, 1}, columns{3}, coordinates{2, 0, 1};
  const std::vector<std::uint32_t> odd_coordinates{7};
  const std::vector<double> one{0.1};
  const std::vector<float> value{0.3F};
  Writer writer(folder / "a.thalia", fixed_identity());
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_csr(region, {.name = "w_csr", .dtype = DType::f64, .shape = {2, 4}},
                 CsrArrays<std::uint32_t>{rows, columns, as_byte_span(one)});
  writer.add_coo(region, {.name = "w_coo", .dtype = DType::f64, .shape = {9}},
                 CooArrays<std::uint32_t>{odd_coordinates, as_byte_span(one)});
  writer.add_coo(region, {.name = "w_f32", .dtype = DType::f32, .shape = {3, 4, 5}},
                 CooArrays<std::uint32_t>{coordinates, as_byte_span(value)});
  const auto csr = joined({as_byte_span(rows), as_byte_span(columns), as_byte_span(one)});
  const auto delays = weights(8);
  const ConnectionId connection = writer.add_connection("r", "r");
  writer.add_connection_weights(
      connection, {.dtype = DType::f64, .shape = {2, 4}, .encoding = Encoding::csr, .nnz = 1}, csr);
  writer.add_connection_delays(connection, {.dtype = DType::f32, .shape = {2, 4}},
                               as_byte_span(delays));
  writer.commit();

  for (const Codec target : {Codec::none, Codec::zstd}) {
    const ConvertResult result =
        convert(folder / "a.thalia", folder / "b.thalia",
                with_precision("fp16", {.compression = {.codec = target}}));
    BOOST_TEST(verify(folder / "b.thalia").ok());
    const Reader reader = Reader::open(folder / "b.thalia");
    const auto half = as_type(DType::f64, DType::f16, as_byte_span(one));
    const auto half_value = as_type(DType::f32, DType::f16, as_byte_span(value));
    BOOST_TEST((payload(reader.tensor("w_csr")) ==
                joined({as_byte_span(rows), as_byte_span(columns), half})));
    BOOST_TEST((payload(reader.tensor("w_coo")) == joined({as_byte_span(odd_coordinates), half})));
    BOOST_TEST(
        (payload(reader.tensor("w_f32")) == joined({as_byte_span(coordinates), half_value})));
    const ConnectionView copied = reader.connection(0);
    BOOST_TEST(
        (payload(copied.weights) == joined({as_byte_span(rows), as_byte_span(columns), half})));
    BOOST_TEST((copied.delays->dtype() == DType::f32));
    BOOST_TEST(result.converted_tensors == 4u);
    ConvertOptions widen = with_precision("keep");
    widen.precision.patterns = {{"w_f32", Precision::fp32}};
    convert(folder / "b.thalia", folder / "c.thalia", widen);
    BOOST_TEST(verify(folder / "c.thalia").ok());
    const auto back = as_type(DType::f16, DType::f32, half_value);
    BOOST_TEST((payload(Reader::open(folder / "c.thalia").tensor("w_f32")) ==
                joined({as_byte_span(coordinates), back})));
  }
}

BOOST_AUTO_TEST_CASE(wider_values_get_their_padding) {
  const std::vector<std::uint32_t> coordinates{7};
  const std::vector<float> value{0.3F};
  const PrecisionPolicy policy;
  ConvertResult result;
  std::vector<std::byte> converted;
  formats::PrecisionRun(policy, result)
      .convert(
          "w", {.dtype = DType::f32, .shape = {9}, .encoding = Encoding::coo, .nnz = 1},
          joined({as_byte_span(coordinates), as_byte_span(value)}), DType::f64,
          [&](ByteSpan piece) { converted.insert(converted.end(), piece.begin(), piece.end()); });
  const std::vector<std::uint32_t> padding{0};
  const std::vector<double> wide{0.3F};
  BOOST_TEST((converted ==
              joined({as_byte_span(coordinates), as_byte_span(padding), as_byte_span(wide)})));
}

BOOST_AUTO_TEST_CASE(an_error_leaves_nothing) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.thalia", {}, "");
  ConvertOptions options = with_precision("fp16");
  std::stop_source stop;
  options.save.work.cancel = stop.get_token();
  stop.request_stop();
  BOOST_CHECK_EXCEPTION(convert(folder / "a.thalia", folder / "b.thalia", options), CancelledError,
                        has_code(ErrorCode::cancelled));
  BOOST_TEST(!std::filesystem::exists(folder / "b.thalia"));
}

BOOST_AUTO_TEST_SUITE_END()
