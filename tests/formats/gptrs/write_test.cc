// What is written: the bytes of the two writers of gpt.rs, and of files that come back from
// metadata.
#include <numeric>
#include <string>

#include "boost_test.h"
#include "formats/gptrs/opened.h"
#include "formats/gptrs/samples.h"
#include "formats/gptrs/sink.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using formats::SinkInput;
using formats::SinkOptions;
using test::gptrs_from;
using test::gptrs_path;
using test::gptrs_vector;
using test::HandFile;

BOOST_AUTO_TEST_SUITE(gptrs_write)

namespace {

std::vector<GptrsParam> params_of(const GptrsFile& file) {
  std::vector<GptrsParam> params;
  for (const GptrsTensor& tensor : file.tensors())
    params.push_back({.name = tensor.name,
                      .tensor = file.read(tensor.name),
                      .requires_grad = tensor.requires_grad != 0});
  return params;
}

Tensor floats(const Shape& shape) {
  return Tensor::zeros(DType::f32, shape);
}

struct Written {
  std::string bytes;
  std::vector<std::string> losses;
};

using Sink = formats::WriteTensors;

const OpenOptions kLegacy{.chain = {.read = {.input = {.legacy = true}}}};

// Tensors in the reverse order: what is written does not depend on it.
Written through(Sink sink, const std::shared_ptr<const formats::OpenedFile>& source,
                const std::string& metadata, SinkOptions options = {}) {
  const test::TemporaryFolder folder;
  const auto& tensors = source->facts().tensors;
  SinkInput input{.metadata = metadata};
  for (std::size_t i = tensors.size(); i-- > 0;)
    input.tensors.push_back({.name = tensors[i].name, .layout = tensors[i].layout});
  Written written;
  bool announced = false;
  options.announce = [&](const std::vector<std::string>& losses) {
    BOOST_TEST(test::list_folder(folder.path()).empty());
    written.losses = losses;
    announced = true;
  };
  const std::uint64_t bytes =
      sink(folder / "out", input, options, [&](std::size_t i, const formats::PieceSink& piece) {
        source->visit(tensors.size() - 1 - i, piece);
      });
  BOOST_TEST(announced);
  written.bytes = test::read_file(folder / "out");
  BOOST_TEST(written.bytes.size() == bytes);
  return written;
}

std::shared_ptr<const formats::OpenedFile> source_of(const std::string& bytes,
                                                     const GptrsReadOptions& options = {}) {
  return formats::opened_gptrs(gptrs_from(bytes, options));
}

// Through the metadata that a .thalia file would hold.
Written there_and_back(const std::string& bytes, const GptrsReadOptions& options = {}) {
  const auto source = source_of(bytes, options);
  const bool is_archive = bytes.compare(0, 8, "GPTRSTEN") == 0;
  return through(is_archive ? formats::write_gptrsten : formats::write_gptrs, source,
                 source->facts().metadata, {.all_types = true});
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_both_writers_are_written_byte_for_byte) {
  const test::TemporaryFolder folder;
  const struct {
    const char* name;
    bool store_ids;
  } kCheckpoints[] = {{"rust_gpt_small.gptrschk", true},
                      {"py_gpt_small.gptrschk", false},
                      {"py_empty.gptrschk", false},
                      {"py_requires_grad.gptrschk", false},
                      {"py_scalar_rank0_or_1.gptrschk", false},
                      {"hand_v2_stored_id.gptrschk", true},
                      {"cfg_runtime.gptrschk", false}};
  for (const auto& one : kCheckpoints) BOOST_TEST_CONTEXT(one.name) {
      const GptrsFile file = GptrsFile::open(gptrs_path(one.name));
      std::vector<GptrsParam> params = params_of(file);
      std::reverse(params.begin(), params.end());
      const std::uint64_t bytes = save_gptrs_checkpoint(folder / "out", params, file.config_text(),
                                                        {.store_ids = one.store_ids});
      BOOST_TEST(bytes == file.file_bytes());
      BOOST_TEST((test::read_file(folder / "out") == gptrs_vector(one.name)));
    }
  for (const char* const name : {"rust_empty.gptrsten", "py_empty.gptrsten", "py_mixed.gptrsten"}) {
    save_gptrs_archive(folder / "out", params_of(GptrsFile::open(gptrs_path(name))));
    BOOST_TEST((test::read_file(folder / "out") == gptrs_vector(name)), name);
  }
}

BOOST_AUTO_TEST_CASE(what_the_original_cannot_read_is_refused_before_anything_is_written) {
  const test::TemporaryFolder folder;
  const std::string config = R"({"kind":"gpt"})";
  const auto save = [&](std::vector<GptrsParam> params, bool half_types = false) {
    save_gptrs_checkpoint(folder / "out", params, config, {.half_types = half_types});
  };
  const auto with = [](DType dtype) {
    return std::vector<GptrsParam>{{.name = "w", .tensor = Tensor::zeros(dtype, {2})}};
  };
  const auto unsupported = test::has_code(ErrorCode::unsupported_feature);
  BOOST_CHECK_EXCEPTION(save(with(DType::f64)), UnsupportedDtypeError,
                        test::says(ErrorCode::unsupported_dtype, "out", "'w'", "f64"));
  BOOST_CHECK_EXCEPTION(save(with(DType::bf16)), UnsupportedDtypeError,
                        test::says(ErrorCode::unsupported_dtype, "on request"));
  BOOST_CHECK_EXCEPTION(save({{.name = "h\xc3\xa9", .tensor = floats({1})}}), UnsupportedError,
                        unsupported);
  BOOST_CHECK_EXCEPTION(save({{.name = "w", .tensor = floats({})}}), UnsupportedError, unsupported);
  BOOST_CHECK_EXCEPTION(
      save({{.name = "w", .tensor = floats({1})}, {.name = "w", .tensor = floats({1})}}),
      UsageError, test::has_code(ErrorCode::duplicate));
  BOOST_CHECK_EXCEPTION(save({{.name = "w", .tensor = floats({2, 2}).to_csr()}}), UsageError,
                        test::has_code(ErrorCode::bad_argument));
  for (const char* const bad : {"", "{}", "{\"kind\":1}", "{\"kind\":\"x\",\"runtime\":3}"})
    BOOST_CHECK_EXCEPTION(save_gptrs_checkpoint(folder / "out", {}, bad), UsageError,
                          test::says(ErrorCode::bad_argument, "config", "out"));
  BOOST_CHECK_EXCEPTION(
      save_gptrs_archive(folder / "out", {{.name = "\xff", .tensor = floats({1})}}),
      UnsupportedError, unsupported);
  BOOST_TEST(test::list_folder(folder.path()).empty());

  save(with(DType::bf16), true);
  BOOST_TEST((GptrsFile::open(folder / "out").read("w").dtype() == DType::bf16));
}

BOOST_AUTO_TEST_CASE(progress_is_told_and_a_stop_leaves_the_old_file) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "out", "old");
  std::stop_source stop;
  std::uint64_t last = 0;
  GptrsWriteOptions options;
  options.work.cancel = stop.get_token();
  options.work.progress = [&](std::uint64_t done, std::uint64_t total) {
    BOOST_TEST(total == 24u);
    last = done;
    stop.request_stop();
  };
  const std::vector<GptrsParam> params = {{.name = "a", .tensor = floats({4})},
                                          {.name = "b", .tensor = floats({2})}};
  BOOST_CHECK_THROW(save_gptrs_archive(folder / "out", params, options), CancelledError);
  BOOST_TEST(last == 16u);
  BOOST_TEST(test::read_file(folder / "out") == "old");
  BOOST_CHECK_EXCEPTION(save_gptrs_archive(folder / "out", params, {.output = {.replace = false}}),
                        UsageError, test::has_code(ErrorCode::exists));
}

