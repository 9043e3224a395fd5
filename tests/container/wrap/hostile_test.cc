// Wrapped files that were cut, damaged or made to mislead: refused, or restored exactly, and
// nothing is allocated for what they claim.
#include "boost_test.h"
#include "container/wrap/check.h"
#include "format/wrapper.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/compress.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(hostile_wrap)

namespace {

class Restored {
 public:
  // What a file holds; nullopt if it is refused.
  std::optional<std::string> operator()(const std::string& file,
                                        const DecompressOptions& options = quickly()) {
    write_file(folder_ / "f", file);
    try {
      decompress_checkpoint(folder_ / "f", folder_ / "back", options);
    } catch (const FormatError&) {
      return std::nullopt;
    }
    return read_file(folder_ / "back");
  }
  void refuses(const std::string& file, const char* field, const char* value,
               ErrorCode code = ErrorCode::bad_value) {
    write_file(folder_ / "f", file);
    BOOST_CHECK_EXCEPTION(decompress_checkpoint(folder_ / "f", folder_ / "back", quickly()),
                          FormatError, says(code, "wrapper", field, value));
    BOOST_CHECK_EXCEPTION(read_wrapper(folder_ / "f"), FormatError,
                          says(code, "wrapper", field, value));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_is_refused_but_of_the_table_alone) {
  Restored restored;
  const std::string text = mixed_contents(9000);
  for (const Codec codec : kWrappers) {
    const TableEditor whole(wrapped(text, codec));
    std::size_t end = 0;
    std::vector<std::size_t> ends;
    for (const format::SeekEntry& entry : whole.entries) ends.push_back(end += entry.stored_length);
    for (std::size_t length = 0; length < whole.bytes.size(); ++length) {
      const auto found = restored(whole.bytes.substr(0, length));
      // Between frames nobody can tell that something is missing but for the table.
      const auto frame = std::find(ends.begin(), ends.end(), length);
      if (frame == ends.end()) {
        BOOST_TEST(!found.has_value(), length);
      } else {
        BOOST_REQUIRE(found.has_value());
        const auto frames = static_cast<std::size_t>(frame - ends.begin()) + 1;
        BOOST_TEST((*found == text.substr(0, frames * 4096)), length);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_flip_of_any_byte_never_gives_other_bytes) {
  Restored restored;
  const std::string text = mixed_contents(9000);
  for (const Codec codec : kWrappers) {
    std::string file = wrapped(text, codec);
    std::size_t refused = 0;
    for (std::size_t at = 0; at < file.size(); ++at) {
      file[at] = static_cast<char>(file[at] ^ 0x41);
      if (const auto found = restored(file)) {
        BOOST_TEST((*found == text), at);
      } else {
        ++refused;
      }
      file[at] = static_cast<char>(file[at] ^ 0x41);
    }
    // Some bits mean nothing: unused ones of the table, or the magic number of the table, without
    // which the file is read from the front.
    BOOST_TEST(refused > file.size() - 20);
  }
}

BOOST_AUTO_TEST_CASE(tables_that_do_not_agree_with_the_file_are_refused) {
  Restored restored;
  const std::string text = mixed_contents(20'000);
  for (const Codec codec : kWrappers) {
    const TableEditor sound(wrapped(text, codec));
    BOOST_TEST((restored(TableEditor(sound).file()) == text));

    TableEditor longer = sound;  // overlaps the next frame
    longer.entries[1].stored_length = longer.entries[1].stored_length + 1;
    restored.refuses(longer.file(), "stored_length", "expected 1 to");
    TableEditor shorter = sound;
    shorter.entries[1].stored_length = shorter.entries[1].stored_length - 1;
    restored.refuses(shorter.file(), "stored_length", "bytes of all frames");
    TableEditor wraps = sound;  // a sum of 32 bits would be right again
    wraps.entries[0].stored_length = wraps.entries[0].stored_length - 1;
    wraps.entries[1].stored_length = 0xffffffff;
    restored.refuses(wraps.file(), "stored_length", "4294967295");
    TableEditor empty = sound;
    empty.entries[0].stored_length = 0;
    restored.refuses(empty.file(), "stored_length", "got 0");
    TableEditor fewer = sound;
    fewer.entries.pop_back();
    fewer.footer.frame_count = static_cast<std::uint32_t>(fewer.entries.size());
    restored.refuses(fewer.file(), "stored_length", "bytes of all frames");

    TableEditor more = sound;  // than the file has room for
    more.footer.frame_count = 1'000'000;
    restored.refuses(more.as_it_is(), "frame_count", "1000000");
    TableEditor most = sound;  // than the format allows
    most.footer.frame_count = 0xffffffff;
    restored.refuses(most.as_it_is(), "frame_count", "4294967295");
    TableEditor none = sound;
    none.footer.frame_count = 0;
    restored.refuses(none.as_it_is(), "frame_count", "got 0");
    TableEditor reserved = sound;
    reserved.footer.descriptor = 4;
    restored.refuses(reserved.as_it_is(), "descriptor", "0x04");
    TableEditor misplaced = sound;
    misplaced.header.length = misplaced.header.length + 1;
    restored.refuses(misplaced.as_it_is(), "length",
                     std::to_string(misplaced.header.length).c_str());
  }
}

BOOST_AUTO_TEST_CASE(content_lengths_that_frames_do_not_have_are_refused) {
  Restored restored;
  const std::string text = mixed_contents(20'000);
  for (const Codec codec : kWrappers) {
    const TableEditor sound(wrapped(text, codec));
    TableEditor bomb = sound;  // no frame of that length holds so much
    bomb.entries[0].content_length = 0xffffffff;
    restored.refuses(bomb.file(), "content_length", "4294967295");
    TableEditor swapped = sound;  // the same sum
    swapped.entries[0].content_length = 4095;
    swapped.entries[1].content_length = 4097;
    BOOST_TEST(!restored(swapped.file()).has_value());
    TableEditor more = sound;
    more.entries.back().content_length = more.entries.back().content_length + 1;
    BOOST_TEST(!restored(more.file()).has_value());
  }
}

// So large that frames are decoded in order, in pieces, and not each as a whole.
BOOST_AUTO_TEST_CASE(tables_of_large_frames_are_held_against_the_frames) {
  constexpr std::uint32_t kLarge = 130 << 20;
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& file, const char* found) {
    write_file(folder / "f", file);
    BOOST_CHECK_EXCEPTION(decompress_checkpoint(folder / "f", folder / "back", quickly()),
                          FormatError,
                          says(ErrorCode::bad_compression, "wrapper", "seek table", found));
    BOOST_TEST(!std::filesystem::exists(folder / "back"));
  };
  for (const Codec codec : kWrappers) {
    CompressOptions options = small_frames();
    options.frame_bytes = 600 << 10;
    const TableEditor sound(wrapped(text_of(random_bytes(1000 << 10)), codec, options));
    TableEditor longer = sound;
    longer.entries[0].content_length = kLarge;
    refused(longer.file(), "a content of 614400");
    TableEditor joined = sound;
    joined.entries[0].content_length = kLarge;
    joined.entries[0].stored_length =
        joined.entries[0].stored_length + joined.entries[1].stored_length;
    joined.entries.pop_back();
    joined.footer.frame_count = 1u;
    refused(joined.file(), "a content of 614400");
  }

  write_file(folder / "plain", "");
  std::filesystem::resize_file(folder / "plain", kLarge);
  CompressOptions options = small_frames();
  options.frame_bytes = kLarge;
  compress_checkpoint(folder / "plain", folder / "large.zst", options);
  decompress_checkpoint(folder / "large.zst", folder / "back", quickly());
  BOOST_TEST(std::filesystem::file_size(folder / "back") == kLarge);
  std::filesystem::remove(folder / "back");
  const TableEditor sound(read_file(folder / "large.zst"));
  TableEditor less = sound;
  less.entries[0].content_length = kLarge - 1;
  refused(less.file(), "a content of");
  TableEditor more = sound;  // a frame to skip is not one
  more.bytes.insert(more.begin, "\x50\x2A\x4D\x18\0\0\0\0", 8);
  more.begin += 8;
  format::SeekEntry skipped;
  skipped.stored_length = 8u;
  skipped.content_length = 0u;
  more.entries.push_back(skipped);
  more.footer.frame_count = 2u;
  refused(more.file(), "1 frames");
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_like_a_table_by_chance_is_read) {
  Restored restored;
  const std::string text = mixed_contents(20'000);
  for (const Codec codec : kWrappers) {
    const TableEditor parts(wrapped(text, codec));
    for (const std::uint32_t count : {0u, 1u, 1000u, 1'000'000u, 0xffffffffu}) {
      for (const unsigned descriptor : {0x00u, 0x7fu, 0x80u}) {
        format::SeekFooter footer = parts.footer;
        footer.frame_count = count;
        footer.descriptor = static_cast<std::uint8_t>(descriptor);
        // A frame to skip that is no table.
        std::string file =
            without_table(parts.bytes) + std::string("\x50\x2A\x4D\x18\x09\0\0\0", 8);
        file.append(reinterpret_cast<const char*>(&footer), sizeof footer);
        DecompressOptions options = quickly();
        options.input.limits.max_allocation_bytes = 20'000;
        BOOST_TEST((restored(file, options) == text), count << ' ' << descriptor);
        const File f(file);
        BOOST_TEST(!read_wrapper(f.path).value().has_seek_table);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(limits_bound_what_is_written_and_what_a_table_takes) {
  const std::string text = mixed_contents(20'000);
  const TemporaryFolder folder;
  for (const Codec codec : kWrappers) {
    const TableEditor parts(wrapped(text, codec));
    for (const std::string& file : {parts.bytes, parts.bytes.substr(0, parts.begin)}) {
      write_file(folder / "f", file);
      DecompressOptions options = quickly();
      options.input.limits.max_file_bytes = text.size();
      decompress_checkpoint(folder / "f", folder / "back", options);
      BOOST_TEST((read_file(folder / "back") == text));
      options.input.limits.max_file_bytes = text.size() - 1;
      BOOST_CHECK_EXCEPTION(decompress_checkpoint(folder / "f", folder / "back", options),
                            FormatError, says(ErrorCode::limit_exceeded, "max_file_bytes"));
    }
    write_file(folder / "f", parts.bytes);
    DecompressOptions options = quickly();
    options.input.limits.max_allocation_bytes = 8 * parts.entries.size();
    BOOST_CHECK_EXCEPTION(decompress_checkpoint(folder / "f", folder / "back", options),
                          FormatError, says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  }
}

BOOST_AUTO_TEST_CASE(bytes_behind_the_frames_are_refused) {
  Restored restored;
  const std::string text = mixed_contents(9000);
  const std::string zstd = wrapped(text, Codec::zstd);
  const std::string lz4 = wrapped(text, Codec::lz4);
  for (const std::string& file :
       {zstd + "x", zstd + "xxxx", zstd + std::string(32, 'x'), zstd + lz4, lz4 + "x", lz4 + zstd})
    BOOST_TEST(!restored(file).has_value());
  // Joined files are what `cat` makes of two, and what zstd -d and lz4 -d take: the second one's
  // table does not describe all of it.
  BOOST_TEST(!restored(zstd + zstd).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
