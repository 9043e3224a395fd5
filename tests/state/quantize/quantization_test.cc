#include "thalia/state/quantization.h"

#include <algorithm>

#include "boost_test.h"
#include "integrity/content_hash.h"
#include "integrity/sha256.h"
#include "state/quantize/quantization_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/append.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"
#include "thalia/text.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(quantization)

namespace {

const QuantizeFileOptions kQuiet{.save = quiet_save()};

double largest_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

double squared_distance(const std::vector<double>& a, const std::vector<double>& b,
                        const std::vector<double>& weights = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[i];
    sum += weight * weight * (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

struct Quantized {
  explicit Quantized(const Tensor& tensor, const QuantizationOptions& options) {
    write_layer(folder / "in.thalia", {{"w", tensor}});
    result = quantize_file(folder / "in.thalia", folder / "out.thalia", options, kQuiet);
    before = numbers_of(tensor);
    after = numbers_of(Tensor::from(view()));
  }
  TensorView view() const { return layer_tensor(folder / "out.thalia", "w"); }

  TemporaryFolder folder;
  QuantizeFileResult result;
  std::vector<double> before, after;
};

}  // namespace

BOOST_AUTO_TEST_CASE(gives_back_numbers_within_the_error_that_it_reports) {
  const auto numbers = normal_numbers(3000, 0.02);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Tensor tensor = tensor_of(dtype, {30, 100}, numbers);
    for (const std::uint32_t group_size : {0U, 8U, 64U, 1024U, 65536U}) {
      for (const double bits : {1.0, 3.0, 4.0, 8.0}) {
        const Quantized file(tensor, {.bits = bits, .group_size = group_size});
        BOOST_TEST(verify(file.folder / "out.thalia").ok());
        const auto facts = quantization_of(file.view());
        BOOST_TEST_REQUIRE(facts.has_value());
        BOOST_TEST(facts->bits == static_cast<unsigned>(bits));
        BOOST_TEST(facts->group_size == group_size);
        BOOST_TEST(facts->max_error == largest_distance(file.before, file.after));
        BOOST_TEST(std::fabs(facts->rms_error /
                                 std::sqrt(squared_distance(file.before, file.after) / 3000) -
                             1) < 1e-9);
        const Tensor restored = Tensor::from(file.view());
        BOOST_TEST(restored.is_dense());
        BOOST_CHECK(restored.dtype() == dtype);
        BOOST_TEST(bool(restored.shape() == tensor.shape()));
        BOOST_TEST(
            bool(integrity::content_digest(restored.bytes(), 1).hash == facts->content_hash));
        BOOST_TEST_REQUIRE(file.result.quantized.size() == 1u);
        const QuantizedTensorReport& report = file.result.quantized.front();
        BOOST_TEST(report.max_error == facts->max_error);
        BOOST_TEST(report.bits == bits);
        BOOST_TEST(report.dense_bytes == tensor.bytes().size());
        BOOST_TEST(report.quantized_bytes == file.view().logical_bytes());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_constant_huge_tiny_and_empty_tensors) {
  const auto round = [](DType dtype, const Shape& shape, const std::vector<double>& numbers) {
    return Quantized(tensor_of(dtype, shape, numbers), {.bits = 4, .min_elements = 0});
  };
  BOOST_TEST(
      round(DType::f32, {256}, std::vector<double>(256, 0.1)).result.quantized[0].max_error == 0);
  BOOST_TEST(round(DType::f32, {}, {7}).after.front() == 7);
  BOOST_TEST(round(DType::f16, {0, 3}, {}).after.empty());
  std::vector<double> huge = normal_numbers(500, 1e38), tiny = normal_numbers(500, 1e-44);
  for (const auto& numbers : {huge, tiny}) {
    const Quantized file(tensor_of(DType::f32, {500}, numbers), {.bits = 6});
    const double range = *std::max_element(file.before.begin(), file.before.end()) -
                         *std::min_element(file.before.begin(), file.before.end());
    BOOST_TEST(largest_distance(file.before, file.after) <= range / 63 / 2 * 1.001 + 0x1p-149);
    BOOST_TEST(verify(file.folder / "out.thalia").ok());
  }
}

// Squares of these are no numbers of f64; long double has them.
BOOST_AUTO_TEST_CASE(reports_the_error_of_numbers_of_any_size) {
  for (const double unit : {1e-300, 1e-200, 1e-160, 1.0, 1e160, 1e200, 1e300}) {
    const Quantized file(tensor_of(DType::f64, {3000}, normal_numbers(3000, unit)),
                         {.bits = 4, .group_size = 64});
    long double errors = 0, squares = 0;
    for (std::size_t i = 0; i < file.before.size(); ++i) {
      const long double before = file.before[i], error = before - file.after[i];
      errors += error * error;
      squares += before * before;
    }
    const QuantizedTensorReport& report = file.result.quantized[0];
    const auto close = [&](double reported, long double expected) {
      BOOST_TEST(std::fabs(static_cast<double>(reported / expected) - 1) < 1e-9, unit);
    };
    close(report.rms_error, std::sqrt(errors / 3000));
    close(report.relative_error, std::sqrt(errors / squares));
    const Reader reader = Reader::open(file.folder / "out.thalia");
    close(quantization_of(reader.region(0).tensor(0))->rms_error, std::sqrt(errors / 3000));
    BOOST_TEST(verify(file.folder / "out.thalia").ok());
  }
}

BOOST_AUTO_TEST_CASE(leaves_what_it_was_not_asked_for) {
  const TemporaryFolder folder;
  const auto numbers = normal_numbers(2048, 1);
  const Tensor weights = tensor_of(DType::f32, {32, 64}, numbers);
  std::vector<double> with_nan = numbers;
  with_nan[77] = std::nan("");
  write_layer(folder / "in", {{"a.weight", weights},
                              {"b.embed.weight", weights},
                              {"c.exp_avg", weights},
                              {"d.state", weights, Role::optimizer},
                              {"e.buffer", weights, Role::buffer},
                              {"f.nan", tensor_of(DType::f32, {32, 64}, with_nan)},
                              {"g.small", tensor_of(DType::f32, {8}, normal_numbers(8, 1))},
                              {"h.bias", weights},
                              {"i.norm.weight", tensor_of(DType::f32, {2048}, numbers)},
                              {"j.integers", Tensor::zeros(DType::i32, {2048})}});
  const auto names = [&](const QuantizationOptions& options) {
    const auto result = quantize_file(folder / "in", folder / "out", options, kQuiet);
    BOOST_TEST(verify(folder / "out").ok());
    std::string text;
    for (const auto& report : result.quantized) text += report.name + ' ';
    for (const auto& path : result.not_finite) text += "not:" + path + ' ';
    return text;
  };
  BOOST_TEST(names({.bits = 4}) == "a.weight b.embed.weight not:regions.layer.weights.f.nan ");
  BOOST_TEST(names({.exclude = {"*.embed.*", "f.nan"}}) == "a.weight ");
  BOOST_TEST(names({.include = {"state", "g.small"}, .min_elements = 1}) == "g.small d.state ");
  for (const char* name : {"c.exp_avg", "e.buffer", "f.nan"}) {
    BOOST_TEST(bool(layer_tensor(folder / "out", name).content_hash() ==
                    layer_tensor(folder / "in", name).content_hash()));
    BOOST_TEST(!quantization_of(layer_tensor(folder / "out", name)));
  }
  for (const QuantizationOptions& options :
       {QuantizationOptions{.include = {"nowhere"}}, {.exclude = {"a.weight", "nowhere"}}}) {
    BOOST_CHECK_EXCEPTION(names(options), UsageError,
                          says(ErrorCode::not_found, "fits no tensor", "nowhere", "a.weight"));
  }
  // Nothing chosen: nothing lossy is said.
  BOOST_TEST(names({.include = {"j.integers"}}) == "");
  BOOST_TEST(Reader::open(folder / "out").metadata_json().find("lossy") == std::string_view::npos);
}

// Raw ones are compressed now, and their digests known before; those in chunks stay as they are.
BOOST_AUTO_TEST_CASE(what_is_taken_over_stays_the_same_under_every_codec) {
  constexpr Codec kCodecs[] = {Codec::none, Codec::zstd, Codec::lz4, Codec::plane_entropy,
                               Codec::packed_exponents};
  const TemporaryFolder folder;
  Sample sample = varied_sample();
  sample.regions[0].tensors.push_back(ramp_tensor("large", {100, 100}));
  sample.regions[0].tensors.push_back(ramp_tensor("other", {100, 100}));
  for (const Codec before : kCodecs) {
    const auto input = folder / ("in." + std::string(codec_name(before)));
    SaveOptions save_options = kQuiet.save;
    save_options.compression = {.codec = before, .chunk_bytes = 4096};
    save(input, sample, save_options);
    const Reader in = Reader::open(input);
    for (const Codec codec : kCodecs) {
      BOOST_TEST_CONTEXT(codec_name(before) << " to " << codec_name(codec)) {
        const auto out = folder / std::string(codec_name(codec));
        QuantizeFileOptions options = kQuiet;
        options.save.compression.codec = codec;
        options.save.work.threads = 2;
        const auto result = quantize_file(input, out, {.bits = 4, .include = {"large"}}, options);
        BOOST_TEST(result.quantized.size() == 1u);
        BOOST_TEST(verify(out).ok());
        const Reader reader = Reader::open(out);
        for (std::uint32_t r = 0; r < in.region_count(); ++r) {
          for (std::uint32_t i = 0; i < in.region(r).tensor_count(); ++i) {
            const TensorView tensor = in.region(r).tensor(i);
            if (tensor.name() == "large") continue;
            BOOST_TEST((Tensor::from(reader.region(r).at(tensor.name())) == Tensor::from(tensor)),
                       tensor.name());
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(views_refuse_what_is_nowhere_in_the_file) {
  const Quantized file(tensor_of(DType::f32, {2048}, normal_numbers(2048, 1)), {.bits = 4});
  const TensorView view = file.view();
  std::vector<std::byte> buffer(view.logical_bytes());
  const auto refused = says(ErrorCode::unsupported_feature, "quantized", "read_dense()", "'w'");
  BOOST_CHECK_EXCEPTION(view.bytes(), UnsupportedError, refused);
  BOOST_CHECK_EXCEPTION(view.read(buffer), UnsupportedError, refused);
  BOOST_CHECK_EXCEPTION(view.as<float>(), UsageError,
                        says(ErrorCode::wrong_state, "quantized", "read_dense()"));
  const SliceRange range{0, 8};
  BOOST_CHECK_EXCEPTION(view.read_slice(std::span(&range, 1), std::span(buffer).first(32)),
                        UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(view.read_dense(buffer), UsageError,
                        says(ErrorCode::size_mismatch, "8192"));
}

BOOST_AUTO_TEST_CASE(counts_losses_up_to_the_recorded_bound) {
  const TemporaryFolder folder;
  write_layer(folder / "0", {{"w", tensor_of(DType::f32, {2048}, normal_numbers(2048, 1))}});
  const QuantizationOptions options{.bits = 4, .max_generations = 2};
  auto result = quantize_file(folder / "0", folder / "1", options, kQuiet);
  BOOST_TEST(result.lossy_generation == 1);
  BOOST_TEST(result.max_lossy_generations == 2);
  // Restored and saved without loss it stays of that generation.
  convert(folder / "1", folder / "dense.thalia");
  BOOST_TEST(!quantization_of(layer_tensor(folder / "dense.thalia", "w")));
  result = quantize_file(folder / "dense.thalia", folder / "2", {.bits = 3}, kQuiet);
  BOOST_TEST(result.lossy_generation == 2);
  BOOST_TEST(quantization_of(layer_tensor(folder / "2", "w"))->lossy_generation == 2);
  BOOST_TEST(result.max_lossy_generations == 2);
  convert(folder / "2", folder / "again.thalia");
  BOOST_CHECK_EXCEPTION(
      quantize_file(folder / "again.thalia", folder / "3", {.max_generations = 9}), UsageError,
      says(ErrorCode::wrong_state, "lossy_generation", "got 3", "at most 2"));
  BOOST_TEST(!std::filesystem::exists(folder / "3"));
}

BOOST_AUTO_TEST_CASE(allows_ten_generations_where_nobody_says_another_bound) {
  const TemporaryFolder folder;
  write_layer(folder / "a.thalia", {{"w", tensor_of(DType::f32, {1024}, normal_numbers(1024, 1))}});
  for (int i = 1; i <= 10; ++i) {
    BOOST_TEST(
        quantize_file(folder / "a.thalia", folder / "b.thalia", {}, kQuiet).lossy_generation == i);
    convert(folder / "b.thalia", folder / "a.thalia");
  }
  BOOST_CHECK_THROW(quantize_file(folder / "a.thalia", folder / "b.thalia", {}, kQuiet),
                    UsageError);
}

BOOST_AUTO_TEST_CASE(spends_bits_where_they_take_most_error_away) {
  // Groups of very different widths, and some that are constant.
  std::vector<double> numbers = normal_numbers(16384, 1);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] *= std::ldexp(1.0, -static_cast<int>(i / 64 % 10));
  std::fill_n(numbers.begin() + 640, 64, 0.25);
  const Tensor tensor = tensor_of(DType::f32, {128, 128}, numbers);
  const Quantized uniform(tensor, {.bits = 4, .group_size = 64});
  const Quantized adaptive(tensor, {.bits = 4, .group_size = 64, .adaptive = true});
  BOOST_TEST(verify(adaptive.folder / "out.thalia").ok());
  const auto facts = quantization_of(adaptive.view());
  BOOST_TEST(facts->bits == 0u);
  BOOST_TEST(facts->mean_bits <= 4);
  BOOST_TEST(facts->mean_bits > 3.9);
  BOOST_TEST(squared_distance(adaptive.before, adaptive.after) <
             0.5 * squared_distance(uniform.before, uniform.after));
  BOOST_TEST(adaptive.after[640] == 0.25);
  const Quantized fractional(tensor, {.bits = 2.5, .group_size = 64, .adaptive = true});
  BOOST_TEST(quantization_of(fractional.view())->mean_bits <= 2.5);
  BOOST_TEST(quantization_of(fractional.view())->mean_bits > 2.4);
}

BOOST_AUTO_TEST_CASE(weighs_errors_by_sensitivity) {
  const std::vector<double> numbers = normal_numbers(8192, 0.05);
  std::vector<double> sensitivity(numbers.size());
  for (std::size_t i = 0; i < sensitivity.size(); ++i)
    sensitivity[i] = i < 1024 ? -10 : i < 2048 ? 0 : 0.1;
  const Tensor tensor = tensor_of(DType::bf16, {8192}, numbers);
  const auto given = [&](const QuantizationTarget& target) {
    BOOST_TEST(target.path == "regions.layer.weights.w");
    return std::optional(tensor_of(DType::f64, {64, 128}, sensitivity));
  };
  const Quantized alike(tensor, {.bits = 3, .adaptive = true});
  const Quantized weighed(tensor, {.bits = 3, .sensitivity = given});
  BOOST_TEST(squared_distance(weighed.before, weighed.after, sensitivity) <
             0.2 * squared_distance(alike.before, alike.after, sensitivity));
  BOOST_TEST(quantization_of(weighed.view())->mean_bits <= 3);
  // What nothing depends on keeps its mean only.
  BOOST_TEST(std::count(weighed.after.begin() + 1024, weighed.after.begin() + 1152,
                        weighed.after[1024]) == 128);
}

BOOST_AUTO_TEST_CASE(refuses_sensitivities_that_do_not_fit) {
  const TemporaryFolder folder;
  write_layer(folder / "in", {{"w", tensor_of(DType::f32, {2048}, normal_numbers(2048, 1))}});
  const auto refused = [&](const Tensor& sensitivity, ErrorCode code, const char* part) {
    const auto given = [&](const QuantizationTarget&) { return std::optional(sensitivity); };
    BOOST_CHECK_EXCEPTION(quantize_file(folder / "in", folder / "out", {.sensitivity = given}),
                          UsageError, says(code, part, "sensitivity"));
    BOOST_TEST(!std::filesystem::exists(folder / "out"));
  };
  refused(Tensor::zeros(DType::f32, {2047}), ErrorCode::size_mismatch, "2048");
  refused(Tensor::zeros(DType::i32, {2048}), ErrorCode::dtype_mismatch, "i32");
  refused(tensor_of(DType::f64, {2048}, std::vector<double>(2048, std::nan(""))),
          ErrorCode::bad_argument, "NaN");
}

BOOST_AUTO_TEST_CASE(refuses_options_that_make_no_sense) {
  const auto refused = [](const QuantizationOptions& options, const char* field) {
    BOOST_CHECK_EXCEPTION(check_quantization(options), UsageError,
                          says(ErrorCode::bad_argument, field));
  };
  for (const double bits : {0.0, 9.0, 2.5, -1.0, double(NAN), 1e300})
    refused({.bits = bits}, "bits");
  refused({.bits = 0.5, .adaptive = true}, "bits");
  for (const std::uint32_t size : {1U, 12U, 65544U}) refused({.group_size = size}, "group_size");
  refused({.group_size = 0, .adaptive = true}, "group_size");
  refused({.max_generations = std::uint16_t{0}}, "max_generations");
  BOOST_CHECK_NO_THROW(check_quantization({.bits = 2.5, .adaptive = true}));
}

BOOST_AUTO_TEST_CASE(gives_the_same_bytes_on_any_number_of_threads) {
  const TemporaryFolder folder;
  write_layer(folder / "in",
              {{"w", tensor_of(DType::f32, {400, 500}, normal_numbers(200'000, 1))}});
  for (const bool adaptive : {false, true}) {
    std::vector<std::string> payloads;
    for (const unsigned threads : {1U, 3U}) {
      QuantizeFileOptions options = kQuiet;
      options.save.work.threads = threads;
      options.save.file_uuid.emplace();
      quantize_file(folder / "in", folder / "out", {.bits = 3, .adaptive = adaptive}, options);
      payloads.push_back(read_file(folder / "out"));
    }
    BOOST_TEST(bool(payloads[0] == payloads[1]));
  }
}

BOOST_AUTO_TEST_CASE(lives_in_chunks_and_through_compact_and_append) {
  const TemporaryFolder folder;
  std::vector<double> numbers = normal_numbers(50'000, 1);
  std::fill_n(numbers.begin(), 30'000, 0.5);
  const Tensor tensor = tensor_of(DType::f32, {50'000}, numbers);
  write_layer(folder / "in", {{"w", tensor}});
  QuantizeFileOptions options = kQuiet;
  options.save.compression.codec = Codec::zstd;
  options.save.compression.chunk_bytes = 4096;
  options.save.sha256 = true;
  quantize_file(folder / "in", folder / "out", {.bits = 5}, options);
  BOOST_TEST(read_file(folder / "out.sha256") ==
             hex(integrity::sha256(bytes_of(read_file(folder / "out"))).bytes) + "  out\n");
  const TensorView view = layer_tensor(folder / "out", "w");
  BOOST_TEST(view.chunk_count() > 1u);
  BOOST_TEST(verify(folder / "out").ok());
  const Tensor restored = Tensor::from(view);
  options.save.compression.codec.reset();
  options.save.automatic_codec = true;
  quantize_file(folder / "in", folder / "automatic", {.bits = 5}, options);
  BOOST_TEST(bool(Tensor::from(layer_tensor(folder / "automatic", "w")) == restored));
  compact(folder / "out", folder / "compact");
  BOOST_TEST(verify(folder / "compact").ok());
  BOOST_TEST(bool(Tensor::from(layer_tensor(folder / "compact", "w")) == restored));
  Appender appender(folder / "compact");
  const float more[4] = {};
  appender.add_tensor(appender.add_region({.name = "other"}), {.name = "b", .shape = {4}},
                      as_byte_span(more));
  appender.commit();
  BOOST_TEST(verify(folder / "compact").ok());
  BOOST_TEST(bool(Tensor::from(layer_tensor(folder / "compact", "w")) == restored));
  // A second time, what is quantized stays as it is.
  const auto again = quantize_file(folder / "out", folder / "again", {.bits = 2}, kQuiet);
  BOOST_TEST(again.quantized.empty());
  BOOST_TEST(bool(Tensor::from(layer_tensor(folder / "again", "w")) == restored));
}

BOOST_AUTO_TEST_CASE(converts_to_what_comes_out) {
  const Quantized file(tensor_of(DType::bf16, {32, 64}, normal_numbers(2048, 1)), {.bits = 4});
  const Tensor restored = Tensor::from(file.view());
  convert(file.folder / "out.thalia", file.folder / "out.safetensors");
  const SafetensorsFile exported = SafetensorsFile::open(file.folder / "out.safetensors");
  BOOST_TEST(bool(std::ranges::equal(exported.tensors().front().bytes, restored.bytes())));
  convert(file.folder / "out.thalia", file.folder / "copy.thalia");
  BOOST_TEST(verify(file.folder / "copy.thalia").ok());
  BOOST_TEST(bool(Tensor::from(layer_tensor(file.folder / "copy.thalia", "w")) == restored));
}

BOOST_AUTO_TEST_SUITE_END()
