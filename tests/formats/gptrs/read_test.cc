// Files of tests/data/formats/gptrs: written by gpt.rs and its scripts, or by hand, with what the
// reader of gpt.rs says of each.
#include <filesystem>
#include <set>
#include <string>

#include "boost_test.h"
#include "formats/gptrs/samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/gptrs.h"

using namespace thalia;
using test::gptrs_compatible;
using test::gptrs_from;
using test::gptrs_path;
using test::gptrs_vector;
using test::text_of;

BOOST_AUTO_TEST_SUITE(gptrs_read)

namespace {

enum class Verdict {
  good,            ///< opens, and all tensors are read
  type,            ///< gpt.rs opens it and does not read a tensor of 16 bits; here it is read
  get,             ///< gpt.rs opens it and fails to read a tensor
  strict_refuses,  ///< gpt.rs opens it and reads all
  rank_0,          ///< gpt.rs panics; here it is read
  refused,         ///< gpt.rs does not open it
};

// What the sidecar of each vector says, "reader_current" and "reader_get".
const struct {
  const char* name;
  Verdict verdict;
  ErrorCode code;  ///< of ours, if it is refused
} kVectors[] = {
    {"bad_config_kind_not_string.gptrschk", Verdict::refused, ErrorCode::bad_value},
    {"bad_config_not_json.gptrschk", Verdict::refused, ErrorCode::bad_json},
    {"bad_config_untagged_gpt.gptrschk", Verdict::refused, ErrorCode::bad_value},
    {"bad_dtype_tag.gptrschk", Verdict::refused, ErrorCode::unsupported_dtype},
    {"bad_id_mismatch.gptrschk", Verdict::refused, ErrorCode::inconsistent},
    {"bad_index_len_short.gptrschk", Verdict::refused, ErrorCode::out_of_bounds},
    {"bad_len_shape_mismatch.gptrschk", Verdict::get, ErrorCode::inconsistent},
    {"bad_magic.gptrschk", Verdict::refused, ErrorCode::bad_magic},
    {"bad_name_nonascii.gptrschk", Verdict::refused, ErrorCode::bad_name},
    {"bad_name_utf8.gptrschk", Verdict::refused, ErrorCode::bad_name},
    {"bad_truncated_data.gptrschk", Verdict::get, ErrorCode::out_of_bounds},
    {"bad_truncated_index.gptrschk", Verdict::refused, ErrorCode::truncated},
    {"bad_version_1.gptrschk", Verdict::refused, ErrorCode::unsupported_version},
    {"bad_version_3.gptrschk", Verdict::refused, ErrorCode::unsupported_version},
    {"cfg_kind_only.gptrschk", Verdict::good, {}},
    {"cfg_runtime.gptrschk", Verdict::good, {}},
    {"hand_v2_bf16.gptrschk", Verdict::type, {}},
    {"hand_v2_bool_2.gptrschk", Verdict::good, {}},
    {"hand_v2_dup_names.gptrschk", Verdict::strict_refuses, ErrorCode::bad_name},
    // Its two tensors lie on the same bytes.
    {"hand_v2_f16.gptrschk", Verdict::strict_refuses, ErrorCode::out_of_bounds},
    {"hand_v2_stored_id.gptrschk", Verdict::good, {}},
    {"hand_v2_trailing_file_bytes.gptrschk", Verdict::good, {}},
    {"hand_v2_trailing_index_bytes.gptrschk", Verdict::strict_refuses, ErrorCode::inconsistent},
    {"legacy_interim_bincode_v2.gptrschk", Verdict::refused, ErrorCode::bad_value},
    {"legacy_interim_bincode_v2_tagged.gptrschk", Verdict::refused, ErrorCode::inconsistent},
    {"legacy_v1.gptrschk", Verdict::refused, ErrorCode::unsupported_version},
    {"legacy_v1.gptrsten", Verdict::refused, ErrorCode::unsupported_version},
    {"py_empty.gptrschk", Verdict::good, {}},
    {"py_empty.gptrsten", Verdict::good, {}},
    {"py_gpt_small.gptrschk", Verdict::good, {}},
    {"py_mixed.gptrsten", Verdict::good, {}},
    {"py_nonascii_name.gptrschk", Verdict::refused, ErrorCode::bad_name},
    {"py_requires_grad.gptrschk", Verdict::good, {}},
    {"py_scalar_rank0_or_1.gptrschk", Verdict::good, {}},
    {"rank0.gptrschk", Verdict::rank_0, {}},
    {"rust_empty.gptrsten", Verdict::good, {}},
    {"rust_gpt_small.gptrschk", Verdict::good, {}},
};

void read_all(const GptrsFile& file) {
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const GptrsTensor& tensor = file.tensors()[i];
    const Tensor read = file.read_entry(i);
    BOOST_TEST(read.bytes().size() == tensor.stored_bytes);
    BOOST_TEST((read.dtype() == tensor.dtype && read.shape() == tensor.shape));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_vector_is_judged_as_the_original_judges_it) {
  std::set<std::string> names;
  for (const auto& one : kVectors) BOOST_TEST_CONTEXT(one.name) {
      names.insert(one.name);
      const auto strict = [&] { return GptrsFile::open(gptrs_path(one.name)); };
      const auto compatible = [&] {
        return GptrsFile::open(gptrs_path(one.name), gptrs_compatible());
      };
      switch (one.verdict) {
        case Verdict::good:
        case Verdict::type:
        case Verdict::rank_0:
          read_all(strict());
          read_all(compatible());
          break;
        case Verdict::strict_refuses:
          BOOST_CHECK_EXCEPTION(strict(), FormatError, test::says(one.code, one.name));
          read_all(compatible());
          break;
        case Verdict::get:
          BOOST_CHECK_EXCEPTION(strict(), FormatError, test::says(one.code, one.name));
          BOOST_CHECK_EXCEPTION(compatible().read("w"), FormatError,
                                test::says(one.code, one.name, "'w'"));
          break;
        case Verdict::refused:
          BOOST_CHECK_EXCEPTION(strict(), Error, test::says(one.code, one.name));
          BOOST_CHECK_EXCEPTION(compatible(), Error, test::says(one.code, one.name));
          break;
      }
    }
  for (const std::string& name : test::list_folder(gptrs_path("")))
    if (name.find(".gptrs") != std::string::npos) BOOST_TEST(names.count(name) == 1u, name);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_the_rust_writer_is_read) {
  const GptrsFile file = GptrsFile::open(gptrs_path("rust_gpt_small.gptrschk"));
  BOOST_TEST((file.format() == GptrsFormat::checkpoint));
  BOOST_TEST(file.version() == 2u);
  BOOST_TEST(file.file_bytes() == 1259u);
  BOOST_TEST(file.tensors().size() == 7u);
  BOOST_TEST(file.config_text() ==
             R"({"kind":"gpt","config":{"context_length":4,"dropout":0.0,"embed_dim":4,)"
             R"("mlp_ratio":2,"num_heads":2,"num_layers":1,"vocab_size":8}})");
  BOOST_TEST(file.model_config().kind == "gpt");
  BOOST_TEST(!file.config_was_untagged());
  const GptrsTensor& first = file.tensors().front();
  BOOST_TEST(first.name == "blocks.0.attention.b_qkv");
  BOOST_TEST(first.id.to_string() == "e1de55c2eb48b3901bcd149b4757e9ef");
  BOOST_TEST(first.id_stored);
  BOOST_TEST(first.offset == 671u);
  const Tensor by_name = file.read("blocks.0.attention.w_qkv");
  BOOST_TEST((by_name.shape() == Shape({4, 12})));
  const Tensor values = by_name.owned();
  BOOST_TEST(values.as<float>()[1] == 1.0f / 64);
  BOOST_TEST(values.as<float>()[47] == 47.0f / 64);
  const Tensor by_id = file.read(base_param_id("blocks.0.attention.w_qkv"));
  BOOST_TEST((by_id == by_name));
  // In the file's bytes, not in a copy.
  BOOST_TEST(by_id.bytes().data() == by_name.bytes().data());
  BOOST_TEST((file.read("steps").dtype() == DType::i32));
  BOOST_CHECK_EXCEPTION(file.read("step"), UsageError,
                        test::says(ErrorCode::not_found, "did you mean 'steps'?"));
  BOOST_CHECK_EXCEPTION(file.read(base_param_id("step")), UsageError,
                        test::has_code(ErrorCode::not_found));
  BOOST_TEST(file.find("step") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_tensor_keeps_the_file_open) {
  const Tensor tensor = GptrsFile::open(gptrs_path("py_requires_grad.gptrschk")).read("a.weight");
  BOOST_TEST(tensor.bytes().size() == 24u);
  BOOST_TEST(test::hex(tensor.bytes()) == test::hex(tensor.owned().bytes()));
}

BOOST_AUTO_TEST_CASE(an_archive_of_the_python_writer_is_read) {
  const GptrsFile file = GptrsFile::open(gptrs_path("py_mixed.gptrsten"));
  BOOST_TEST((file.format() == GptrsFormat::archive));
  BOOST_TEST(file.config_text().empty());
  BOOST_CHECK_EXCEPTION(file.model_config(), UsageError, test::has_code(ErrorCode::wrong_state));
  BOOST_TEST(file.tensors()[0].name == "h\xc3\xa9");
  BOOST_TEST(file.tensors()[1].requires_grad == 1);
  BOOST_TEST((file.tensors()[1].shape == Shape({1, 3, 2, 2})));
  const Tensor tokens = file.read("tokens").owned();
  BOOST_TEST(tokens.as<std::int32_t>()[4] == 4);
  BOOST_TEST(file.find(base_param_id("tokens")) == nullptr);
}

BOOST_AUTO_TEST_CASE(of_a_name_that_repeats_the_last_entry_is_found) {
  const GptrsFile file =
      GptrsFile::open(gptrs_path("hand_v2_dup_names.gptrschk"), gptrs_compatible());
  BOOST_TEST(file.tensors().size() == 2u);
  BOOST_TEST(file.read("w").owned().as<float>()[0] == 2.0f);
  BOOST_TEST(file.read(base_param_id("w")).owned().as<float>()[0] == 2.0f);
  BOOST_TEST(file.read_entry(0).owned().as<float>()[0] == 1.0f);
}

BOOST_AUTO_TEST_CASE(types_of_16_bits_are_read) {
  const GptrsFile file = GptrsFile::open(gptrs_path("hand_v2_bf16.gptrschk"));
  BOOST_TEST((file.read("w").dtype() == DType::bf16));
  const GptrsFile half = GptrsFile::open(gptrs_path("hand_v2_f16.gptrschk"), gptrs_compatible());
  BOOST_TEST((half.read("w").dtype() == DType::f16));
  BOOST_TEST(test::hex(half.read("w").bytes()) == "0000803f");
  BOOST_TEST(test::hex(half.read("ok").bytes()) == "0000803f00000040");
}

BOOST_AUTO_TEST_CASE(flags_are_kept_as_they_stand) {
  const GptrsFile file = GptrsFile::open(gptrs_path("hand_v2_bool_2.gptrschk"));
  BOOST_TEST(file.tensors()[0].requires_grad == 2);
  const GptrsFile python = GptrsFile::open(gptrs_path("py_requires_grad.gptrschk"));
  BOOST_TEST(python.find("a.weight")->requires_grad == 1);
  BOOST_TEST(python.find("b.bias")->requires_grad == 0);
  BOOST_TEST(!python.find("b.bias")->id_stored);
}

BOOST_AUTO_TEST_CASE(version_1_is_read_on_request) {
  const GptrsReadOptions options{.version_1 = true};
  const GptrsFile checkpoint = GptrsFile::open(gptrs_path("legacy_v1.gptrschk"), options);
  BOOST_TEST(checkpoint.version() == 1u);
  BOOST_TEST(checkpoint.config_was_untagged());
  BOOST_TEST(checkpoint.model_config().kind == "gpt");
  BOOST_TEST(checkpoint.tensors().size() > 0u);
  read_all(checkpoint);
  const GptrsFile archive = GptrsFile::open(gptrs_path("legacy_v1.gptrsten"), options);
  BOOST_TEST((archive.format() == GptrsFormat::archive));
  read_all(archive);
  // A file of version 2 that says 1: its index is no entry.
  BOOST_CHECK_THROW(GptrsFile::open(gptrs_path("bad_version_1.gptrschk"), options), FormatError);
  BOOST_CHECK_EXCEPTION(GptrsFile::open(gptrs_path("legacy_v1.gptrschk")), UnsupportedError,
                        test::says(ErrorCode::unsupported_version, "on request"));
}

BOOST_AUTO_TEST_CASE(an_untagged_config_is_wrapped_on_request) {
  const GptrsFile file =
      GptrsFile::open(gptrs_path("bad_config_untagged_gpt.gptrschk"), {.untagged_config = true});
  BOOST_TEST(file.config_was_untagged());
  BOOST_TEST(file.model_config().kind == "gpt");
  BOOST_TEST(file.model_config().config == file.config_text());
  BOOST_CHECK_THROW(
      GptrsFile::open(gptrs_path("bad_config_kind_not_string.gptrschk"), {.untagged_config = true}),
      FormatError);
  // The index of that time is not one of ours.
  BOOST_CHECK_THROW(
      GptrsFile::open(gptrs_path("legacy_interim_bincode_v2.gptrschk"), {.untagged_config = true}),
      FormatError);
}

BOOST_AUTO_TEST_CASE(a_copied_file_reads_the_same) {
  const GptrsReadOptions options{.input = {.access = Access::copied}};
  const GptrsFile file = GptrsFile::open(gptrs_path("py_gpt_small.gptrschk"), options);
  const GptrsFile mapped = GptrsFile::open(gptrs_path("py_gpt_small.gptrschk"));
  for (const GptrsTensor& tensor : mapped.tensors())
    BOOST_TEST((file.read(tensor.name) == mapped.read(tensor.name)));
  BOOST_CHECK_THROW(GptrsFile::open(gptrs_path("no_such_file")), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
