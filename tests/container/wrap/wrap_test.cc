// Whole files in frames: exactly the same bytes back, by the library and by the programs zstd and
// lz4, and frames that other programs wrote.
#include "thalia/compress.h"

#include <cstdlib>
#include <stop_token>

#include "boost_test.h"
#include "container/wrap/check.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(wrap)

namespace {

const std::size_t kLengths[] = {0, 1, 4095, 4096, 4097, 3 * 4096, 100'001};

[[maybe_unused]] bool run(const std::string& command) {
  return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c): a test of this program
}

struct Folder : TemporaryFolder {
  std::string put(const std::string& name, const std::string& contents) const {
    write_file(*this / name, contents);
    return (*this / name).string();
  }
  std::string at(const std::string& name) const { return (*this / name).string(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(any_file_comes_back_exactly_whatever_its_length_and_the_threads) {
  const Folder folder;
  for (const Codec codec : kWrappers) {
    for (const std::size_t length : kLengths) {
      for (const unsigned threads : {1u, 3u}) {
        const std::string text = mixed_contents(length);
        CompressOptions options = small_frames();
        options.work.threads = threads;
        const std::string plain = folder.put("plain", text);
        const std::string target = folder.at("file" + ending(codec));
        const WrapResult wrapped = compress_checkpoint(plain, target, options);
        const std::size_t frames = length == 0 ? 1 : (length + 4095) / 4096;
        BOOST_TEST((wrapped.codec == codec));
        BOOST_TEST(wrapped.frames == frames);
        BOOST_TEST(wrapped.input_bytes == length);
        BOOST_TEST(wrapped.output_bytes == std::filesystem::file_size(target));
        const auto info = read_wrapper(target);
        BOOST_REQUIRE(info.has_value());
        BOOST_TEST(info->has_seek_table);
        BOOST_TEST(info->frames == frames);
        BOOST_TEST(info->content_bytes == length);

        DecompressOptions back = quickly();
        back.work.threads = threads;
        const WrapResult restored = decompress_checkpoint(target, folder.at("back"), back);
        BOOST_TEST((read_file(folder / "back") == text));
        BOOST_TEST(restored.frames == frames);
        BOOST_TEST(restored.input_bytes == wrapped.output_bytes);
        BOOST_TEST(restored.output_bytes == length);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(levels_and_frames_change_the_size_and_not_the_bytes) {
  const std::string text = mixed_contents(300'000);
  for (const Codec codec : kWrappers) {
    CompressOptions options = small_frames();
    const std::string small = wrapped(text, codec, options);
    options.frame_bytes = 1 << 20;
    const std::string one = wrapped(text, codec, options);
    BOOST_TEST(one.size() < small.size());
    options.compression.level = codec == Codec::zstd ? 19 : 12;
    const std::string dense = wrapped(text, codec, options);
    BOOST_TEST(dense.size() < small.size());
    BOOST_TEST((dense != one));
    const Folder folder;
    decompress_checkpoint(folder.put("f", dense), folder.at("back"), quickly());
    BOOST_TEST((read_file(folder / "back") == text));
  }
}

BOOST_AUTO_TEST_CASE(the_bytes_are_those_of_the_format) {
  // Two frames of 4096 and 1 bytes; the zstd table as the Zstandard Seekable Format 0.1.0 lays it
  // out, the lz4 table with the ending of docs/format/format.md.
  const std::string text = mixed_contents(4097);
  for (const Codec codec : kWrappers) {
    const std::string file = wrapped(text, codec);
    const std::size_t table = file.size() - 8 - 2 * 8 - 9;
    BOOST_TEST((file.substr(table, 8) == std::string("\x5e\x2a\x4d\x18\x19\x00\x00\x00", 8)));
    BOOST_TEST((file.substr(table + 12, 4) == std::string("\x00\x10\x00\x00", 4)));
    BOOST_TEST((file.substr(table + 20, 4) == std::string("\x01\x00\x00\x00", 4)));
    const std::string end = codec == Codec::zstd ? "\xb1\xea\x92\x8f" : "TLZ4";
    BOOST_TEST((file.substr(table + 24) == std::string("\x02\x00\x00\x00\x00", 5) + end));
  }
}

#ifdef THALIA_PROGRAM_ZSTD
BOOST_AUTO_TEST_CASE(the_program_zstd_restores_the_file_and_its_files_are_restored) {
  const Folder folder;
  for (const std::size_t length : kLengths) {
    const std::string text = mixed_contents(length);
    const std::string file = folder.put("ours.zst", wrapped(text, Codec::zstd));
    const std::string zstd = THALIA_PROGRAM_ZSTD " -q -f ";
    BOOST_TEST(run(zstd + "-d " + file + " -o " + folder.at("back")));
    BOOST_TEST((read_file(folder / "back") == text));
    BOOST_TEST(run(zstd + "-t " + file));
    const std::string plain = folder.put("plain", text);
    for (const std::string& way :
         {"-3 " + plain + " -o " + folder.at("theirs"),              // with a content size
          "--no-check -1 < " + plain + " > " + folder.at("theirs"),  // without, and no checksum
          "-19 --long=27 < " + plain + " > " + folder.at("theirs")}) {
      BOOST_REQUIRE(run(zstd + way));
      decompress_checkpoint(folder.at("theirs"), folder.at("back"), quickly());
      BOOST_TEST((read_file(folder / "back") == text), way);
      BOOST_TEST(!read_wrapper(folder.at("theirs"))->has_seek_table);
    }
  }
}
#endif

#ifdef THALIA_PROGRAM_LZ4
BOOST_AUTO_TEST_CASE(the_program_lz4_restores_the_file_and_its_files_are_restored) {
  const Folder folder;
  for (const std::size_t length : kLengths) {
    const std::string text = mixed_contents(length);
    const std::string file = folder.put("ours.lz4", wrapped(text, Codec::lz4));
    const std::string lz4 = THALIA_PROGRAM_LZ4 " -q -f ";
    BOOST_TEST(run(lz4 + "-d " + file + " " + folder.at("back")));
    BOOST_TEST((read_file(folder / "back") == text));
    const std::string plain = folder.put("plain", text);
    for (const char* const way : {"-1 --content-size ", "-9 --no-frame-crc ", "-B4 -BD -BX "}) {
      BOOST_REQUIRE(run(lz4 + way + plain + " " + folder.at("theirs")));
      decompress_checkpoint(folder.at("theirs"), folder.at("back"), quickly());
      BOOST_TEST((read_file(folder / "back") == text), way);
    }
  }
}
#endif

BOOST_AUTO_TEST_CASE(frames_without_a_table_and_skippable_ones_between_them_are_restored) {
  const Folder folder;
  const std::string text = mixed_contents(50'000);
  const std::string skipped("\x53\x2a\x4d\x18\x05\x00\x00\x00skip!", 13);
  for (const Codec codec : kWrappers) {
    const TableEditor parts(wrapped(text, codec));
    const std::string frames = parts.bytes.substr(0, parts.begin);
    const std::string first = frames.substr(0, parts.entries[0].stored_length);
    const std::string rest = frames.substr(first.size());
    for (const std::string& file :
         {frames, first + skipped + rest, skipped + frames, frames + skipped}) {
      const WrapResult result =
          decompress_checkpoint(folder.put("f", file), folder.at("back"), quickly());
      BOOST_TEST((read_file(folder / "back") == text));
      BOOST_TEST(result.frames == parts.entries.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_seek_table_with_checksums_is_read) {
  const Folder folder;
  const std::string text = mixed_contents(50'000);
  for (const Codec codec : kWrappers) {
    TableEditor parts(wrapped(text, codec));
    parts.checksums.assign(parts.entries.size(), 0x2e6d7573);
    folder.put("f", parts.file());
    BOOST_TEST(read_wrapper(folder / "f")->frames == parts.entries.size());
    decompress_checkpoint(folder / "f", folder / "back", quickly());
    BOOST_TEST((read_file(folder / "back") == text));
  }
}

BOOST_AUTO_TEST_CASE(a_failure_leaves_what_was_at_the_target) {
  const Folder folder;
  const std::string text = mixed_contents(100'000);
  for (const Codec codec : kWrappers) {
    std::string file = wrapped(text, codec);
    file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
    const std::string damaged = folder.put("damaged", file);
    const std::string target = folder.put("target", "old");
    BOOST_CHECK_EXCEPTION(decompress_checkpoint(damaged, target, quickly()), FormatError,
                          says(ErrorCode::bad_compression, "damaged", "wrapper", "at "));
    std::stop_source stop;
    CompressOptions options = small_frames();
    options.compression.codec = codec;
    options.work.cancel = stop.get_token();
    options.work.progress = [&](std::uint64_t, std::uint64_t) { stop.request_stop(); };
    BOOST_CHECK_THROW(compress_checkpoint(damaged, target, options), CancelledError);
    DecompressOptions back = quickly();
    back.work.cancel = stop.get_token();
    BOOST_CHECK_THROW(
        decompress_checkpoint(folder.put("sound", wrapped(text, codec)), target, back),
        CancelledError);
    BOOST_TEST(read_file(target) == "old");
  }
  BOOST_TEST(
      (list_folder(folder.path()) == std::vector<std::string>{"damaged", "sound", "target"}));
}

BOOST_AUTO_TEST_CASE(progress_rises_to_the_whole_source) {
  const Folder folder;
  const std::string plain = folder.put("plain", mixed_contents(100'000));
  for (const Codec codec : kWrappers) {
    std::uint64_t last = 0, whole = 0;
    const auto note = [&](std::uint64_t done, std::uint64_t total) {
      BOOST_TEST(done >= last);
      last = done;
      whole = total;
    };
    CompressOptions options = small_frames();
    options.work.progress = note;
    const std::string file = folder.at("f" + ending(codec));
    compress_checkpoint(plain, file, options);
    BOOST_TEST(last == 100'000u);
    BOOST_TEST(whole == 100'000u);
    last = 0;
    DecompressOptions back = quickly();
    back.work.progress = note;
    decompress_checkpoint(file, folder.at("back"), back);
    BOOST_TEST(whole == std::filesystem::file_size(file));
    BOOST_TEST(last > whole / 2);  // what is after it is the table
  }
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  const Folder folder;
  const std::string plain = folder.put("plain", "text");
  const auto refused = [&](const std::string& target, const CompressOptions& options,
                           const char* field) {
    BOOST_CHECK_EXCEPTION(compress_checkpoint(plain, folder.at(target), options), UsageError,
                          says(ErrorCode::bad_argument, field));
  };
  refused("f.gz", {}, "codec");
  refused("f", {.compression = {.codec = Codec::none}}, "codec");
  refused("f.zst", {.compression = {.level = 23}}, "compression_level");
  refused("f.zst", {.compression = {.level = -1}}, "compression_level");
  refused("f.lz4", {.compression = {.level = 13}}, "compression_level");
  refused("f.zst", {.frame_bytes = 4095}, "frame_bytes");
  refused("f.zst", {.frame_bytes = (1 << 30) + 1}, "frame_bytes");
  refused("plain", {.compression = {.codec = Codec::zstd}}, "target");
  BOOST_CHECK_THROW(compress_checkpoint(folder.at("none"), folder.at("f.zst")), IoError);
  BOOST_CHECK_EXCEPTION(decompress_checkpoint(plain, folder.at("back")), FormatError,
                        says(ErrorCode::bad_magic, "plain"));
  BOOST_TEST(!read_wrapper(plain).has_value());
  BOOST_TEST((list_folder(folder.path()) == std::vector<std::string>{"plain"}));
}

BOOST_AUTO_TEST_SUITE_END()
