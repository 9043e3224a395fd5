// Models of several .thalia files, what a folder is opened by, and files that are a part of a
// model.
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/samples.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/gguf.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"
#include "thalia/state/quantization.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(shards)

namespace {

constexpr std::uint32_t kOfModel[] = {1, 2, 3};

// Writes a shard of two regions, each of which has a tensor of one name.
void write_shard(const std::filesystem::path& path, const char* own, std::uint32_t number) {
  Writer writer(path, {.output = {.durability = Durability::none, .replace = true}});
  for (const char* const region : {"cortex", "thalamus"}) {
    const RegionId id = writer.add_region({.name = region});
    writer.add_tensor(id, {.name = own + std::string(region), .dtype = DType::u32, .shape = {1}},
                      std::as_bytes(std::span(&kOfModel[number], 1)));
  }
  writer.commit();
}

void write_index(const std::filesystem::path& path,
                 const std::vector<std::pair<std::string, std::string>>& places) {
  std::string text = "{\"weight_map\":{";
  for (const auto& [tensor, file] : places)
    text += (text.back() == '{' ? "\"" : ",\"") + tensor + "\":\"" + file + "\"";
  write_file(path, text + "}}");
}

void write_shards(const TemporaryFolder& folder) {
  write_shard(folder / "model-00001-of-00002.thalia", "a.", 0);
  write_shard(folder / "model-00002-of-00002.thalia", "b.", 1);
  write_index(folder / "model.thalia.index.json", {{"a.cortex", "model-00001-of-00002.thalia"},
                                                   {"b.cortex", "model-00002-of-00002.thalia"},
                                                   {"b.thalamus", "model-00002-of-00002.thalia"},
                                                   {"a.thalamus", "model-00001-of-00002.thalia"}});
}

std::string lost(const std::filesystem::path& input, const std::filesystem::path& output) {
  ConvertOptions options;
  options.save.output = {.durability = Durability::none, .replace = true};
  std::string told;
  options.on_losses = [&](const std::vector<std::string>& losses) {
    for (const std::string& loss : losses) told += loss + "\n";
  };
  convert(input, output, options);
  return told;
}

}  // namespace

BOOST_AUTO_TEST_CASE(several_thalia_files_are_one_model) {
  const TemporaryFolder folder;
  write_shards(folder);
  for (const auto& path : {folder.path(), folder / "model.thalia.index.json"}) {
    const AnyFile file = open_any(path);
    BOOST_TEST((file.format() == FileFormat::thalia_shards));
    BOOST_TEST_REQUIRE(file.tensors().size() == 4u);
    BOOST_TEST(!file.lacks());
    BOOST_TEST((file.read("b.thalamus").bytes()[0] == std::byte{2}));
  }
  BOOST_TEST(files_read(folder.path()).size() == 3u);
  // Regions are those of the files, and so are tensors' own names.
  BOOST_TEST(lost(folder.path(), folder / "whole.thalia").empty());
  const Reader whole = Reader::open(folder / "whole.thalia");
  BOOST_TEST(whole.region_count() == 2u);
  BOOST_TEST(whole.region("cortex").find("b.cortex").has_value());
  extract(folder.path(), {"thalamus"}, folder / "part.thalia");
  const Reader part = Reader::open(folder / "part.thalia");
  BOOST_TEST(part.region_count() == 1u);
  BOOST_TEST(part.region("thalamus").tensor_count() == 2u);
  BOOST_CHECK_EXCEPTION(extract(folder.path(), {"thalamos"}, folder / "part.thalia"), UsageError,
                        says(ErrorCode::not_found, "did you mean 'thalamus'?", "index.json"));
  // No file that is read is written over.
  ConvertOptions options;
  options.save.output.replace = true;
  BOOST_CHECK_EXCEPTION(convert(folder.path(), folder / "model-00001-of-00002.thalia", options),
                        UsageError, says(ErrorCode::bad_argument, "a file that is read"));
  BOOST_CHECK_EXCEPTION(convert(folder.path(), folder / "x.thalia.index.json"), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "read only"));
}

