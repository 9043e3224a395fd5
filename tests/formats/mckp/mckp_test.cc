#include "thalia/formats/mckp.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <stop_token>
#include <string>

#include "boost_test.h"
#include "codec/frame/zstd_frame.h"
#include "formats/mckp/format.h"
#include "formats/mckp/samples.h"
#include "integrity/xxh64.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/state/value.h"

using namespace thalia;
using test::mckp_bytes;
using test::NamedTensors;
using test::open_bytes;

BOOST_AUTO_TEST_SUITE(mckp)

namespace {

constexpr Codec kCodecs[] = {Codec::none, Codec::zstd, Codec::lz4, Codec::plane_entropy,
                             Codec::packed_exponents};

void check_same(const MckpFile& file, const NamedTensors& tensors) {
  BOOST_REQUIRE_EQUAL(file.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    BOOST_TEST_CONTEXT("tensor " << tensors[i].first) {
      BOOST_TEST(file.tensors()[i].name == tensors[i].first);
      BOOST_TEST((file.read(tensors[i].first) == tensors[i].second));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_dtype_comes_back_through_every_codec) {
  NamedTensors tensors;
  for (unsigned i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string name(dtype_name(dtype));
    tensors.emplace_back(name + ".odd", test::random_tensor(dtype, {7, 13}, i));
    tensors.emplace_back(name + ".empty", test::random_tensor(dtype, {4, 0, 3}, i));
    tensors.emplace_back(name + ".scalar", test::random_tensor(dtype, {}, i));
    tensors.emplace_back(name + ".zeros", Tensor::zeros(dtype, {1, 1, 1, 1, 1, 1, 3, 77}));
  }
  for (const Codec codec : kCodecs)
    for (const bool grouping : {false, true}) {
      const std::string bytes = mckp_bytes(
          tensors,
          {.compression = {.codec = codec}, .byte_grouping = grouping, .work = {.threads = 2}});
      const MckpFile file =
          open_bytes(bytes, {.verify = true, .chain = {.read = {.work = {.threads = 2}}}});
      check_same(file, tensors);
      file.verify();
      BOOST_TEST(file.file_bytes() == bytes.size());
    }
}

BOOST_AUTO_TEST_CASE(tensors_of_many_pieces_come_back) {
  // Three pieces and a part, under sanitizers one; planes that begin and end inside of pieces.
  const std::uint64_t count = (test::kSanitized ? 1 : 3) * formats::kMckpPiece / 4 + 234567;
  const NamedTensors tensors{{"f32", test::normal_f32({count}, 1)},
                             {"bf16", test::normal_bf16({count}, 2)},
                             {"f64", test::random_tensor(DType::f64, {count / 2}, 3)},
                             {"u8", test::random_tensor(DType::u8, {count}, 4)}};
  for (const Codec codec : {Codec::zstd, Codec::lz4, Codec::plane_entropy, Codec::packed_exponents})
    for (const unsigned threads : {1u, 3u}) {
      if (test::kSanitized && (threads == 1 || codec == Codec::lz4)) continue;
      MckpWriteResult result;
      const std::string bytes = mckp_bytes(
          tensors,
          {.compression = {.codec = codec}, .work = {.threads = threads, .memory_bytes = 1 << 20}},
          {}, &result);
      BOOST_TEST(result.file_bytes == bytes.size());
      BOOST_TEST(result.tensors == 4u);
      check_same(open_bytes(bytes, {.chain = {.read = {.work = {.threads = threads}}}}), tensors);
    }
}

BOOST_AUTO_TEST_CASE(bytes_do_not_depend_on_threads_or_on_where_they_waited) {
  const NamedTensors tensors{{"a", test::normal_f32({1'500'000}, 1)},
                             {"b", test::normal_bf16({100}, 2)},
                             {"c", test::random_tensor(DType::u8, {999}, 2)}};
  const std::string once = mckp_bytes(tensors, {.work = {.threads = 1}});
  BOOST_TEST((once == mckp_bytes(tensors, {.work = {.threads = 4}})));
  BOOST_TEST((once == mckp_bytes(tensors, {.work = {.threads = 2, .memory_bytes = 0}})));
}

BOOST_AUTO_TEST_CASE(what_does_not_shrink_is_stored) {
  const NamedTensors tensors{{"noise", test::random_tensor(DType::u8, {10'000}, 1)},
                             {"zeros", Tensor::zeros(DType::f32, {10'000})}};
  const MckpFile file = open_bytes(mckp_bytes(tensors, {.compression = {.codec = Codec::zstd}}));
  BOOST_TEST((file.find("noise")->method == MckpMethod{}));
  BOOST_TEST(file.find("noise")->compressed_size == 10'000u);
  BOOST_TEST((file.find("zeros")->method ==
              MckpMethod{.codec = Codec::zstd, .delta = false, .plane_width = 4}));
  BOOST_TEST(file.find("zeros")->compressed_size < 100u);
  BOOST_TEST(file.find("none") == nullptr);
}

BOOST_AUTO_TEST_CASE(weights_reach_the_ratio_of_their_entropy) {
  const NamedTensors tensors{{"bf16", test::normal_bf16({1 << 20}, 1)}};
  const auto size = [&](const MckpWriteOptions& options) {
    return static_cast<double>(mckp_bytes(tensors, options).size());
  };
  const double raw = 2 << 20;
  BOOST_TEST(raw / size({.compression = {.codec = Codec::zstd, .level = 1}}) > 1.35);
  BOOST_TEST(raw / size({.compression = {.codec = Codec::packed_exponents}}) > 1.4);
  BOOST_TEST(raw / size({.compression = {.codec = Codec::plane_entropy}}) > 1.45);
  // Grouping is what makes zstd see the exponents.
  BOOST_TEST(size({.compression = {.codec = Codec::zstd, .level = 1}}) <
             size({.compression = {.codec = Codec::zstd, .level = 1}, .byte_grouping = false}));
}

BOOST_AUTO_TEST_CASE(a_file_on_disk_is_mapped_and_read_one_tensor_at_a_time) {
  const test::TemporaryFolder folder;
  const NamedTensors tensors{{"model.w", test::normal_f32({100, 10}, 1)},
                             {"", test::normal_f32({3}, 2)},
                             {"ümläut/\n", test::normal_f32({5}, 3)}};
  MckpWriter writer(folder / "a.mckp",
                    {.header = {.training_step = 1000, .metadata = R"({"lr":0.1,"note":"x"})"},
                     .output = {.durability = Durability::none}});
  for (const auto& [name, tensor] : tensors) writer.add(name, tensor);
  const MckpWriteResult result = writer.commit();
  BOOST_TEST(std::filesystem::file_size(folder / "a.mckp") == result.file_bytes);
  BOOST_TEST(test::list_folder(folder.path()).size() == 1u);
  BOOST_CHECK_EXCEPTION(writer.commit(), UsageError, test::has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(writer.add("x", Tensor()), UsageError,
                        test::has_code(ErrorCode::wrong_state));

  const MckpFile file = MckpFile::open(folder / "a.mckp");
  check_same(file, tensors);
  BOOST_TEST(file.header().training_step.value() == 1000u);
  BOOST_TEST(file.header().metadata == R"({"lr":0.1,"note":"x"})");
  BOOST_TEST(file.header().original_size == 4'032u);
  BOOST_TEST(!file.header().previous);
  BOOST_TEST((file.header().content_hash == result.content_hash));
  BOOST_CHECK_EXCEPTION(file.read("absent"), UsageError, test::has_code(ErrorCode::not_found));
  MckpChain::open(folder / "a.mckp").verify_content();

  // One block broken: the others still come back, and verify() tells.
  std::string bytes = test::read_file(folder / "a.mckp");
  bytes[file.find("model.w")->offset + 40] ^= 1;
  const MckpFile broken = open_bytes(bytes);
  BOOST_CHECK_EXCEPTION(broken.read("model.w"), IntegrityError,
                        test::says(ErrorCode::checksum_mismatch, "model.w", "test.mckp"));
  BOOST_TEST((broken.read("") == tensors[1].second));
  BOOST_CHECK_THROW(broken.verify(), IntegrityError);
  BOOST_CHECK_THROW(open_bytes(bytes, {.verify = true}), IntegrityError);
}

BOOST_AUTO_TEST_CASE(quantized_numbers_lie_within_half_a_step) {
  const Tensor weights = test::normal_f32({1000}, 1);
  const std::vector<float> strange{1.0f, std::nanf(""), 2.0f};
  const NamedTensors tensors{{"w", weights},
                             {"h", test::normal_bf16({77}, 3)},
                             {"optimizer.m", weights},
                             {"nan", Tensor::copy_of<float>({3}, strange)},
                             {"equal", Tensor::zeros(DType::f16, {50})},
                             {"empty", Tensor::zeros(DType::f64, {0})},
                             {"d", test::random_tensor(DType::i32, {50}, 1)}};
  for (unsigned bits = 1; bits <= 8; ++bits)
    for (const Codec codec : kCodecs) {
      MckpWriteResult result;
      const std::string bytes = mckp_bytes(
          tensors,
          {.compression = {.codec = codec},
           .quantization = MckpQuantizationOptions{.bits = bits, .exclude = {"optimizer.*"}}},
          {}, &result);
      const MckpFile file = open_bytes(bytes);
      for (const char* const same : {"optimizer.m", "nan", "equal", "d"}) {
        const auto given = std::ranges::find(tensors, same, &NamedTensors::value_type::first);
        BOOST_TEST((file.read(same) == given->second), same << " of " << bits << " bits");
      }
      BOOST_TEST(!file.find("nan")->method.quantized);
      BOOST_TEST(!file.find("optimizer.m")->method.quantized);
      BOOST_TEST(file.find("equal")->quantization->scale == 0.0);
      const MckpTensor& stored = *file.find("w");
      BOOST_TEST(stored.quantization->bits == bits);
      const Tensor restored = file.read("w");
      double largest = 0;
      for (std::size_t i = 0; i < 1000; ++i) {
        const double before = weights.as<float>()[i], after = restored.as<float>()[i];
        largest = std::max(largest, std::fabs(after - before));
      }
      BOOST_TEST(largest > 0.0);
      BOOST_TEST(largest <= stored.quantization->scale / 2 * 1.0001);
      BOOST_TEST(result.largest_error >= largest);
      BOOST_TEST(result.quantized_tensors == 4u);
      // 1, 2 and 4 bits are packed, other widths take a byte.
      const std::uint64_t most = (bits == 1 || bits == 2 || bits == 4) ? 125 * bits : 1000;
      BOOST_TEST(stored.compressed_size <= most);
      // The hash is of what comes back.
      MckpWriteResult again;
      NamedTensors back;
      for (const auto& [name, tensor] : tensors) back.emplace_back(name, file.read(name));
      mckp_bytes(back, {}, {}, &again);
      BOOST_TEST((again.content_hash == result.content_hash));
    }
}

BOOST_AUTO_TEST_CASE(two_bit_codes_are_what_their_arithmetic_says) {
  const std::vector<float> numbers{-1.0f, 2.0f, 0.4f, 0.6f, 1.5f};
  const NamedTensors tensors{{"w", Tensor::copy_of<float>({5}, numbers)}};
  const std::string bytes = mckp_bytes(
      tensors,
      {.compression = {.codec = Codec::none}, .quantization = MckpQuantizationOptions{.bits = 2}});
  const MckpFile file = open_bytes(bytes);
  const MckpTensor& stored = *file.find("w");
  BOOST_TEST((stored.quantization == MckpQuantization{.bits = 2, .minimum = -1.0, .scale = 1.0}));
  // Codes 0 3 1 2 | 3 (2.5 rounds away from zero), lowest bits first.
  BOOST_TEST(stored.compressed_size == 2u);
  const std::string payload = bytes.substr(stored.offset + 25, 2);
  BOOST_TEST(test::hex(test::bytes_of(payload)) == "9c03");
  const std::vector<float> expected{-1, 2, 0, 1, 2};
  const Tensor restored = file.read("w");
  BOOST_TEST(restored.as<float>() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wrong_requests_are_refused) {
  std::string ignored;
  const auto writer_of = [&](const MckpWriteOptions& options) {
    return MckpWriter([&](ByteSpan piece) { ignored += test::text_of(piece); }, options);
  };
  const auto bad = test::has_code(ErrorCode::bad_argument);
  BOOST_CHECK_EXCEPTION(writer_of({.compression = {.level = 23}}), UsageError, bad);
  BOOST_CHECK_EXCEPTION(writer_of({.compression = {.codec = Codec{9}}}), UsageError, bad);
  BOOST_CHECK_EXCEPTION(writer_of({.compression = {.codec = Codec::lz4, .level = 13}}), UsageError,
                        bad);
  BOOST_CHECK_EXCEPTION(writer_of({.header = {.metadata = "[]"}}), UsageError, bad);
  BOOST_CHECK_EXCEPTION(writer_of({.quantization = MckpQuantizationOptions{.bits = 9}}), UsageError,
                        bad);
  BOOST_CHECK_EXCEPTION(writer_of({.quantization = MckpQuantizationOptions{.bits = 0}}), UsageError,
                        bad);
  BOOST_CHECK_EXCEPTION(writer_of({.header = {.previous = MckpPrevious{"../x", {}}}}), UsageError,
                        bad);
  MckpWriter writer = writer_of({});
  writer.add("a", Tensor());
  BOOST_CHECK_EXCEPTION(writer.add("a", Tensor()), UsageError,
                        test::has_code(ErrorCode::duplicate));
  BOOST_CHECK_EXCEPTION(writer.add("\xff", Tensor()), UsageError, bad);
  BOOST_CHECK_EXCEPTION(writer.add(std::string(65'536, 'n'), Tensor()), UsageError, bad);
  writer.add(std::string(65'535, 'n'), Tensor());
  BOOST_TEST(writer.commit().tensors == 2u);

  std::stop_source stop;
  stop.request_stop();
  MckpWriter stopped = writer_of({.work = {.cancel = stop.get_token()}});
  BOOST_CHECK_THROW(stopped.add("a", Tensor()), CancelledError);
}

// Put together by hand in docs/format/mckp.md: the bytes there, and nothing of the writer.
BOOST_AUTO_TEST_CASE(the_example_of_the_document_is_read) {
  const std::string page =
      test::read_file(std::filesystem::path(THALIA_SOURCE_ROOT) / "docs/format/mckp.md");
  const std::size_t begin = page.find("```hex\n") + 7;
  std::istringstream lines(page.substr(begin, page.find("```", begin) - begin));
  std::string line, bytes;
  while (std::getline(lines, line)) {
    std::erase(line, ' ');
    for (std::size_t i = line.find(':') + 1; i < line.size(); i += 2)
      bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  }
  BOOST_TEST(bytes.size() == 475u);
  const MckpFile file = open_bytes(bytes, {.verify = true});
  file.verify();
  const std::vector<float> expected{1, -2};
  const Tensor x = file.read("x");
  BOOST_TEST(x.as<float>() == expected, boost::test_tools::per_element());
  BOOST_TEST(file.find("x")->offset == 0x1aau);
  // The hash in it is the one that the writer gives to the same tensor.
  MckpWriteResult result;
  mckp_bytes({{"x", x}}, {}, {}, &result);
  BOOST_TEST((file.header().content_hash == result.content_hash));
}

BOOST_AUTO_TEST_CASE(a_delta_of_identical_tensors_is_zeros) {
  const Tensor base = test::normal_f32({10'000}, 1);
  Tensor next = base;
  next.mutable_as<float>()[17] += 1;
  const MckpPrevious previous{.key = "step_1", .content_hash = {}};
  MckpWriteResult result;
  const std::string bytes =
      mckp_bytes({{"w", base}, {"x", next}}, {.header = {.previous = previous}},
                 {{"w", base}, {"x", base}}, &result);
  BOOST_TEST(result.delta_tensors == 2u);
  BOOST_TEST(bytes.size() < 1000u);
  const MckpFile file = open_bytes(bytes);
  BOOST_TEST((file.header().previous == previous));
  BOOST_TEST(file.find("w")->method.delta);
  BOOST_TEST((file.read("w", base) == base));
  BOOST_TEST((file.read("x", base) == next));
  try {
    static_cast<void>(file.read("w"));
    BOOST_ERROR("a delta without a base was read");
  } catch (const MissingBaseError& error) {
    BOOST_TEST(error.base() == "step_1");
  }
  BOOST_CHECK_THROW(file.read("w", Tensor::zeros(DType::f32, {100, 100})), ShapeMismatchError);
  BOOST_CHECK_EXCEPTION(file.read("w", Tensor::zeros(DType::i32, {10'000})), UsageError,
                        test::has_code(ErrorCode::dtype_mismatch));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_its_base_is_stored_by_itself) {
  const MckpPrevious previous{.key = "p", .content_hash = {}};
  const Tensor tensor = test::normal_f32({100, 10}, 1);
  MckpWriteResult result;
  const NamedTensors tensors{{"shape", tensor}, {"dtype", tensor}, {"new", tensor}};
  const MckpFile file =
      open_bytes(mckp_bytes(tensors, {.header = {.previous = previous}},
                            {{"shape", test::normal_f32({10, 100}, 1)},
                             {"dtype", test::random_tensor(DType::i32, {100, 10}, 1)}},
                            &result));
  BOOST_TEST(result.delta_tensors == 0u);
  // A file without a delta names no previous checkpoint.
  BOOST_TEST(!file.header().previous);
  check_same(file, tensors);
  // Nor does a base count where the options name none.
  mckp_bytes(tensors, {}, tensors, &result);
  BOOST_TEST(result.delta_tensors == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