BOOST_AUTO_TEST_CASE(canonical_files_come_back_from_their_metadata_byte_for_byte) {
  for (const char* const name :
       {"rust_gpt_small.gptrschk", "py_gpt_small.gptrschk", "py_empty.gptrschk",
        "py_requires_grad.gptrschk", "py_scalar_rank0_or_1.gptrschk", "hand_v2_stored_id.gptrschk",
        "hand_v2_bool_2.gptrschk", "cfg_runtime.gptrschk", "cfg_kind_only.gptrschk",
        "rust_empty.gptrsten", "py_mixed.gptrsten"}) {
    const Written written = there_and_back(gptrs_vector(name));
    BOOST_TEST((written.bytes == gptrs_vector(name)), name);
    BOOST_TEST(written.losses.empty(), name);
  }
  // Another order, ids of some tensors only, a config with white space, escapes and numbers that
  // nobody writes.
  HandFile file;
  file.config =
      " {\n\"kind\" : \"\\u0067pt\", \"config\":{\"a\":1.50,\"a\":1e+2, \"\xc3\xa9\":null}}\t";
  const auto disk = base_param_id("a").disk_bytes();
  file.entries = {{.name = "b", .flag = 255},
                  {.name = "a",
                   .offset = 8,
                   .id = std::string(reinterpret_cast<const char*>(disk.data()), disk.size())},
                  {.name = "", .dims = {0, 7}, .tag = 3, .flag = 1, .offset = 16, .length = 0}};
  file.data += file.data;
  BOOST_TEST((there_and_back(file.bytes()).bytes == file.bytes()));
}

