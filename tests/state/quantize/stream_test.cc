// Quantized tensors handed out as they lie in the file: by TensorView::quantized(), and by streams,
// which restore them unless told otherwise.
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "boost_test.h"
#include "state/quantize/quantization_sample.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/stream.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(quantized_stream)

namespace {

struct Form {
  QuantizationOptions quantization;
  Codec codec;
};

// Weights of several types, one of more than a unit of reading, beside tensors that stay as they
// are.
struct QuantizedFile {
  explicit QuantizedFile(const Form& form) {
    std::mt19937_64 random(11);
    const auto numbers = [&](std::size_t count) {
      std::normal_distribution<double> normal(0, 0.02);
      std::vector<double> out(count);
      for (double& number : out) number = normal(random);
      return out;
    };
    write_layer(folder / "plain",
                {{"large", tensor_of(DType::f32, {1200, 1021}, numbers(1200 * 1021))},
                 {"double", tensor_of(DType::f64, {97, 33}, numbers(97 * 33))},
                 {"half", tensor_of(DType::bf16, {4001}, numbers(4001))},
                 {"bias", tensor_of(DType::f32, {70}, numbers(70)), Role::bias}});
    SaveOptions save = quiet_save();
    save.compression.codec = form.codec;
    quantize_file(folder / "plain", path, form.quantization, {.save = save});
  }
  TemporaryFolder folder;
  std::filesystem::path path = folder / "quantized.thalia";
};

std::vector<Form> forms() {
  std::vector<Form> out;
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    out.push_back({{.bits = 4, .group_size = 64}, codec});
    out.push_back({{.bits = 3, .group_size = 0}, codec});
    out.push_back({{.bits = 2.5, .group_size = 32, .adaptive = true}, codec});
  }
  return out;
}

double parameter(const QuantizedView& view, ByteSpan array, std::uint64_t group) {
  if (view.parameter_dtype == DType::f64) {
    double number;
    std::memcpy(&number, array.data() + group * sizeof(number), sizeof(number));
    return number;
  }
  float number;
  std::memcpy(&number, array.data() + group * sizeof(number), sizeof(number));
  return static_cast<double>(number);
}

// What docs/format/format.md says of the arrays, one element after the other.
Tensor restored_by_hand(const QuantizedView& view, const TensorView& tensor) {
  std::vector<double> numbers;
  std::uint64_t bit = 0;
  for (std::uint64_t group = 0; group < view.groups; ++group) {
    const unsigned width = view.bits != 0 ? view.bits : view.widths[group];
    bit = (bit + 7) / 8 * 8;
    const std::uint64_t end =
        std::min((group + 1) * view.group_size, std::uint64_t{tensor.element_count()});
    while (numbers.size() < end) {
      unsigned code = 0;
      for (unsigned i = 0; i < width; ++i, ++bit)
        code |= (std::to_integer<unsigned>(view.codes[bit / 8]) >> (bit % 8) & 1u) << i;
      numbers.push_back(parameter(view, view.minima, group) +
                        code * parameter(view, view.scales, group));
    }
  }
  BOOST_TEST((bit + 7) / 8 == view.codes.size());
  return tensor_of(tensor.dtype(), tensor.shape(), numbers);
}

std::vector<std::byte> dense(const TensorView& tensor) {
  std::vector<std::byte> out(tensor.dense_bytes());
  tensor.read_dense(out);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_arrays_of_a_view_are_those_of_the_format) {
  for (const Form& form : forms()) {
    const QuantizedFile file(form);
    const Reader reader = Reader::open(file.path);
    for (const char* name : {"large", "double", "half"}) {
      const TensorView tensor = reader.region("layer").at(name);
      BOOST_TEST_CONTEXT(name << ", codec " << int(form.codec)) {
        std::vector<std::uint64_t> storage(tensor.logical_bytes() / 8 + 1);
        const MutableByteSpan bytes =
            std::as_writable_bytes(std::span(storage)).first(tensor.logical_bytes());
        const QuantizedView read = tensor.quantized(bytes);
        BOOST_TEST((restored_by_hand(read, tensor).bytes().size() == tensor.dense_bytes()));
        BOOST_TEST(same_bytes(restored_by_hand(read, tensor).bytes(), dense(tensor)));
        if (tensor.is_raw()) {
          const QuantizedView view = tensor.quantized();
          BOOST_TEST(same_bytes(view.codes, read.codes));
          BOOST_TEST(same_bytes(view.scales, read.scales));
          // Nothing was copied.
          BOOST_TEST((view.codes.data() < bytes.data() ||
                      view.codes.data() >= bytes.data() + bytes.size()));
        } else {
          BOOST_CHECK_EXCEPTION(tensor.quantized(), UsageError,
                                says(ErrorCode::wrong_state, "compressed", "quantized() into"));
        }
        BOOST_CHECK_EXCEPTION(tensor.quantized(bytes.first(8)), UsageError,
                              has_code(ErrorCode::size_mismatch));
        BOOST_CHECK_EXCEPTION(tensor.quantized(bytes.subspan(1)), UsageError,
                              has_code(ErrorCode::bad_argument));
      }
    }
    BOOST_CHECK_EXCEPTION(reader.region("layer").at("bias").quantized(), UsageError,
                          says(ErrorCode::wrong_state, "encoding", "dense", "quantized"));
  }
}

