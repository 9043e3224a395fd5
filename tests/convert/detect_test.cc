#include <string>

#include "boost_test.h"
#include "codec/frame/frame.h"
#include "formats/samples.h"
#include "formats/zip/archives.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(detect)

namespace {

std::string detected(const std::filesystem::path& path) {
  const auto format = detect_format(path);
  return format ? std::string(file_format_name(*format)) : "unknown";
}

std::string in_frame(std::string_view content, Codec codec) {
  std::vector<std::byte> frame;
  codec::encode_frame(codec, 0, as_byte_span(content), frame);
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(content_decides_before_the_name) {
  const TemporaryFolder folder;
  write_file(folder / "a.thalia", safetensors_bytes("{}"));
  BOOST_TEST(detected(folder / "a.thalia") == "safetensors");
  write_file(folder / "a.safetensors", "THAL\1\0\0\0");
  BOOST_TEST(detected(folder / "a.safetensors") == "thalia");
  write_file(folder / "bare", "THAL");
  BOOST_TEST(detected(folder / "bare") == "thalia");
}

BOOST_AUTO_TEST_CASE(name_decides_where_the_content_tells_nothing) {
  const TemporaryFolder folder;
  BOOST_TEST(detected(folder / "new.thalia") == "thalia");
  BOOST_TEST(detected(folder / "new.safetensors") == "safetensors");
  BOOST_TEST(detected(folder / "new.json") == "loom-json");
  BOOST_TEST(detected(folder / "new.safetensors.index.json") == "safetensors");
  BOOST_TEST(detected(folder / "new.bin") == "unknown");
  BOOST_TEST(detected(folder / "new") == "unknown");
  for (const std::string& content : {std::string(), std::string("TH"), std::string(100, '\0'),
                                     safetensors_bytes("{}").substr(0, 9)}) {
    write_file(folder / "odd.thalia", content);
    BOOST_TEST(detected(folder / "odd.thalia") == "thalia");
    write_file(folder / "odd", content);
    BOOST_TEST(detected(folder / "odd") == "unknown");
  }
}

BOOST_AUTO_TEST_CASE(files_of_other_programs_are_called_what_they_are) {
  const std::pair<std::string, const char*> files[] = {
      {"\x80\2\x8a\nl\xfc", "a Python pickle"},
      {"\x80\4\x95\n", "a Python pickle"},
      {"(dp0\nS'a'\np1\n", "a Python pickle"},
      {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
      {"\x1f\x8b\x8", "a gzip file; unpack it with gunzip first"},
      {std::string("\xfd"
                   "7zXZ\0\0",
                   7),
       "an xz file"},
      {"BZh91AY", "a bzip2 file"},
      {"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"},
      {"<!DOCTYPE html>", "a web page"},
      {"<html>", "a web page"},
      {"\x89PNG\r\n\x1a\n", "a PNG picture, no checkpoint"},
      {"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it with 7z first"},
  };
  const TemporaryFolder folder;
  for (const auto& [content, what] : files) {
    BOOST_TEST_CONTEXT(what) {
      // The name does not count, nor how long the file is.
      for (const char* name : {"model.thalia", "model.safetensors", "model"}) {
        for (const std::size_t more : {0, 300}) {
          write_file(folder / name, content + std::string(more, '\0'));
          BOOST_CHECK_EXCEPTION(detect_format(folder / name), UnsupportedError,
                                says(ErrorCode::unsupported_feature, what));
        }
      }
      BOOST_CHECK_EXCEPTION(Reader::open(folder / "model"), FormatError,
                            says(ErrorCode::bad_magic, what));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_checkpoint_at_all_is_said_in_these_words) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& content, ErrorCode code, const char* words) {
    write_file(folder / "a", content);
    BOOST_CHECK_EXCEPTION(input_format(folder / "a"), FormatError, says(code, words));
  };
  refuses("to do: buy milk\n", ErrorCode::bad_magic,
          "not a checkpoint of a format that is known: a text");
  refuses(std::string(20, '\1'), ErrorCode::bad_magic,
          "not a checkpoint of a format that is known");
  write_file(folder / "a", "a" + std::string(256, '\0') + "ustar");
  BOOST_CHECK_EXCEPTION(input_format(folder / "a"), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "a tar archive; unpack it first"));
  refuses("", ErrorCode::bad_magic, "the file is empty");
  BOOST_CHECK_THROW(input_format(folder / "none"), IoError);
}

// Those that are read, but not as a .thalia file: its reader says what they are.
BOOST_AUTO_TEST_CASE(files_of_other_formats_are_known_and_no_checkpoints_of_this_one) {
  struct Known {
    std::string content;
    FileFormat format;
    const char* words;
  };
  const Known known[] = {
      {"GGUF\3", FileFormat::gguf, "a GGUF file"},
      {"MCKP\1", FileFormat::mckp, "an MCKP file"},
      {std::string("MST\0\1", 5), FileFormat::mst, "a mithril .mst file"},
      {safetensors_bytes(R"({"__metadata__":{}})"), FileFormat::safetensors, "a safetensors file"},
      {"\x93NUMPY\1", FileFormat::npy, "a NumPy .npy file"},
      {"GPTRSCHK\2", FileFormat::gptrs, "a model of gpt.rs"},
      {"GPTRSTEN\2", FileFormat::gptrsten, "an archive of tensors of gpt.rs"},
      {std::string("ENTITY\0\0\1", 9), FileFormat::entity, "a network of Loom"},
      {"\x08\x08\x12\x07pytorch", FileFormat::onnx, "an ONNX model"},
      {"\x08\x0a:\x90\x01", FileFormat::onnx, "an ONNX model"},
      {R"({"metadata": {"total_size": 8}, "weight_map": {"w": "a.safetensors"}})",
       FileFormat::safetensors, "a list of the files"},
  };
  const TemporaryFolder folder;
  for (const Known& one : known) {
    for (const char* name : {"model.thalia", "model.npz", "model"}) {
      write_file(folder / name, one.content + std::string(300, '\0'));
      BOOST_TEST((detect_format(folder / name) == one.format), one.words << ", " << name);
      BOOST_CHECK_EXCEPTION(Reader::open(folder / name), FormatError,
                            says(ErrorCode::bad_magic, one.words));
    }
  }
}

BOOST_AUTO_TEST_CASE(archives_are_known_by_what_is_in_them) {
  const auto data = [](const char* name) {
    return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats" / name;
  };
  BOOST_TEST((detect_format(data("zip/torch.zip")) == FileFormat::pt));
  const TemporaryFolder folder;
  write_file(folder / "others", archive_of({{"readme", "of nothing"}}, formats::kPythonZip));
  BOOST_CHECK_EXCEPTION(detect_format(folder / "others"), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "a zip archive", "unpack it first"));
  // An archive with an array is NumPy's, whatever else is in it, and so is one called so.
  const auto archive = [&](const char* name, const ArchiveMembers& members) {
    write_file(folder / name, archive_of(members, formats::kPythonZip));
    for (const Access access : {Access::mapped, Access::copied})
      BOOST_TEST((detect_format(folder / name, access) == FileFormat::npz), name);
  };
  const std::string array = read_file(data("npz/array.npy"));
  archive("a", {{"README.txt", "of arrays"}, {"w.npy", array}, {"d/", ""}});
  archive("none", {});
  archive("bare.npz", {{"w", array}});
  BOOST_TEST(!convert(folder / "a", folder / "a.thalia").losses.empty());
  write_file(folder / "cut.pt", "PK\3\4\0\0\x8\x8");
  BOOST_CHECK_EXCEPTION(detect_format(folder / "cut.pt"), FormatError,
                        says(ErrorCode::truncated, "cut.pt", "it is cut off"));
}

BOOST_AUTO_TEST_CASE(texts_are_known_by_their_members) {
  const TemporaryFolder folder;
  write_file(folder / "net", R"( {"id": "n", "depth": 1, "layers_per_cell": 1, "layers": []})");
  BOOST_TEST((detect_format(folder / "net") == FileFormat::loom_json));
  write_file(folder / "other.thalia", R"({"a": 1})");
  BOOST_TEST(detected(folder / "other.thalia") == "thalia");
}

BOOST_AUTO_TEST_CASE(folders_are_known_by_their_files) {
  const TemporaryFolder folder;
  write_file(folder / "model.safetensors", safetensors_bytes("{}"));
  BOOST_TEST((detect_format(folder.path()) == FileFormat::safetensors));
  write_file(folder / "_CHECKPOINT_METADATA", "{}");
  BOOST_TEST((detect_format(folder.path()) == FileFormat::orbax));
}

BOOST_AUTO_TEST_CASE(not_every_json_text_is_a_network_of_loom) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", R"({"hidden_size": 768, "layers": 12})");
  BOOST_CHECK_EXCEPTION(detect_format(folder / "config.json"), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "a JSON text", "config.json"));
  // Whatever comes first in it.
  for (const char* text : {R"({"network": {"id": "network"}})", R"({"blobs": null})",
                           R"({"id": "network", "layers_per_cell": 1})"}) {
    write_file(folder / "net.json", text);
    BOOST_TEST(detected(folder / "net.json") == "loom-json");
  }
  BOOST_TEST(detected(folder / "new.json") == "loom-json");
}