BOOST_AUTO_TEST_CASE(other_files_come_back_without_gaps) {
  const std::string canonical = HandFile{}.bytes();
  HandFile gap;
  gap.entries[0].offset = 3;
  gap.data = "gap" + gap.data;
  BOOST_TEST((there_and_back(gap.bytes()).bytes == canonical));
  BOOST_TEST((there_and_back(canonical + "more").bytes == canonical));
  HandFile index;
  index.behind_index = "more";
  BOOST_TEST((there_and_back(index.bytes(), {.strict = false}).bytes == canonical));
  // All of it is said to be lost, and nothing of files that have no such bytes.
  const auto losses = [](const std::string& bytes, const GptrsReadOptions& options = {}) {
    return source_of(bytes, options)->facts().losses;
  };
  const std::vector<std::string> said{"bytes that are no tensor's"};
  BOOST_TEST((losses(gap.bytes()) == said));
  BOOST_TEST((losses(canonical + "more") == said));
  BOOST_TEST((losses(index.bytes(), {.strict = false}) == said));
  const std::string old = gptrs_vector("legacy_v1.gptrsten");
  BOOST_TEST((losses(old + "more", {.version_1 = true}) == said));
  BOOST_TEST(losses(old, {.version_1 = true}).empty());
  for (const char* const name :
       {"rust_gpt_small.gptrschk", "py_empty.gptrschk", "py_mixed.gptrsten", "rust_empty.gptrsten",
        "hand_v2_dup_names.gptrschk"})
    BOOST_TEST(losses(gptrs_vector(name), test::gptrs_compatible()).size() ==
               (std::string_view(name).starts_with("hand") ? 1u : 0u));
  // A scalar comes back with a dimension.
  const Written scalar = there_and_back(gptrs_vector("rank0.gptrschk"));
  BOOST_TEST((gptrs_from(scalar.bytes).tensors()[0].shape == Shape({1})));
  BOOST_TEST(scalar.losses.size() == 1u);
}

BOOST_AUTO_TEST_CASE(version_1_comes_back_as_version_2) {
  const GptrsReadOptions options{.version_1 = true};
  const std::string old = gptrs_vector("legacy_v1.gptrschk");
  const auto source = source_of(old, options);
  BOOST_TEST(source->facts().version == "1");
  const GptrsFile before = gptrs_from(old, options);
  const GptrsFile after = gptrs_from(there_and_back(old, options).bytes);
  BOOST_TEST(after.version() == 2u);
  BOOST_TEST(after.model_config().kind == "gpt");
  BOOST_TEST(after.model_config().config == before.model_config().config);
  for (const GptrsTensor& tensor : before.tensors()) {
    BOOST_TEST((after.read(tensor.name) == before.read(tensor.name)));
    BOOST_TEST(after.find(tensor.name)->id_stored);
  }
  BOOST_TEST(
      std::is_sorted(after.tensors().begin(), after.tensors().end(),
                     [](const GptrsTensor& a, const GptrsTensor& b) { return a.name < b.name; }));
}

BOOST_AUTO_TEST_CASE(a_source_shows_the_tensor_that_a_name_finds) {
  const auto source = formats::open_gptrs_file(gptrs_path("hand_v2_dup_names.gptrschk"), kLegacy);
  BOOST_TEST(source->facts().tensors.size() == 1u);
  BOOST_TEST(source->facts().losses.size() == 1u);
  BOOST_TEST((source->facts().tensors[0].offset == 162u));
  BOOST_TEST(source->read(0).owned().as<float>()[0] == 2.0f);
  BOOST_CHECK_THROW(formats::open_gptrs_file(gptrs_path("hand_v2_dup_names.gptrschk"), {}),
                    FormatError);
  BOOST_CHECK_THROW(formats::open_gptrs_file(gptrs_path("legacy_v1.gptrsten"), {}),
                    UnsupportedError);
  BOOST_TEST(formats::open_gptrs_file(gptrs_path("legacy_v1.gptrsten"), kLegacy)->facts().version ==
             "1");
}

