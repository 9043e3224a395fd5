#include "thalia/formats/convert.h"

#include <set>
#include <string>

#include "boost_test.h"
#include "formats/v01/files.h"
#include "formats/v01/text.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/compress.h"
#include "thalia/formats/safetensors.h"
#include "thalia/formats/v01.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/precision.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(migration)

namespace {

constexpr FormatVersion kOriginal{0, 1, 0};
constexpr FormatVersion kCurrent{1, 0, 0};

MigrateOptions quick(bool across_major = false) {
  MigrateOptions options{.across_major = across_major};
  options.save.output.durability = Durability::none;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_precision_leaves_the_numbers_of_a_state_as_readers_expect_them) {
  const TemporaryFolder folder;
  migrate(v01_data("full.thalia"), folder / "a.thalia", kCurrent, quick());
  ConvertOptions options;
  options.precision = parse_precision_policy("fp16");
  convert(folder / "a.thalia", folder / "b.thalia", options);
  const Reader reader = Reader::open(folder / "b.thalia");
  for (const char* name : {"cortex/theta.phase", "cortex/dopamine"})
    BOOST_TEST((reader.tensor(name).dtype() == DType::f64), name);
  BOOST_TEST((reader.tensor("striatum/membrane").dtype() == DType::f32));
  const BrainState before = BrainCheckpoint::load(folder / "a.thalia");
  const BrainState after = BrainCheckpoint::load(folder / "b.thalia");
  BOOST_TEST((after.regions.at("cortex").neuromodulators() ==
              before.regions.at("cortex").neuromodulators()));
}

BOOST_AUTO_TEST_CASE(compressing_a_file_of_0_1_gives_one_that_its_readers_open) {
  const TemporaryFolder folder;
  const V01File plain = read_v01(v01_data("full.thalia"));
  for (const char* ending : {".zst", ".lz4"}) {
    const std::filesystem::path path = folder / (std::string("full.thalia") + ending);
    // Smaller than the file, which stays one frame all the same.
    const WrapResult result =
        compress_checkpoint(v01_data("full.thalia"), path, {.frame_bytes = 4096});
    BOOST_TEST(result.frames == 1u);
    const V01File file = read_v01(path);
    BOOST_TEST(file.checksum_inside);
    BOOST_TEST((file.document.metadata == plain.document.metadata));
    BOOST_TEST(file.document.entries.size() == plain.document.entries.size());
    BOOST_TEST(!read_wrapper(path)->has_seek_table);
    migrate(path, folder / "again.thalia", kCurrent, quick());
    std::filesystem::remove(folder / "again.thalia");
  }
}

BOOST_AUTO_TEST_CASE(what_is_possible_and_what_it_costs) {
  const Migration up = can_migrate(kOriginal, kCurrent);
  BOOST_TEST(up.possible);
  BOOST_TEST(!up.lossy);
  BOOST_TEST(up.automatic);
  const Migration down = can_migrate(kCurrent, kOriginal);
  BOOST_TEST(down.possible);
  BOOST_TEST(down.lossy);
  BOOST_TEST(!down.automatic);
  for (const FormatVersion& version : {kOriginal, kCurrent}) {
    const Migration same = can_migrate(version, version);
    BOOST_TEST((same.possible && !same.lossy && same.automatic));
  }
  // Other minor versions are read, and not written.
  BOOST_TEST(can_migrate({0, 9, 3}, kCurrent).possible);
  BOOST_TEST(can_migrate({1, 7, 0}, kOriginal).possible);
  for (const FormatVersion& version : {FormatVersion{0, 2, 0}, FormatVersion{1, 1, 0},
                                       FormatVersion{2, 0, 0}, FormatVersion{1, 0, 1}}) {
    const Migration none = can_migrate(kOriginal, version);
    BOOST_TEST(!none.possible);
    BOOST_TEST(none.reason.find(version.to_string()) != std::string::npos);
  }
  BOOST_TEST(!can_migrate({2, 0, 0}, kCurrent).possible);
  BOOST_TEST(can_migrate({2, 0, 0}, kCurrent).reason == "major version 2 is not known");
}

BOOST_AUTO_TEST_CASE(versions_are_texts) {
  BOOST_TEST((parse_format_version("0.1") == kOriginal));
  BOOST_TEST((parse_format_version("1.0.0") == kCurrent));
  BOOST_TEST((parse_format_version("3.20.65535") == FormatVersion{3, 20, 65535}));
  for (const char* text :
       {"", "1", "1.", ".1", "1.0.", "1.0.0.0", "v1.0", "1.x", "-1.0", "1.65536", "1.0 "})
    BOOST_TEST(!parse_format_version(text).has_value(), text);
  BOOST_TEST(kOriginal.to_string() == "0.1.0");
  BOOST_TEST((kOriginal < kCurrent));
}

BOOST_AUTO_TEST_CASE(versions_of_files_are_found_in_frames_too) {
  const TemporaryFolder folder;
  for (const char* name : {"full.thalia", "full.thalia.lz4", "eraA_full.thalia.zst"})
    BOOST_TEST((read_format_version(v01_data(name)) == kOriginal), name);
  BOOST_TEST(!read_format_version(v01_data("delta_stage1.delta.thalia")).has_value());
  write_file(folder / "short", "THAL");
  BOOST_TEST(!read_format_version(folder / "short").has_value());
  for (const char* name : {"new.thalia", "new.thalia.zst"}) {
    migrate(v01_data("full.thalia"), folder / name, kCurrent, quick());
    BOOST_TEST((read_format_version(folder / name) == kCurrent), name);
  }
}

BOOST_AUTO_TEST_CASE(files_of_the_original_become_valid_ones_and_come_back) {
  const TemporaryFolder folder;
  for (const auto& path : v01_positives()) {
    if (read_v01(path).aligned) continue;  // edited by hand
    BOOST_TEST_CONTEXT(path) {
      const auto up = migrate(path, folder / "new.thalia", kCurrent, quick());
      BOOST_TEST(up.losses.empty());
      BOOST_TEST((up.from == kOriginal));
      BOOST_TEST(up.tensors > 0u);
      BOOST_TEST(verify(folder / "new.thalia").ok());
      const auto down =
          migrate(folder / "new.thalia", folder / "old.thalia", kOriginal, quick(true));
      BOOST_TEST(down.losses.empty());
      BOOST_TEST(down.tensors > 0u);
      BOOST_TEST(down.tensors <= up.tensors);  // numbers of the dynamic state are tensors in 1.0
      const auto document = read_v01(path).document;
      BOOST_TEST((read_file(folder / "old.thalia") == v01_text(encode_v01(document))));
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_are_compressed_as_the_options_say) {
  const TemporaryFolder folder;
  MigrateOptions options = quick();
  options.save.compression.codec = Codec::zstd;
  migrate(v01_data("full.thalia"), folder / "new.thalia", kCurrent, options);
  const Reader reader = Reader::open(folder / "new.thalia");
  BOOST_TEST(reader.header().flags.compressed);
}

BOOST_AUTO_TEST_CASE(timestamp_and_steps_stay) {
  const TemporaryFolder folder;
  migrate(v01_data("full.thalia"), folder / "new.thalia", kCurrent, quick());
  const BrainInfo info = BrainCheckpoint::info(folder / "new.thalia");
  BOOST_TEST(info.timestamp == 1765000000u);
  BOOST_TEST(info.training_steps == 1000u);
  BOOST_TEST(info.growth_history.size() == 2u);
}

BOOST_AUTO_TEST_CASE(down_across_a_major_version_has_to_be_asked_for) {
  const TemporaryFolder folder;
  migrate(v01_data("full.thalia"), folder / "new.thalia", kCurrent, quick());
  BOOST_CHECK_EXCEPTION(migrate(folder / "new.thalia", folder / "old.thalia", kOriginal, quick()),
                        UsageError, says(ErrorCode::bad_argument, "across_major"));
  BOOST_TEST(!std::filesystem::exists(folder / "old.thalia"));
}

BOOST_AUTO_TEST_CASE(what_is_lost_is_listed) {
  const TemporaryFolder folder;
  BrainState brain;
  BrainRegion region{.n_inputs = 3, .neuron_type = NeuronType::lif};
  region.weights()["w"] = Tensor::zeros(DType::bf16, {2, 2});
  brain.regions.add("cortex", region);
  BrainSaveOptions save;
  save.save.output.durability = Durability::none;
  BrainCheckpoint::save(brain, folder / "new.thalia", save);
  const auto result =
      migrate(folder / "new.thalia", folder / "old.thalia.zst", kOriginal, quick(true));
  const std::vector<std::string> expected{
      "elements of type bf16 are stored as f32: 'cortex/weights.w'", "n_inputs of 'cortex' is lost",
      "neuron_type of 'cortex' is lost"};
  BOOST_TEST(result.losses == expected, boost::test_tools::per_element());
  BOOST_TEST((read_v01(folder / "old.thalia.zst").wrapper == Codec::zstd));
}

BOOST_AUTO_TEST_CASE(warnings_about_the_source_come_along) {
  const TemporaryFolder folder;
  const auto result =
      migrate(v01_data("flags_reserved_nonzero.thalia"), folder / "new.thalia", kCurrent, quick());
  BOOST_TEST(result.warnings.size() == 3u);
}

BOOST_AUTO_TEST_CASE(to_the_same_version_is_a_copy) {
  const TemporaryFolder folder;
  migrate(v01_data("full.thalia.lz4"), folder / "plain.thalia", kOriginal, quick());
  BOOST_TEST((read_file(folder / "plain.thalia") == read_file(v01_data("full.thalia"))));
  migrate(v01_data("full.thalia"), folder / "one.thalia", kCurrent, quick());
  migrate(folder / "one.thalia", folder / "two.thalia", kCurrent, quick());
  BOOST_TEST((BrainCheckpoint::load(folder / "one.thalia") ==
              BrainCheckpoint::load(folder / "two.thalia")));
}

// All of these names become one, and each looks for a number that is free.
BOOST_AUTO_TEST_CASE(names_that_become_equal_are_numbered_in_one_pass) {
  V01Document document;
  document.metadata = Value::object();
  std::string name = "\xED\xA0\x80";
  for (int i = 0; i < 1024; ++i) {
    name[1] = static_cast<char>(0xA0 + i / 64);
    name[2] = static_cast<char>(0x80 + i % 64);
    for (int j = 0; j < 64; ++j) document.metadata.add(name + std::string(1, char('0' + j)), i);
  }
  BOOST_TEST(formats::replace_lone_surrogates(document) == 65'536u);
  std::set<std::string> names;
  for (const auto& member : document.metadata.members()) names.insert(member.name);
  BOOST_TEST(names.size() == 65'536u);
  BOOST_TEST(
      names.contains("\xEF\xBF\xBD"
                     "0"));
  BOOST_TEST(
      names.contains("\xEF\xBF\xBD"
                     "0~1024"));
}

BOOST_AUTO_TEST_CASE(lone_surrogates_become_replacement_characters) {
  const TemporaryFolder folder;
  write_file(folder / "old.thalia",
             v01_file_of(R"({"a\ud800":"x\udfff\ud800y","a\ufffd":1})", R"({"\udc00":{}})"));
  const auto result = migrate(folder / "old.thalia", folder / "new.thalia", kCurrent, quick());
  BOOST_TEST_REQUIRE(result.losses.size() == 1u);
  BOOST_TEST(result.losses[0].starts_with("4 lone surrogates"));
  const BrainState brain = BrainCheckpoint::load(folder / "new.thalia");
  BOOST_TEST(brain.metadata.at("a\uFFFD~2").as_string() == "x\uFFFD\uFFFDy");
  BOOST_TEST(brain.regions.at("r").find("\uFFFD") != nullptr);
}

BOOST_AUTO_TEST_CASE(refuses_what_it_cannot_do) {
  const TemporaryFolder folder;
  const auto target = folder / "x.thalia";
  BOOST_CHECK_EXCEPTION(migrate(v01_data("full.thalia"), target, {2, 0, 0}, quick(true)),
                        UnsupportedError, says(ErrorCode::unsupported_version, "2.0.0"));
  std::string future = read_file(v01_data("full.thalia"));
  future[4] = 2;
  write_file(folder / "future.thalia", future);
  BOOST_CHECK_EXCEPTION(migrate(folder / "future.thalia", target, kCurrent, quick(true)),
                        UnsupportedError,
                        says(ErrorCode::unsupported_version, "future.thalia", "major version 2"));
  BOOST_CHECK_EXCEPTION(migrate(v01_data("delta_stage1.delta.thalia"), target, kCurrent, quick()),
                        UnsupportedError, says(ErrorCode::unsupported_version, "pickle"));
  write_file(folder / "text", "no checkpoint");
  BOOST_CHECK_EXCEPTION(migrate(folder / "text", target, kCurrent, quick()), FormatError,
                        says(ErrorCode::bad_magic, "text"));
  BOOST_CHECK_EXCEPTION(migrate(v01_data("neg_index_offset_oob.thalia"), target, kCurrent, quick()),
                        FormatError, has_code(ErrorCode::out_of_bounds));
  BOOST_CHECK_EXCEPTION(
      migrate(v01_data("full.thalia"), v01_data("full.thalia"), kOriginal, quick()), UsageError,
      says(ErrorCode::bad_argument, "another file"));
  BOOST_TEST(!std::filesystem::exists(target));
}

BOOST_AUTO_TEST_CASE(convert_knows_the_format) {
  const TemporaryFolder folder;
  for (const char* name : {"full.thalia", "full.thalia.lz4", "eraA_full.thalia.zst",
                           "delta_stage1.delta.thalia", "neg_index_offset_oob.thalia"})
    BOOST_TEST((detect_format(v01_data(name)) == FileFormat::thalia_0_1), name);
  ConvertOptions options;
  options.save.output.durability = Durability::none;
  const auto up = convert(v01_data("full.thalia"), folder / "new.thalia", options);
  BOOST_TEST(up.tensors >= 31u);
  BOOST_TEST((detect_format(folder / "new.thalia") == FileFormat::thalia));
  options.to = FileFormat::thalia_0_1;
  convert(folder / "new.thalia", folder / "old.thalia", options);
  BOOST_TEST((read_file(folder / "old.thalia") == read_file(v01_data("full.thalia"))));
}

BOOST_AUTO_TEST_CASE(a_policy_does_to_0_1_what_it_does_to_what_that_becomes) {
  const TemporaryFolder folder;
  ConvertOptions options;
  options.save.output.durability = Durability::none;
  convert(v01_data("full.thalia"), folder / "new.thalia", options);
  options.precision = parse_precision_policy("fp16");
  const ConvertResult one = convert(v01_data("full.thalia"), folder / "one.thalia", options);
  options.save.timestamp = 1765000000u;  // which is that of the 0.1 file
  const ConvertResult two = convert(folder / "new.thalia", folder / "two.thalia", options);
  BOOST_TEST(one.converted_tensors > 0u);
  BOOST_TEST(one.converted_tensors == two.converted_tensors);
  BOOST_TEST(one.rounding.largest_error > 0);
  BOOST_TEST(one.rounding.largest_error == two.rounding.largest_error);
  BOOST_TEST(one.rounding.largest_error_tensor == two.rounding.largest_error_tensor);
  const Reader first = Reader::open(folder / "one.thalia");
  const Reader second = Reader::open(folder / "two.thalia");
  BOOST_TEST(first.metadata_json() == second.metadata_json());
  BOOST_TEST(first.header().timestamp == 1765000000u);
  BOOST_TEST(verify(folder / "one.thalia").ok());

  options.precision = parse_precision_policy("no_such_tensor*=fp16");
  BOOST_CHECK_EXCEPTION(convert(v01_data("full.thalia"), folder / "x.thalia", options), UsageError,
                        says(ErrorCode::not_found, "no_such_tensor*"));
  BOOST_TEST(list_folder(folder.path()).size() == 3u);
}

// With a .thalia file in between that nobody sees.
BOOST_AUTO_TEST_CASE(version_0_1_goes_to_other_formats_in_one_step) {
  const TemporaryFolder folder;
  ConvertOptions options;
  options.save.output.durability = Durability::none;
  convert(v01_data("full.thalia"), folder / "new.thalia", options);
  for (const char* ending : {"safetensors", "mckp"}) {
    const auto target = [&](const char* name) {
      return folder / (std::string(name) + "." + ending);
    };
    options.dense = false;
    if (ending == std::string_view("safetensors")) {  // the other one has sparse tensors
      BOOST_CHECK_EXCEPTION(convert(v01_data("full.thalia"), target("x"), options),
                            UnsupportedError,
                            says(ErrorCode::unsupported_feature, "full.thalia", "--dense"));
      BOOST_TEST(!std::filesystem::exists(target("x")));
      options.dense = true;
    }
    const ConvertResult one = convert(v01_data("full.thalia"), target("one"), options);
    const ConvertResult two = convert(folder / "new.thalia", target("two"), options);
    BOOST_TEST((read_file(target("one")) == read_file(target("two"))));
    BOOST_TEST(one.tensors == two.tensors);
    BOOST_TEST(one.input_bytes == std::filesystem::file_size(v01_data("full.thalia")));
    BOOST_TEST(one.losses.size() >= two.losses.size());
  }
  // And back, as far as these formats have what 0.1 has.
  options.dense = false;
  options.to = FileFormat::thalia_0_1;
  save_safetensors(folder / "w.safetensors",
                   {{"w", DType::f32, {2}, as_byte_span(std::vector<float>{1, 2})}});
  convert(folder / "w.safetensors", folder / "w.thalia", options);
  BOOST_TEST((detect_format(folder / "w.thalia") == FileFormat::thalia_0_1));
  BOOST_TEST(list_folder(folder.path()).size() == 7u);
}

BOOST_AUTO_TEST_SUITE_END()