BOOST_AUTO_TEST_CASE(errors_of_an_archive_name_the_file) {
  const TemporaryFolder folder;
  write_file(folder / "cut.npz", "PK\3\4" + std::string(100, '\0'));
  BOOST_CHECK_EXCEPTION(detect_format(folder / "cut.npz"), FormatError, [&](const Error& error) {
    return error.context().path == (folder / "cut.npz").string();
  });
}

// 67,324,752 bytes of header: the bytes of its length are "PK\3\4" and zeros.
BOOST_AUTO_TEST_CASE(a_safetensors_header_as_long_as_the_magic_of_zip_is_no_archive) {
  const TemporaryFolder folder;
  write_file(folder / "a", std::string("PK\3\4\0\0\0\0{", 9));
  std::filesystem::resize_file(folder / "a", 0x04034b50 + 8);
  BOOST_TEST(detected(folder / "a") == "safetensors");
}

// pzstd writes the length of each frame before it: bytes that may be a count of codes.
BOOST_AUTO_TEST_CASE(a_frame_to_skip_in_front_hides_nothing) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    for (const std::uint32_t length : {0U, 4U, 16U, 1U << 20}) {
      std::string skipped("\x50\x2a\x4d\x18", 4);
      for (unsigned shift = 0; shift < 32; shift += 8)
        skipped += static_cast<char>(length >> shift & 0xff);
      skipped += std::string(length, '\1');
      for (const auto& [content, format] :
           {std::pair(std::string("THAL\1\0", 6) + std::string(300, '\0'), FileFormat::thalia),
            std::pair(std::string("THAL\0\0\1\0", 8) + std::string(300, '\0'),
                      FileFormat::thalia_0_1),
            std::pair(std::string("TMET\1\0\0\0", 8) + std::string(300, '\0'),
                      FileFormat::thalia)}) {
        write_file(path, skipped + in_frame(content, codec));
        BOOST_TEST(bool(detect_format(path) == format));
        write_file(path, in_frame(content, codec));
        BOOST_TEST(bool(detect_format(path) == format));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(files_in_a_frame_that_have_none_are_called_what_they_are) {
  const std::string header = R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::pair<std::string, const char*> files[] = {
      {"GGUF\3" + std::string(300, '\0'), "a GGUF file in a frame of"},
      {"PK\3\4\24" + std::string(300, '\0'), "a zip archive in a frame of"},
      {safetensors_bytes(header) + "x", "a safetensors file in a frame of"},
  };
  const TemporaryFolder folder;
  for (const auto& [content, what] : files) {
    for (const Codec codec : {Codec::zstd, Codec::lz4}) {
      write_file(folder / "a", in_frame(content, codec));
      BOOST_CHECK_EXCEPTION(detect_format(folder / "a"), UnsupportedError,
                            says(ErrorCode::unsupported_feature, what));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_folder_is_judged_by_its_name) {
  const TemporaryFolder folder;
  BOOST_TEST(detected(folder.path()) == "unknown");
}

BOOST_AUTO_TEST_CASE(an_index_of_shards_is_judged_by_its_name_where_there_is_none) {
  const TemporaryFolder folder;
  BOOST_TEST(detected(folder / "model.safetensors.index.json") == "safetensors");
  BOOST_TEST(detected(folder / "model.json") == "loom-json");
}

BOOST_AUTO_TEST_CASE(names_and_formats_map_both_ways) {
  BOOST_TEST((file_format_from_name("thalia") == FileFormat::thalia));
  BOOST_TEST((file_format_from_name("safetensors") == FileFormat::safetensors));
  BOOST_TEST(!file_format_from_name("Thalia").has_value());
  BOOST_TEST(!file_format_from_name("").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