BOOST_AUTO_TEST_CASE(a_stream_restores_what_is_quantized) {
  for (const Form& form : forms()) {
    const QuantizedFile file(form);
    const Reader reader = Reader::open(file.path);
    const Reader other = Reader::open(file.path);
    for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
      // Less memory than the largest tensor takes, and more than all of them.
      for (const std::uint64_t memory : {4ull << 20, 64ull << 20}) {
        StreamReader stream(reader, {.io = io, .work = {.threads = 2, .memory_bytes = memory}});
        std::size_t count = 0;
        for (const StreamedTensor& item : stream) {
          const TensorView tensor = other.region("layer").at(item.tensor.name());
          BOOST_TEST(same_bytes(item.bytes, dense(tensor)));
          BOOST_TEST((item.layout.encoding == Encoding::dense));
          BOOST_TEST(!item.quantized);
          ++count;
        }
        BOOST_TEST(count == 4u);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stream_hands_out_codes_where_it_is_asked_to) {
  for (const Form& form : forms()) {
    const QuantizedFile file(form);
    const Reader reader = Reader::open(file.path);
    StreamReader stream(reader, {.quantized = StreamedQuantized::codes});
    std::size_t quantized = 0;
    for (const StreamedTensor& item : stream) {
      BOOST_TEST((item.layout == item.tensor.layout()));
      BOOST_TEST(item.bytes.size() == item.tensor.logical_bytes());
      if (item.tensor.encoding() != Encoding::quantized) continue;
      BOOST_TEST_REQUIRE(item.quantized.has_value());
      BOOST_TEST(
          same_bytes(restored_by_hand(*item.quantized, item.tensor).bytes(), dense(item.tensor)));
      ++quantized;
    }
    BOOST_TEST(quantized == 3u);
  }
}

BOOST_AUTO_TEST_CASE(restored_elements_go_where_the_caller_wants_them) {
  const QuantizedFile file({{.bits = 4, .group_size = 64}, Codec::none});
  const Reader reader = Reader::open(file.path);
  std::vector<std::byte> memory(16 << 20);
  std::size_t used = 0;
  StreamReader stream(reader, {.destination =
                                   [&](const TensorView&, std::uint64_t bytes) {
                                     const auto place =
                                         MutableByteSpan(memory).subspan(used, bytes);
                                     used += bytes;
                                     return place;
                                   },
                               .work = {.memory_bytes = 4 << 20}});
  std::uint64_t expected = 0;
  while (const auto item = stream.next()) {
    BOOST_TEST(same_bytes(item->bytes, dense(item->tensor)));
    BOOST_TEST(item->memory == nullptr);
    expected += item->tensor.dense_bytes();
  }
  BOOST_TEST(used == expected);
}

BOOST_AUTO_TEST_CASE(one_tensor_is_quantized_and_restored_as_a_file_would_hold_it) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal(0, 0.02);
  std::vector<double> numbers(70'001);
  for (double& number : numbers) number = normal(random);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const Tensor weights = tensor_of(dtype, {70'001}, numbers);
    const TemporaryFolder folder;
    write_layer(folder / "plain", {{"w", weights}});
    for (const bool adaptive : {false, true}) {
      quantize_file(folder / "plain", folder / "file",
                    {.bits = 3, .group_size = 64, .adaptive = adaptive}, {.save = quiet_save()});
      const TensorView stored = layer_tensor(folder / "file", "w");
      const auto codes = quantize(weights, {.bits = 3, .group_size = 64, .adaptive = adaptive});
      BOOST_TEST_REQUIRE(codes.has_value());
      const QuantizedView expected = stored.quantized(), arrays = codes->arrays();
      BOOST_TEST(same_bytes(arrays.codes, expected.codes));
      BOOST_TEST(same_bytes(arrays.scales, expected.scales));
      BOOST_TEST((codes->report.rms_error == quantization_of(stored)->rms_error));
      std::vector<std::byte> out(weights.bytes().size());
      dequantize(dtype, numbers.size(), arrays, out);
      BOOST_TEST(same_bytes(out, dense(stored)));
      dequantize(dtype, numbers.size(), expected, out, 1);
      BOOST_TEST(same_bytes(out, dense(stored)));

      const auto refused = [&](QuantizedView view, auto change, const char* what) {
        change(view);
        BOOST_CHECK_EXCEPTION(
            dequantize(dtype, numbers.size(), view, out), UsageError, [&](const UsageError& error) {
              return std::string_view(error.what()).find(what) != std::string_view::npos;
            });
      };
      refused(
          arrays, [](QuantizedView& v) { v.minima = v.minima.first(4); }, "minima");
      refused(
          arrays, [](QuantizedView& v) { ++v.groups; }, "groups");
      refused(
          arrays, [](QuantizedView& v) { v.group_size = 63; }, "group_size");
      refused(
          arrays, [](QuantizedView& v) { v.bits = 9; }, "bits");
      QuantizedView cut = arrays;
      cut.codes = cut.codes.first(cut.codes.size() - 1);
      BOOST_CHECK_EXCEPTION(dequantize(dtype, numbers.size(), cut, out), FormatError,
                            has_code(ErrorCode::bad_value));
      BOOST_CHECK_EXCEPTION(dequantize(dtype, 7, arrays, out), UsageError,
                            has_code(ErrorCode::size_mismatch));
    }
  }
  // Sensitivities move bits to the half that counts.
  const Tensor weights = tensor_of(DType::f32, {70'001}, numbers);
  Tensor sensitivity = Tensor::zeros(DType::f32, {70'001});
  for (std::size_t i = 0; i < 35'000; ++i) sensitivity.mutable_as<float>()[i] = 1;
  const auto codes = quantize(weights, {.bits = 4, .group_size = 1000}, &sensitivity);
  const QuantizedView arrays = codes->arrays();
  BOOST_TEST(arrays.bits == 0u);
  BOOST_TEST(arrays.widths[0] > arrays.widths[60]);
  numbers[5] = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(!quantize(tensor_of(DType::f32, {70'001}, numbers)));
  BOOST_CHECK_EXCEPTION(quantize(Tensor::zeros(DType::i32, {8})), UsageError,
                        has_code(ErrorCode::dtype_mismatch));
  BOOST_CHECK_EXCEPTION(quantize(weights, {.bits = 9}), UsageError,
                        has_code(ErrorCode::bad_argument));
}

// Codes whose arrays break a rule, with every checksum that would show it switched off.
BOOST_AUTO_TEST_CASE(wrong_arrays_are_damage_of_their_tensor_alone) {
  const QuantizedFile file({{.bits = 4, .group_size = 64}, Codec::none});
  std::uint64_t scales = 0;
  {
    const Reader reader = Reader::open(file.path);
    const TensorView tensor = reader.region("layer").at("half");
    const QuantizedView view = tensor.quantized();
    scales = tensor.stored_offset() + view.groups * sizeof(float);
  }
  const float not_finite = std::numeric_limits<float>::infinity();
  std::fstream(file.path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(scales))
      .write(reinterpret_cast<const char*>(&not_finite), sizeof(not_finite));
  const Reader reader = Reader::open(file.path, {.verification = Verification::off});
  for (const auto quantized : {StreamedQuantized::restored, StreamedQuantized::codes}) {
    std::vector<std::string> damaged;
    StreamReader stream(
        reader,
        {.quantized = quantized, .damaged = [&](const TensorView& tensor, const Error& error) {
           damaged.emplace_back(tensor.name());
           BOOST_TEST(says(ErrorCode::bad_value, "scales", "0 or more, and finite")(error));
         }});
    std::size_t count = 0;
    while (stream.next()) ++count;
    BOOST_TEST(count == 3u);
    BOOST_TEST(damaged == std::vector<std::string>{"half"}, boost::test_tools::per_element());
  }
  // With its checks the stream does not get so far.
  const Reader checked = Reader::open(file.path);
  StreamReader stream(checked);
  BOOST_CHECK_THROW(while (stream.next()){}, IntegrityError);
}

BOOST_AUTO_TEST_SUITE_END()