BOOST_AUTO_TEST_CASE(a_config_is_made_of_metadata_from_elsewhere) {
  const auto source = source_of(gptrs_vector("py_mixed.gptrsten"));
  const auto tokens_only = source_of(HandFile{}.bytes());
  const auto config = [&](const std::string& metadata) {
    return std::string(
        gptrs_from(through(formats::write_gptrs, tokens_only, metadata).bytes).config_text());
  };
  BOOST_TEST(config("{}") == R"({"kind":"thalia","config":{}})");
  BOOST_TEST(config(R"({"b": 1.0, "a": [{}]})") ==
             R"({"kind":"thalia","config":{"b":1.0,"a":[{}]}})");
  // What is a config stays as it is.
  const std::string good = R"( {"config": {"x": 1}, "kind": "resnet34", "more": 2})";
  BOOST_TEST(config(good) == good);
  BOOST_TEST(config(R"({"kind":"x","runtime":1})") ==
             R"({"kind":"thalia","config":{"kind":"x","runtime":1}})");
  // An archive's metadata hold no config.
  const std::string archive = source->facts().metadata;
  BOOST_TEST(config(archive) == R"({"kind":"thalia","config":{}})");
  // Ids are stored.
  BOOST_TEST(
      gptrs_from(through(formats::write_gptrs, tokens_only, "{}").bytes).tensors()[0].id_stored);
  // A name that a checkpoint cannot have.
  BOOST_CHECK_THROW(through(formats::write_gptrs, source, "{}"), UnsupportedError);
}

BOOST_AUTO_TEST_CASE(what_is_lost_is_said) {
  const auto source = source_of(gptrs_vector("py_requires_grad.gptrschk"));
  std::string metadata = source->facts().metadata;
  metadata.insert(metadata.size() - 1, R"(,"mine":1)");
  const Written checkpoint = through(formats::write_gptrs, source, metadata);
  BOOST_TEST((checkpoint.bytes == gptrs_vector("py_requires_grad.gptrschk")));
  BOOST_TEST((checkpoint.losses == std::vector<std::string>{"metadata: 'mine'"}));
  const Written archive = through(formats::write_gptrsten, source, metadata);
  BOOST_TEST(archive.losses.size() == 2u);
  BOOST_TEST(gptrs_from(archive.bytes).find("a.weight")->requires_grad == 1);
}

BOOST_AUTO_TEST_CASE(edited_source_metadata_are_foreign_and_never_half_understood) {
  const auto source = source_of(HandFile{}.bytes());
  const std::string good = source->facts().metadata;
  BOOST_TEST(good == R"({"format":"gptrs","gptrs":{"file":"GPTRSCHK",)"
                     R"("config":"{\"kind\":\"gpt\",\"config\":{}}","ids":"zero"}})");
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& metadata :
       {edited("GPTRSCHK", "GPTRSXXX"), edited("\"file\":\"GPTRSCHK\",", ""),
        edited("GPTRSCHK", "GPTRSTEN"), edited("{\\\"kind", "{\\\"kinds"),
        edited("\"zero\"", "\"some\""), edited("\"zero\"", "[1]"),
        edited("\"zero\"", "[\"a\",\"a\"]"),
        edited("\"zero\"", "\"zero\",\"requires_grad\":{\"w\":256}"),
        edited("\"zero\"", "\"zero\",\"requires_grad\":{\"w\":0}"),
        edited("\"zero\"", "\"zero\",\"requires_grad\":[]"),
        edited("\"zero\"", "\"zero\",\"order\":[\"w\",\"w\"]"),
        edited("\"zero\"", "\"zero\",\"order\":\"w\""), edited("\"zero\"", "\"zero\",\"x\":1"),
        edited("\"ids\":\"zero\"", "\"ids\":\"zero\",\"ids\":\"zero\""),
        std::string(R"({"format":"gptrs","gptrs":3})"), std::string(R"({"gptrs":[]})")})
    BOOST_TEST_CONTEXT(metadata) {
      const GptrsFile file = gptrs_from(through(formats::write_gptrs, source, metadata).bytes);
      BOOST_TEST(file.model_config().kind == "thalia");
      BOOST_TEST(file.model_config().config == metadata);
      BOOST_TEST(file.tensors()[0].id_stored);
    }
  // Names of tensors that are gone are no fault.
  const GptrsFile file = gptrs_from(
      through(formats::write_gptrs, source,
              edited("\"zero\"", "[\"gone\"],\"order\":[\"gone\"],\"requires_grad\":{\"gone\":1}"))
          .bytes);
  BOOST_TEST(file.model_config().kind == "gpt");
  BOOST_TEST(!file.tensors()[0].id_stored);
}

BOOST_AUTO_TEST_SUITE_END()