BOOST_AUTO_TEST_CASE(who_takes_one_file_takes_one_of_several_parts) {
  const TemporaryFolder folder;
  const auto parts = folder / "parts";
  std::filesystem::create_directory(parts);
  write_shard(parts / "model-00001-of-00002.thalia", "a.", 0);
  write_shard(parts / "model-00002-of-00002.thalia", "b.", 1);
  const auto index = parts / "model.thalia.index.json";
  write_index(index, {{"a.cortex", "model-00001-of-00002.thalia"},
                      {"b.cortex", "model-00002-of-00002.thalia"},
                      {"b.thalamus", "model-00002-of-00002.thalia"},
                      {"a.thalamus", "model-00001-of-00002.thalia"}});
  convert(parts, folder / "whole.thalia");
  write_shard(folder / "old.thalia", "a.", 2);
  const auto is_whole = [&](const std::filesystem::path& file) {
    const Reader whole = Reader::open(folder / "whole.thalia");
    BOOST_TEST(diff(Reader::open(file), whole).same());
  };
  for (const auto& path : {parts, index}) {
    BOOST_TEST(is_in_parts(path));
    const ResolvedFile one(path, folder.path());
    BOOST_TEST(one.is_copy());
    BOOST_TEST(one.reader().region("cortex").tensor_count() == 2u);
    merge({path}, folder / "merged.thalia", {}, {.save = {.output = {.replace = true}}});
    is_whole(folder / "merged.thalia");
    resolve(path, folder / "resolved.thalia", {}, {.output = {.replace = true}});
    is_whole(folder / "resolved.thalia");
    const DeltaResult delta = write_delta(folder / "old.thalia", path, folder / "new.delta.thalia",
                                          {}, {.save = {.output = {.replace = true}}});
    BOOST_TEST(delta.tensors == 4u);
    resolve(folder / "new.delta.thalia", folder / "resolved.thalia", {},
            {.output = {.replace = true}});
    is_whole(folder / "resolved.thalia");
    const QuantizeFileResult quantized = quantize_file(path, folder / "quantized.thalia", {},
                                                       {.save = {.output = {.replace = true}}});
    BOOST_TEST(quantized.tensors == 4u);
    is_whole(folder / "quantized.thalia");  // of integers nothing is quantized
    BOOST_TEST(BrainCheckpoint::load(one.reader()).regions.size() == 2u);
    const MigrateResult down = migrate(path, folder / "v01.thalia", {0, 1, 0}, [] {
      MigrateOptions options;
      options.across_major = true;
      options.save.output.replace = true;
      return options;
    }());
    BOOST_TEST(down.tensors == 4u);
    BOOST_CHECK_EXCEPTION(write_delta(path, folder / "old.thalia", folder / "x.delta.thalia"),
                          UsageError, says(ErrorCode::bad_argument, "base", "one file"));
    // What is read is not written over.
    const auto part = parts / "model-00002-of-00002.thalia";
    const auto refused = says(ErrorCode::bad_argument, "a file that is read");
    const SaveOptions over{.output = {.replace = true}};
    for (const auto& file : {part, index}) {
      BOOST_CHECK_EXCEPTION(merge({path}, file, {}, {.save = over}), UsageError, refused);
      BOOST_CHECK_EXCEPTION(resolve(path, file, {}, over), UsageError, refused);
      BOOST_CHECK_EXCEPTION(write_delta(folder / "old.thalia", path, file, {},
                                        {.save = {.output = {.replace = true}}}),
                            UsageError, refused);
      BOOST_CHECK_EXCEPTION(quantize_file(path, file, {}, {.save = over}), UsageError, refused);
    }
  }
}

BOOST_AUTO_TEST_CASE(parts_that_say_something_else_of_one_region_are_no_model) {
  const TemporaryFolder folder;
  write_shards(folder);
  Writer writer(folder / "model-00001-of-00002.thalia", {.output = {.replace = true}});
  for (const char* const region : {"cortex", "thalamus"}) {
    const RegionId id = writer.add_region({.name = region, .n_neurons = 7});
    writer.add_tensor(id, {.name = std::string("a.") + region, .dtype = DType::u32, .shape = {1}},
                      std::as_bytes(std::span(&kOfModel[0], 1)));
  }
  writer.commit();
  BOOST_CHECK_EXCEPTION(ResolvedFile(folder.path(), {}), UsageError,
                        says(ErrorCode::duplicate, "model-00002-of-00002.thalia", "cortex",
                             "an earlier part has other texts or sizes for it"));
}

