// Streams of files that are damaged, shrink, or fail to be read: the error names the place, nothing
// wrong is handed out, and no signal comes.
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <optional>

#include "boost_test.h"
#include "container/stream/check.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(stream_damage)

namespace {

constexpr IoMode kModes[] = {IoMode::buffered, IoMode::direct};

struct StreamFile {
  explicit StreamFile(ChecksumType checksum = ChecksumType::block_tree, Codec codec = Codec::none,
                      unsigned block_log2 = 16)
      : path(folder / "f") {
    SaveOptions options = steady_options();
    options.checksum = checksum;
    options.compression.codec = codec;
    options.compression.chunk_bytes = 64 << 10;
    options.block_log2 = block_log2;
    save_stream_sample(path, options);
    sound = read_file(path);
  }
  // One bit of a tensor's stored bytes, in a fresh file at the same path.
  void damage(std::string_view tensor, std::uint64_t at) {
    write_file(path, sound);
    const std::uint64_t offset = Reader::open(path).tensor(tensor).stored_offset() + at;
    std::string bytes = sound;
    bytes[offset] ^= 1;
    write_file(path, bytes);
  }
  TemporaryFolder folder;
  std::filesystem::path path;
  std::string sound;
};

// Takes tensors until the stream throws; each has the bytes that `sound` says.
template <typename Check>
void check_error(StreamReader& stream, const Reader& sound, Check check) {
  bool threw = false;
  try {
    while (const auto item = stream.next()) {
      const TensorView& tensor = item->tensor;
      const RegionView region = sound.region(Reader::region_name(tensor));
      std::vector<std::byte> expected(tensor.logical_bytes());
      region.at(tensor.name()).read(expected);
      BOOST_TEST(same_bytes(item->bytes, expected));
    }
  } catch (const Error& error) {
    threw = true;
    BOOST_TEST(check(error), error.what());
  }
  BOOST_TEST(threw);
  BOOST_CHECK_THROW(stream.next(), Error);  // and nothing more
}

template <typename Action>
bool is_damaged(Action action) {
  try {
    action();
    return false;
  } catch (const IntegrityError&) {
    return true;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_damaged_block_or_chunk_is_named_and_not_handed_out) {
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    for (const ChecksumType checksum : {ChecksumType::block_tree, ChecksumType::crc32}) {
      for (const unsigned log2 : {12u, 21u}) {
        StreamFile file(checksum, codec, log2);
        const TemporaryFolder other;
        write_file(other / "sound", file.sound);
        const Reader sound = Reader::open(other / "sound");
        for (const std::string name : {"t1", "t7"}) {
          const std::uint64_t stored = sound.tensor("large/" + name).stored_bytes();
          for (const std::uint64_t at : {std::uint64_t{0}, stored - 1}) {
            file.damage("large/" + name, at);
            const Reader reader = Reader::open(file.path);
            if (is_damaged([&] { reader.region("large"); })) continue;  // a block of the directory
            const std::vector<RegionView> large = {reader.region("large")};
            StreamReader stream(reader, large, {.io = kModes[at == 0 ? 0 : 1]});
            check_error(stream, sound, [&](const Error& error) {
              return error.code() == ErrorCode::checksum_mismatch &&
                     error.context().tensor == name && error.context().region == "large" &&
                     error.context().path == file.path.string();
            });
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_tensor_is_passed_over_where_asked_for) {
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    for (const ChecksumType checksum : {ChecksumType::block_tree, ChecksumType::crc32}) {
      for (const unsigned log2 : {12u, 16u, 21u}) {
        StreamFile file(checksum, codec, log2);
        const TemporaryFolder other;
        write_file(other / "sound", file.sound);
        const Reader sound = Reader::open(other / "sound");
        const std::vector<TensorView> tensors = all_tensors(sound);
        const std::uint64_t stored = sound.tensor("large/t4").stored_bytes();
        for (const StreamOrder order :
             {StreamOrder::as_asked, StreamOrder::file, StreamOrder::as_completed}) {
          file.damage("large/t4", order == StreamOrder::file ? stored - 1 : stored / 2);
          const Reader reader = Reader::open(file.path);
          if (is_damaged([&] { reader.region("large"); })) continue;  // a block of the directory
          std::vector<std::string> damaged;
          StreamReader stream(
              reader,
              {.order = order, .damaged = [&](const TensorView& tensor, const Error& error) {
                 damaged.emplace_back(tensor.name());
                 BOOST_TEST(bool(error.code() == ErrorCode::checksum_mismatch));
                 BOOST_TEST(error.context().tensor == tensor.name());
                 BOOST_TEST(error.context().region == "large");
               }});
          std::size_t count = 0;
          while (const auto item = stream.next()) {
            ++count;
            std::vector<std::byte> expected(item->tensor.logical_bytes());
            tensors[item->index].read(expected);
            BOOST_TEST(same_bytes(item->bytes, expected), item->tensor.name());
          }
          BOOST_TEST(damaged == std::vector<std::string>{"t4"}, boost::test_tools::per_element());
          BOOST_TEST(stream.result().damaged == 1u);
          BOOST_TEST(stream.result().tensors == count);
          BOOST_TEST(count + 1 == tensors.size());
          BOOST_TEST(!stream.next().has_value());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_callback_cannot_take_from_its_own_stream) {
  StreamFile file(ChecksumType::block_tree, Codec::none, 16);
  file.damage("large/t4", 100'000);
  const Reader reader = Reader::open(file.path);
  std::optional<StreamReader> stream;
  std::size_t refused = 0;
  stream.emplace(reader, StreamOptions{.damaged = [&](const TensorView&, const Error&) {
                   BOOST_CHECK_EXCEPTION(stream->next(), UsageError,
                                         says(ErrorCode::wrong_state, "the stream is in use"));
                   ++refused;
                 }});
  while (stream->next()) {
  }
  BOOST_TEST(refused == 1u);
  BOOST_TEST(stream->result().damaged == 1u);
}

BOOST_AUTO_TEST_CASE(damage_under_leaves_of_sha256_is_passed_over_too) {
  StreamFile file;
  SaveOptions options = steady_options();
  options.leaves = LeafAlgorithm::sha256;
  save_stream_sample(file.path, options);
  file.sound = read_file(file.path);
  file.damage("large/t4", 500'000);
  const Reader reader = Reader::open(file.path);
  std::vector<std::string> damaged;
  StreamReader stream(reader, {.damaged = [&](const TensorView& tensor, const Error&) {
                        damaged.emplace_back(tensor.name());
                      }});
  while (stream.next()) {
  }
  BOOST_TEST(damaged == std::vector<std::string>{"t4"}, boost::test_tools::per_element());
  BOOST_TEST(stream.result().tensors + 1 == all_tensors(reader).size());
}

BOOST_AUTO_TEST_CASE(damage_elsewhere_disturbs_nobody) {
  StreamFile file(ChecksumType::block_tree, Codec::none, 12);
  file.damage("large/t4", 500'000);
  const Reader reader = Reader::open(file.path);
  const std::vector<TensorView> around = {reader.tensor("large/t3"), reader.tensor("large/t5")};
  for (const IoMode io : kModes) {
    StreamReader stream(reader, around, {.io = io});
    check_stream(stream, around);
  }
}

BOOST_AUTO_TEST_CASE(unverified_streams_hand_out_what_is_there) {
  for (const ChecksumType checksum : {ChecksumType::block_tree, ChecksumType::crc32}) {
    StreamFile file(checksum);
    file.damage("large/t1", 5);
    const Reader reader = Reader::open(file.path, {.verification = Verification::off});
    const std::vector<TensorView> tensors = all_tensors(reader);
    StreamReader stream(reader);
    check_stream(stream, tensors);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_shrank_is_truncated_before_and_while_it_is_read) {
  for (const IoMode io : kModes) {
    for (const Codec codec : {Codec::none, Codec::zstd}) {
      const StreamFile file(ChecksumType::block_tree, codec);
      const Reader reader = Reader::open(file.path);
      const std::uint64_t half = file.sound.size() / 2;
      // The destination of the first tensor is asked for before anything is read.
      bool shrunk = false;
      StreamReader stream(reader, {.io = io, .destination = [&](const TensorView&, std::uint64_t) {
                                     if (!shrunk) std::filesystem::resize_file(file.path, half);
                                     shrunk = true;
                                     return MutableByteSpan();
                                   }});
      BOOST_CHECK_EXCEPTION(while (stream.next()){}, FormatError, [&](const FormatError& error) {
        return error.code() == ErrorCode::truncated && !error.context().region.empty() &&
               !error.context().tensor.empty() && *error.context().offset >= half - (1 << 20);
      });
      BOOST_CHECK_EXCEPTION(StreamReader(reader, StreamOptions{.io = io}), FormatError,
                            has_code(ErrorCode::truncated));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_comes_where_io_uring_or_direct_files_are_denied) {
  struct Denial {
    const char* fallback;
    std::vector<Fault> faults;
  };
  constexpr std::uint64_t kDirect = 040000;
  const std::array denials = {
      Denial{"io_uring is not available or denied; threads read instead",
             {{SYS_io_uring_setup, EPERM}}},
      Denial{"the file system has no O_DIRECT",
             {{SYS_openat, EINVAL, ArgumentCondition::has_bits(2, kDirect)}}}};
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    const StreamFile file(ChecksumType::block_tree, codec);
    for (const Denial& denial : denials) {
      const Outcome outcome = run_with_faults(denial.faults, [&] {
        const Reader reader = Reader::open(file.path);
        StreamReader stream(reader, {.io = IoMode::direct});
        const auto expected = all_tensors(reader);
        std::size_t count = 0;
        while (const auto item = stream.next()) {
          std::vector<std::byte> bytes(item->bytes.size());
          expected[count++].read(bytes);
          if (!std::equal(bytes.begin(), bytes.end(), item->bytes.begin()))
            throw std::runtime_error("other bytes");
        }
        if (count != expected.size()) throw std::runtime_error("tensors are missing");
        if (stream.result().io_fallback != denial.fallback)
          throw std::runtime_error(stream.result().io_fallback);
      });
      // If there is no O_DIRECT at all, both say so.
      const bool none_here = outcome.message == std::string_view("the file system has no O_DIRECT");
      BOOST_TEST((outcome.kind == Outcome::Kind::returned || none_here), outcome.message);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_error_of_the_disk_names_tensor_and_offset) {
  const StreamFile file;
  const Reader reader = Reader::open(file.path);
  const std::uint64_t from = reader.tensor("large/t4").stored_offset() + 1;
  for (const IoMode io : kModes) {
    const Outcome outcome = run_with_faults(
        {{SYS_io_uring_setup, EPERM},
         {SYS_pread64, EIO, ArgumentCondition{3, ArgumentCondition::Kind::at_least, from}}},
        [&] {
          StreamReader stream(reader, {.io = io});
          while (stream.next()) {
          }
        });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == EIO);
    BOOST_TEST(outcome.message.find("'large'") != std::string::npos, outcome.message);
    BOOST_TEST(outcome.message.find("at offset") != std::string::npos, outcome.message);
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_of_another_codec_ends_the_stream) {
  const StreamFile file(ChecksumType::block_tree, Codec::zstd);
  EditableFile edited(file.sound);
  edited.chunk(0).codec = Codec::plane_entropy;
  edited.reseal();
  write_file(file.path, edited.bytes());
  const Reader reader = Reader::open(file.path);
  StreamReader stream(reader);
  BOOST_CHECK_THROW(while (stream.next()){}, CompressionError);
}

BOOST_AUTO_TEST_SUITE_END()
