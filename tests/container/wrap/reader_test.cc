// A wrapped .thalia file under a reader: all that it says about the plain one, from the frames that
// it needs and no others; damage is an error and never other bytes.
#include <algorithm>
#include <thread>

#include "boost_test.h"
#include "container/file/open_file.h"
#include "container/file/wrapped.h"
#include "container/wrap/check.h"
#include "container/write/same_as_sample.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/sample.h"
#include "thalia/append.h"
#include "thalia/reader.h"
#include "thalia/recover.h"
#include "thalia/stream.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using container::WrappedFile;

BOOST_AUTO_TEST_SUITE(wrapped_reader)

namespace {

constexpr std::uint64_t kFrame = 4096;
constexpr std::uint64_t kTensor = 400'000;

// Three regions of one large tensor each.
Sample large_sample() {
  Sample sample;
  for (const char* name : {"a", "b", "c"}) {
    sample.regions.push_back({{.name = name},
                              {dense_tensor("w", DType::u8, {kTensor}, Role::weights,
                                            static_cast<std::uint64_t>(*name))}});
  }
  return sample;
}

const WrappedFile& frames_of(const detail::OpenFile& file) {
  return dynamic_cast<const WrappedFile&>(file.mapping());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_wrapped_file_reads_as_the_plain_one) {
  for (const Sample& sample : {small_sample(), varied_sample()}) {
    for (const bool chunks : {false, true}) {
      SaveOptions options = steady_options();
      if (chunks) options.compression.codec = Codec::zstd;
      const std::string plain = saved(sample, options);
      for (const Codec codec : kWrappers) {
        const std::string file = wrapped(plain, codec);
        for (const std::string& bytes : {file, without_table(file)}) {
          const File f(bytes);
          for (const Verification verification :
               {Verification::off, Verification::on_first_touch, Verification::at_open}) {
            for (const Access access : {Access::mapped, Access::copied}) {
              const Reader reader =
                  Reader::open(f.path, {.input = {.access = access}, .verification = verification});
              check_same(reader, sample);
              BOOST_TEST(reader.file_bytes() == plain.size());
            }
            const Walk walk = walk_file(f.path, verification);  // with streams
            BOOST_TEST(walk.errors == 0u, walk.first_error);
          }
          for (const bool quick : {false, true}) {
            const VerifyReport report = verify(f.path, {.quick = quick});
            BOOST_TEST(report.ok());
            BOOST_TEST(report.findings.empty());
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(opening_and_reading_a_region_decodes_its_frames_and_no_others) {
  SaveOptions options = steady_options();
  options.block_log2 = 12;
  const std::string plain = saved(large_sample(), options);
  for (const Codec codec : kWrappers) {
    const File f(wrapped(plain, codec));
    const auto file = detail::OpenFile::open(f.path, {.work = {.threads = 1}});
    const WrappedFile& frames = frames_of(*file);
    // The header, the directory's beginning, and the end.
    const std::uint64_t opened = frames.decoded_frames();
    BOOST_TEST(opened >= 2u);
    BOOST_TEST(opened <= 3u);

    const std::uint32_t region = *file->find_region("b");
    const std::uint32_t tensor = *file->find_tensor(region, "w");
    const std::uint64_t looked_up = frames.decoded_frames();
    BOOST_TEST(looked_up <= opened + 6u);  // directory, region index, integrity table

    const TensorView view = file->tensor_view(region, tensor);
    BOOST_TEST(text_of(view.bytes()).size() == kTensor);
    const std::uint64_t first = view.stored_offset() / kFrame;
    const std::uint64_t last = (view.stored_offset() + kTensor - 1) / kFrame;
    BOOST_TEST(frames.decoded_frames() == looked_up + last - first + 1);
    BOOST_TEST(frames.resident_bytes() < plain.size() / 2);
    BOOST_TEST((view.bytes().size() == kTensor));
    BOOST_TEST(frames.decoded_frames() == looked_up + last - first + 1);  // once

    // A few rows need a frame or two.
    const TensorView other = file->tensor_view(*file->find_region("c"),
                                               *file->find_tensor(*file->find_region("c"), "w"));
    const std::uint64_t before = frames.decoded_frames();
    other.rows(200'000, 200'010);
    BOOST_TEST(frames.decoded_frames() <= before + 2);
    file->verify_all();
    BOOST_TEST(frames.decoded_frames() == (plain.size() + kFrame - 1) / kFrame);
  }
}

BOOST_AUTO_TEST_CASE(frames_are_decoded_once_whatever_many_threads_touch_them) {
  const Sample sample = large_sample();
  const std::string plain = saved(sample);
  for (const Codec codec : kWrappers) {
    const File f(wrapped(plain, codec));
    const auto file = detail::OpenFile::open(f.path, {.verification = Verification::off});
    std::vector<std::jthread> threads;
    std::atomic<unsigned> wrong = 0;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint32_t i = 0; i < 3; ++i) {
          const std::uint32_t r = (i + t) % 3;
          const TensorView view = file->tensor_view(r, file->directory_region(r).first_tensor);
          const auto& payload = sample.regions[r].tensors[0].payload;
          const ByteSpan bytes = view.bytes();
          if (!same_bytes(bytes, payload)) ++wrong;
        }
      });
    }
    threads.clear();
    BOOST_TEST(wrong == 0u);
    BOOST_TEST(frames_of(*file).decoded_frames() <= (plain.size() + kFrame - 1) / kFrame);
    BOOST_TEST(frames_of(*file).resident_bytes() <= plain.size());
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_frame_hides_its_own_bytes_only_and_verify_names_them) {
  const std::string plain = saved(large_sample());
  for (const Codec codec : kWrappers) {
    const TableEditor parts(wrapped(plain, codec));
    const File sound(parts.bytes);
    const std::uint64_t at = Reader::open(sound.path).tensor("b/w").stored_offset() + kTensor / 2;
    std::uint64_t offset = 0;
    for (std::uint64_t i = 0; i < at / kFrame; ++i) offset += parts.entries[i].stored_length;
    std::string file = parts.bytes;
    const std::uint64_t middle = offset + parts.entries[at / kFrame].stored_length / 2;
    file[middle] = static_cast<char>(file[middle] ^ 1);
    const File f(file);
    const Reader reader = Reader::open(f.path);
    BOOST_TEST(reader.tensor("a/w").bytes().size() == kTensor);
    for (int round = 0; round < 2; ++round) {
      BOOST_CHECK_EXCEPTION(reader.tensor("b/w").bytes(), FormatError,
                            says(ErrorCode::bad_compression, f.path.string(), "wrapper",
                                 "at offset " + std::to_string(offset)));
    }
    BOOST_TEST(reader.tensor("c/w").bytes().size() == kTensor);
    const VerifyReport report = verify(f.path);
    BOOST_TEST(!report.ok());
    const auto named = std::find_if(report.findings.begin(), report.findings.end(),
                                    [](const Finding& finding) { return finding.region == "b"; });
    BOOST_TEST((named != report.findings.end()));
    for (const Finding& finding : report.findings)
      BOOST_TEST((finding.region.empty() || finding.region == "b"), finding.message);
  }
}

BOOST_AUTO_TEST_CASE(a_wrapped_file_cut_while_it_is_open_is_an_error_and_no_signal) {
  const std::string plain = saved(large_sample());
  const File f(wrapped(plain, Codec::zstd));
  const Reader reader = Reader::open(f.path);
  const TensorView c = reader.tensor("c/w");
  std::filesystem::resize_file(f.path, 100'000);
  BOOST_CHECK_EXCEPTION(c.bytes(), FormatError, says(ErrorCode::truncated, f.path.string()));
}

BOOST_AUTO_TEST_CASE(contents_that_are_no_thalia_file_are_refused_by_their_first_bytes) {
  for (const Codec codec : kWrappers) {
    const std::string zeros =
        wrapped(std::string(10'000'000, '\0'), codec,
                {.frame_bytes = 1 << 20, .output = {.durability = Durability::none}});
    for (const std::string& bytes : {zeros, without_table(zeros)}) {
      const File f(bytes);
      BOOST_CHECK_EXCEPTION(Reader::open(f.path), FormatError,
                            says(ErrorCode::bad_magic, f.path.string()));
      // Decoding all of it would have met this limit first.
      ReadOptions options;
      options.input.limits.max_allocation_bytes = 9'000'000;
      BOOST_CHECK_EXCEPTION(
          Reader::open(f.path, options), FormatError,
          has_code(bytes == zeros ? ErrorCode::limit_exceeded : ErrorCode::bad_magic));
    }
    std::string old(1000, '\0');  // the header of version 0.1
    old.replace(0, 6, std::string("THAL\0\0", 6));
    const File f(wrapped(old, codec));
    BOOST_CHECK_EXCEPTION(Reader::open(f.path), UnsupportedError,
                          has_code(ErrorCode::unsupported_version));
  }
}

BOOST_AUTO_TEST_CASE(one_frame_to_skip_may_stand_in_front_and_no_more) {
  const std::string skipped("\x53\x2a\x4d\x18\x05\x00\x00\x00skip!", 13);
  for (const Codec codec : kWrappers) {
    const std::string frames = without_table(wrapped(saved(small_sample()), codec));
    const File one(skipped + frames);
    check_same(Reader::open(one.path), small_sample());
    const File two(skipped + skipped + frames);
    BOOST_CHECK_EXCEPTION(Reader::open(two.path), FormatError, has_code(ErrorCode::bad_magic));
  }
}

BOOST_AUTO_TEST_CASE(contents_shorter_than_a_header_are_refused_as_a_short_file_is) {
  const std::string plain = saved(small_sample());
  for (const Codec codec : kWrappers) {
    for (const std::size_t length : {0, 5, 100, 255}) {
      const std::string file = wrapped(plain.substr(0, length), codec);
      for (const std::string& bytes : {file, without_table(file)}) {
        const File f(bytes);
        BOOST_CHECK_EXCEPTION(Reader::open(f.path), FormatError, has_code(ErrorCode::truncated));
      }
    }
    const File nested(wrapped(wrapped(plain, codec), codec));
    BOOST_CHECK_EXCEPTION(Reader::open(nested.path), FormatError, has_code(ErrorCode::bad_magic));
  }
}

BOOST_AUTO_TEST_CASE(a_limit_bounds_the_memory_for_the_content) {
  const std::string plain = saved(small_sample());
  for (const Codec codec : kWrappers) {
    const std::string file = wrapped(plain, codec);
    for (const std::string& bytes : {file, without_table(file)}) {
      const File f(bytes);
      ReadOptions options;
      options.input.limits.max_allocation_bytes = plain.size();
      check_same(Reader::open(f.path, options), small_sample());
      options.input.limits.max_allocation_bytes = plain.size() - 1;
      BOOST_CHECK_EXCEPTION(Reader::open(f.path, options), FormatError,
                            says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
    }
  }
}

BOOST_AUTO_TEST_CASE(broken_seek_tables_are_refused_at_open_and_found_by_verify) {
  const std::string plain = saved(large_sample());
  for (const Codec codec : kWrappers) {
    TableEditor table(wrapped(plain, codec));
    table.entries[1].stored_length = 0xffffffff;
    const File f(table.file());
    BOOST_CHECK_EXCEPTION(Reader::open(f.path), FormatError,
                          says(ErrorCode::bad_value, "wrapper", "stored_length"));
    const VerifyReport report = verify(f.path);
    BOOST_REQUIRE(report.findings.size() == 1u);
    BOOST_TEST(report.findings[0].section == "wrapper");
  }
}

BOOST_AUTO_TEST_CASE(a_wrapped_file_is_not_changed_in_place) {
  const Sample sample = small_sample();
  const std::string plain = saved(sample);
  for (const Codec codec : kWrappers) {
    const File f(wrapped(plain, codec));
    const std::string before = read_file(f.path);
    const auto refused = says(ErrorCode::unsupported_feature, f.path.string(), "decompress");
    BOOST_CHECK_EXCEPTION(Appender{f.path}, UnsupportedError, refused);
    BOOST_CHECK_EXCEPTION(compact(f.path), UnsupportedError, refused);
    BOOST_CHECK_EXCEPTION(recover(f.path), UnsupportedError, refused);
    BOOST_TEST((read_file(f.path) == before));
    compact(f.path, f / "plain");  // into another file it may be read from
    check_same(Reader::open(f / "plain"), sample);
  }
}

BOOST_AUTO_TEST_CASE(streams_read_wrapped_files) {
  const Sample sample = large_sample();
  const std::string plain = saved(sample);
  for (const Codec codec : kWrappers) {
    const File f(wrapped(plain, codec));
    for (const IoMode io : {IoMode::automatic, IoMode::buffered, IoMode::direct}) {
      const Reader reader = Reader::open(f.path);
      StreamOptions options;
      options.io = io;
      StreamReader stream(reader, options);
      std::size_t tensors = 0;
      while (const auto tensor = stream.next()) {
        const auto& payload = sample.regions[tensors++].tensors[0].payload;
        const ByteSpan bytes = tensor->bytes;
        BOOST_TEST(same_bytes(bytes, payload));
      }
      BOOST_TEST(tensors == 3u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