BOOST_AUTO_TEST_CASE(a_part_that_is_no_file_is_a_finding) {
  const TemporaryFolder folder;
  write_shards(folder);
  BOOST_TEST(verify_any(folder.path()).ok());
  const auto part = folder / "model-00002-of-00002.thalia";
  std::filesystem::remove(part);
  BOOST_TEST(verify_any(folder.path()).findings.size() == 1u);
  std::filesystem::create_directory(part);
  BOOST_TEST(verify_any(folder.path()).findings.size() == 1u);
}

BOOST_AUTO_TEST_CASE(index_and_thalia_files_have_the_same_tensors) {
  const TemporaryFolder folder;
  write_shards(folder);
  const std::string first = "model-00001-of-00002.thalia";
  write_index(folder / "model.thalia.index.json", {{"a.cortex", first}});
  BOOST_CHECK_EXCEPTION(
      open_any(folder.path()), FormatError,
      says(ErrorCode::inconsistent, "a tensor that the index lacks", "a.thalamus"));
  write_index(folder / "model.thalia.index.json", {{"a.cortex", first}, {"none", first}});
  BOOST_CHECK_EXCEPTION(open_any(folder.path()), FormatError,
                        says(ErrorCode::inconsistent, "no such tensor", "none"));
  write_index(folder / "model.thalia.index.json", {{"a.cortex", "gone.thalia"}});
  BOOST_CHECK_THROW(open_any(folder.path()), IoError);
  write_index(folder / "model.thalia.index.json", {{"a", first}, {"b", "x.safetensors"}});
  BOOST_CHECK_EXCEPTION(open_any(folder.path()), FormatError,
                        says(ErrorCode::bad_name, "x.safetensors", "a .thalia file"));
}

BOOST_AUTO_TEST_CASE(a_folder_is_opened_by_the_first_name_that_is_there) {
  const TemporaryFolder folder;
  const char* const names[] = {"model.thalia", "model.thalia.index.json", "model.safetensors",
                               "model.safetensors.index.json"};
  for (unsigned chosen = 0; chosen < 16; ++chosen) {
    std::filesystem::path first;
    for (unsigned i = 0; i < 4; ++i) {
      std::filesystem::remove(folder / names[i]);
      if ((chosen >> i & 1) == 0) continue;
      write_file(folder / names[i], "");
      if (first.empty()) first = folder / names[i];
    }
    if (chosen == 0) {
      BOOST_CHECK_EXCEPTION(find_model(folder.path()), IoError,
                            says(ErrorCode::io, "model.safetensors.index.json", "No such file"));
    } else {
      BOOST_TEST(find_model(folder.path()) == first);
    }
  }
  // A link that leads nowhere does not become another model, and a folder is not one.
  std::filesystem::remove(folder / "model.thalia");
  std::filesystem::create_symlink("gone", folder / "model.thalia");
  BOOST_TEST(find_model(folder.path()) == folder / "model.thalia");
  std::filesystem::remove(folder / "model.thalia");
  std::filesystem::create_directory(folder / "model.thalia");
  BOOST_TEST(find_model(folder.path()) == folder / "model.thalia.index.json");
  BOOST_TEST(find_model(folder / "any") == folder / "any");
}

BOOST_AUTO_TEST_CASE(a_part_of_a_model_is_said_to_be_one) {
  const TemporaryFolder folder;
  const std::string lacks = "the tensors of 2 other files: this is file 2 of the 3 of a model";
  const OwnedTensor w = make_tensor("w", DType::f32, {2});
  const auto part = folder / "model-00002-of-00003.safetensors";
  save_safetensors(part, borrow({w}));
  BOOST_TEST(open_any(part).lacks().value_or("") == lacks);
  BOOST_TEST(lost(part, folder / "out.npz") == lacks + "\n");
  BOOST_TEST(lost(part, folder / "part-00002-of-00003.thalia") == lacks + "\n");
  // By the name of a .thalia file too, and whatever it becomes.
  for (const char* const out : {"out.thalia", "out.safetensors"})
    BOOST_TEST(lost(folder / "part-00002-of-00003.thalia", folder / out) == lacks + "\n");
  for (const char* const end : {".zst", ".lz4"}) {
    const auto compressed = folder / (std::string("part-00002-of-00003.thalia") + end);
    compress_checkpoint(folder / "part-00002-of-00003.thalia", compressed);
    BOOST_TEST(open_any(compressed).lacks().value_or("") == lacks);
    BOOST_TEST(lost(compressed, folder / "out.npz") == lacks + "\n");
  }
  write_file(folder / "model.safetensors.index.json", "{}");
  BOOST_TEST(open_any(part).lacks().value_or("") ==
             lacks + "; model.safetensors.index.json opens all");
  for (const char* const whole : {"model-00001-of-00001.safetensors", "a-0001-of-0003.safetensors",
                                  "-00001-of-00003.safetensors", "00001-of-00003.safetensors"}) {
    save_safetensors(folder / whole, borrow({w}));
    BOOST_TEST(!open_any(folder / whole).lacks(), whole);
  }
}

