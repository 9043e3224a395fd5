// Quantized tensors whose side data or arrays break the rules, and files that are cut or changed.
#include <cstring>
#include <limits>

#include "boost_test.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "state/quantize/quantization_sample.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(quantized_damage)

namespace {

constexpr std::uint64_t kElements = 100;

// A file with one tensor "w" of 100 elements in groups of 16.
std::string sample(bool adaptive, DType dtype = DType::f32) {
  const TemporaryFolder folder;
  write_layer(folder / "in", {{"w", tensor_of(dtype, {kElements}, normal_numbers(kElements, 1))}});
  QuantizeFileOptions options{.save = quiet_save()};
  options.save.file_uuid.emplace();
  quantize_file(folder / "in", folder / "out",
                {.bits = 3, .group_size = 16, .adaptive = adaptive, .min_elements = 1}, options);
  return read_file(folder / "out");
}

format::QuantizedSideData& side_data(EditableFile& file) {
  return file.at<format::QuantizedSideData>(file.layout().directory_offset +
                                            file.directory().side_data_offset +
                                            file.tensor("w").side_data_offset);
}

// What reading and verifying say of the edited file, sealed anew: both refuse it.
template <typename Edit>
std::string refusal(const std::string& bytes, Edit edit) {
  const TemporaryFolder folder;
  EditableFile file(bytes);
  edit(file);
  file.reseal();
  write_file(folder / "f", file.bytes());
  BOOST_TEST(!verify(folder / "f").ok());
  std::string said = "nothing";
  try {
    std::vector<std::byte> out(kElements * 8);
    const TensorView view = layer_tensor(folder / "f", "w");
    view.read_dense(std::span(out).first(view.dense_bytes()));
  } catch (const FormatError& error) {
    said = error.what();
  }
  return said;
}

bool mentions(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  BOOST_TEST_MESSAGE("'" << text << "' without '" << part << "'");
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(refuses_side_data_that_breaks_a_rule) {
  const std::string bytes = sample(false);
  const auto refused = [&](auto edit, std::string_view field) {
    BOOST_TEST(mentions(refusal(bytes, [&](EditableFile& file) { edit(side_data(file)); }), field));
  };
  using Side = format::QuantizedSideData;
  refused([](Side& side) { side.bits = 9; }, "bits");
  refused([](Side& side) { side.bits = 4; }, "code_length");
  refused([](Side& side) { side.bits = 0; }, "logical_length");
  refused([](Side& side) { side.zero_01 = 1; }, "zero_01");
  refused([](Side& side) { side.zero_06 = 1; }, "zero_06");
  refused([](Side& side) { side.zero_38[7] = 1; }, "zero_38");
  refused([](Side& side) { side.lossy_generation = 0; }, "lossy_generation");
  refused([](Side& side) { side.lossy_generation = 11; }, "lossy_generation");
  refused([](Side& side) { side.group_size = 12; }, "group_size");
  refused([](Side& side) { side.group_size = 65544; }, "group_size");
  refused([](Side& side) { side.group_size = 8; }, "logical_length");
  refused([](Side& side) { side.group_size = 0; }, "logical_length");
  refused([](Side& side) { side.code_length = ~std::uint64_t{0}; }, "code_length");
  for (const double error : {-1.0, double(NAN), double(HUGE_VAL)}) {
    refused([&](Side& side) { side.max_error = std::bit_cast<std::uint64_t>(error); }, "max_error");
    refused([&](Side& side) { side.rms_error = std::bit_cast<std::uint64_t>(error); }, "rms_error");
  }
}

BOOST_AUTO_TEST_CASE(refuses_entries_that_a_quantized_tensor_cannot_have) {
  const std::string bytes = sample(false);
  const auto refused = [&](auto edit, std::string_view field) {
    BOOST_TEST(
        mentions(refusal(bytes, [&](EditableFile& file) { edit(file.tensor("w")); }), field));
  };
  using Entry = format::TensorEntry;
  refused([](Entry& entry) { entry.side_data_length = 63; }, "side_data_length");
  refused([](Entry& entry) { entry.side_data_length = 0; }, "side_data_length");
  refused([](Entry& entry) { entry.side_data_offset = 8; }, "side_data_offset");
  refused([](Entry& entry) { entry.dtype = DType::f64; }, "logical_length");
  refused([](Entry& entry) { entry.dtype = DType::i32; }, "dtype");
  refused([](Entry& entry) { entry.shape[0] = 92; }, "code_length");
  refused([](Entry& entry) { entry.shape[0] = std::uint64_t{1} << 61; }, "");
  refused([](Entry& entry) { entry.logical_length = 1; }, "logical_length");
  refused([](Entry& entry) { entry.nnz = 1; }, "nnz");
  refused([](Entry& entry) { entry.flags = 1; }, "flags");
}

BOOST_AUTO_TEST_CASE(refuses_parameters_and_widths_that_break_a_rule) {
  // 7 groups: minima at 0, scales at 28, codes at 56.
  const std::string fixed = sample(false);
  const auto set = [](std::uint64_t at, float number) {
    return [=](EditableFile& file) {
      std::memcpy(file.payload("w").data() + at, &number, sizeof number);
      file.reseal_tensor("w");
    };
  };
  for (const float number : {NAN, HUGE_VALF, -HUGE_VALF}) {
    BOOST_TEST(mentions(refusal(fixed, set(24, number)), "minima"));
    BOOST_TEST(mentions(refusal(fixed, set(28, number)), "scales"));
  }
  BOOST_TEST(mentions(refusal(fixed, set(32, -0.5F)), "scales"));
  // 7 widths in front, and a byte of padding.
  const std::string mixed = sample(true);
  const auto poke = [](std::uint64_t at, int value) {
    return [=](EditableFile& file) {
      file.payload("w")[at] = static_cast<std::byte>(value);
      file.reseal_tensor("w");
    };
  };
  BOOST_TEST(mentions(refusal(mixed, poke(3, 9)), "widths"));
  BOOST_TEST(mentions(refusal(mixed, poke(3, 255)), "widths"));
  BOOST_TEST(mentions(refusal(mixed, poke(0, 8)), "widths"));
  BOOST_TEST(mentions(refusal(mixed, poke(0, 0)), ""));
}

BOOST_AUTO_TEST_CASE(verify_reports_what_readers_do_not_look_at) {
  const auto finding = [](const std::string& bytes, auto edit) {
    const TemporaryFolder folder;
    EditableFile file(bytes);
    edit(file);
    file.reseal();
    write_file(folder / "f", file.bytes());
    const VerifyReport report = verify(folder / "f");
    BOOST_TEST(report.findings.size() == 1u);
    return report.findings.empty() ? std::string() : report.findings.front().message;
  };
  // Codes of 3 bits: the last group has 4, in 12 of 16 bits.
  BOOST_TEST(mentions(finding(sample(false),
                              [](EditableFile& file) {
                                file.payload("w").back() |= std::byte{0x80};
                                file.reseal_tensor("w");
                              }),
                      "bits in use"));
  BOOST_TEST(mentions(finding(sample(true),
                              [](EditableFile& file) {
                                file.payload("w")[7] = std::byte{1};
                                file.reseal_tensor("w");
                              }),
                      "padding"));
  BOOST_TEST(
      mentions(finding(sample(false),
                       [](EditableFile& file) { side_data(file).content_hash.bytes[3] ^= 1; }),
               "other elements come out"));
  BOOST_TEST(mentions(
      finding(sample(false), [](EditableFile& file) { side_data(file).crc32 = std::uint32_t{7}; }),
      "other elements come out"));
  BOOST_TEST(mentions(finding(sample(false),
                              [](EditableFile& file) {
                                file.payload("w")[57] ^= std::byte{1};
                                file.reseal_tensor("w");
                              }),
                      "other elements come out"));
}

BOOST_AUTO_TEST_CASE(survives_every_cut_and_every_flipped_byte) {
  const TemporaryFolder folder;
  for (const bool adaptive : {false, true}) {
    const std::string bytes = sample(adaptive);
    for (std::size_t length = 0; length < bytes.size(); length += 7) {
      write_file(folder / "f", bytes.substr(0, length));
      BOOST_TEST_REQUIRE(walk_file(folder / "f", Verification::off).errors > 0u);
    }
    EditableFile whole(bytes);
    const std::uint64_t side = whole.layout().directory_offset + whole.directory().side_data_offset;
    const std::uint64_t payload = whole.tensor("w").stored_offset;
    const auto flip = [&](std::uint64_t at) {
      for (const int mask : {1, 0x80, 0xFF}) {
        EditableFile file(bytes);
        file.bytes()[at] = static_cast<char>(file.bytes()[at] ^ mask);
        file.reseal_tensor("w");
        file.reseal();
        write_file(folder / "f", file.bytes());
        walk_file(folder / "f", Verification::off);
        const bool harmless = at - side == offsetof(format::QuantizedSideData, max_error) ||
                              verify(folder / "f").ok();
        // Errors and bounds that were written cannot be told from others.
        if (at >= side && harmless) {
          const std::uint64_t field = at - side;
          BOOST_TEST_REQUIRE((field < 6 || (field >= 0x18 && field < 0x28)));
        }
      }
    };
    for (std::uint64_t at = side; at < side + sizeof(format::QuantizedSideData); ++at) flip(at);
    for (std::uint64_t at = payload; at < payload + whole.tensor("w").stored_length; ++at) flip(at);
  }
}

BOOST_AUTO_TEST_SUITE_END()