BOOST_AUTO_TEST_CASE(a_gguf_file_says_itself_that_it_is_a_part) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes(8);
  const auto save = [&](const char* name, const GgufKeyValues& key_values) {
    save_gguf(folder / name, {{.name = "w", .type = GgmlType::f32, .shape = {2}, .bytes = bytes}},
              key_values);
    return open_any(folder / name).lacks().value_or("");
  };
  BOOST_TEST(save("a.gguf", {{"split.no", std::uint16_t{1}}, {"split.count", std::uint16_t{3}}}) ==
             "the tensors of 2 other files: this is file 2 of the 3 of a model");
  BOOST_TEST(lost(folder / "a.gguf", folder / "a.npz").starts_with("the tensors of 2 other files"));
  BOOST_TEST(save("b.gguf", {{"split.count", std::uint64_t{2}}}) ==
             "the tensors of 1 other file: this is file 1 of the 2 of a model");
  // What the file says counts more than its name.
  BOOST_TEST(save("c-00001-of-00003.gguf", {{"split.count", std::uint16_t{1}}}).empty());
  BOOST_TEST(save("c-00001-of-00003.gguf", {}) != "");
  BOOST_TEST(save("d.gguf", {{"split.count", std::string("3")}}).empty());
}

BOOST_AUTO_TEST_CASE(a_note_of_how_a_file_was_written_is_no_loss) {
  const TemporaryFolder folder;
  const OwnedTensor w = make_tensor("w", DType::f32, {2});
  save_safetensors(folder / "plain.safetensors", borrow({w}));
  save_safetensors(folder / "spaces.safetensors", borrow({w}), std::nullopt, {}, 4096);
  save_safetensors(folder / "texts.safetensors", borrow({w}), SafetensorsMetadata{{"by", "me"}});
  for (const char* const output : {"out.npz", "out.gptrsten"}) {
    BOOST_TEST(lost(folder / "plain.safetensors", folder / output).empty());
    BOOST_TEST(lost(folder / "spaces.safetensors", folder / output).empty());
    BOOST_TEST(lost(folder / "texts.safetensors", folder / output) != "");
  }
  BOOST_TEST(lost(folder / "spaces.safetensors", folder / "kept.thalia").empty());
  BOOST_TEST(lost(folder / "kept.thalia", folder / "out.npz").find("metadata") ==
             std::string::npos);
  BOOST_TEST(lost(folder / "out.npz", folder / "again.gptrsten").empty());
}

BOOST_AUTO_TEST_CASE(an_index_that_tells_where_tensors_are_is_no_loss) {
  const TemporaryFolder folder;
  const std::string part = "model-00001-of-00001.safetensors";
  const std::filesystem::path index = folder / "model.safetensors.index.json";
  const auto lost_of = [&](const std::string& more) {
    write_file(index, R"({"weight_map":{"w":")" + part + "\"}" + more + "}");
    return lost(index, folder / "out.npz");
  };
  save_safetensors(folder / part, borrow({make_tensor("w", DType::f32, {2})}));
  BOOST_TEST(lost_of("").empty());
  BOOST_TEST(lost_of(R"(,"metadata":{"total_size":8})").empty());
  BOOST_TEST(lost_of(R"(,"metadata":null)").empty());
  BOOST_TEST(lost_of(R"(,"metadata":{"by":"me"})") != "");
  BOOST_TEST(lost_of(R"(,"more":1)") != "");
  save_safetensors(folder / part, borrow({make_tensor("w", DType::f32, {2})}),
                   SafetensorsMetadata{{"by", "me"}});
  BOOST_TEST(lost_of("") != "");
}

BOOST_AUTO_TEST_SUITE_END()
