// Streams hand out what a mapped reader reads, in any form, way and order.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>

#include "boost_test.h"
#include "container/stream/check.h"
#include "io/memory/aligned_buffer.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

static_assert(std::input_iterator<StreamReader::Iterator>);

BOOST_AUTO_TEST_SUITE(stream)

namespace {

SaveOptions form(ChecksumType checksum, Codec codec, unsigned block_log2 = 20) {
  SaveOptions options = steady_options();
  options.checksum = checksum;
  options.compression.codec = codec;
  options.compression.chunk_bytes = 64 << 10;
  options.block_log2 = block_log2;
  return options;
}

constexpr Codec kCodecs[] = {Codec::none, Codec::zstd, Codec::lz4};
constexpr IoMode kModes[] = {IoMode::automatic, IoMode::buffered, IoMode::direct};

// Hands out a place of its own in one allocation for each tensor.
struct Places {
  Places(const std::vector<TensorView>& tensors, std::size_t alignment, std::size_t shift)
      : alignment_(alignment), shift_(shift), memory(io::AlignedBuffer(room(tensors))) {}
  MutableByteSpan operator()(const TensorView& tensor, std::uint64_t bytes) {
    const MutableByteSpan place = memory.bytes().subspan(used_ + shift_, bytes);
    used_ += rounded(tensor);
    return place;
  }

 private:
  std::size_t rounded(const TensorView& tensor) const {
    return (tensor.logical_bytes() + shift_ + alignment_ - 1) / alignment_ * alignment_;
  }
  std::size_t room(const std::vector<TensorView>& tensors) const {
    std::size_t sum = 0;
    for (const TensorView& tensor : tensors) sum += rounded(tensor);
    return (sum + 8191) / 4096 * 4096;
  }
  std::size_t alignment_;
  std::size_t shift_;
  std::size_t used_ = 0;

 public:
  io::AlignedBuffer memory;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_form_of_file_streams_as_it_reads) {
  const TemporaryFolder folder;
  for (const Codec codec : kCodecs) {
    for (const auto checksum : {ChecksumType::none, ChecksumType::sha256, ChecksumType::crc32,
                                ChecksumType::block_tree}) {
      save_stream_sample(folder / "f", form(checksum, codec));
      for (const IoMode io : kModes) {
        BOOST_TEST_CONTEXT("codec " << int(codec) << ", checksum " << int(checksum) << ", io "
                                    << int(io)) {
          const Reader reader = Reader::open(folder / "f");
          StreamReader stream(reader, {.io = io});
          check_stream(stream, all_tensors(Reader::open(folder / "f")));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_every_size_are_verified) {
  const TemporaryFolder folder;
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    for (const LeafAlgorithm leaves : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
      for (const unsigned log2 : {12u, 21u, 30u}) {
        SaveOptions options = form(ChecksumType::block_tree, codec, log2);
        options.leaves = leaves;
        save_stream_sample(folder / "f", options);
        const Reader reader = Reader::open(folder / "f");
        StreamReader stream(reader, {.io = IoMode::direct});
        check_stream(stream, all_tensors(Reader::open(folder / "f")));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_and_reads_and_any_memory_will_do) {
  const TemporaryFolder folder;
  for (const Codec codec : {Codec::none, Codec::lz4}) {
    save_stream_sample(folder / "f", form(ChecksumType::block_tree, codec, 12));
    const Reader reader = Reader::open(folder / "f");
    for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
      for (const unsigned threads : {1u, 5u}) {
        for (const unsigned depth : {1u, 64u}) {
          for (const std::uint64_t memory : {std::uint64_t{4} << 20, std::uint64_t{1} << 30}) {
            StreamReader stream(reader, {.io = io,
                                         .queue_depth = depth,
                                         .work = {.threads = threads, .memory_bytes = memory}});
            check_stream(stream, all_tensors(reader));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_come_in_the_order_asked_for) {
  const TemporaryFolder folder;
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    save_stream_sample(folder / "f", form(ChecksumType::block_tree, codec, 16));
    const Reader reader = Reader::open(folder / "f");
    std::vector<TensorView> tensors = all_tensors(reader);
    std::reverse(tensors.begin(), tensors.end());
    {
      StreamReader stream(reader, tensors);
      check_stream(stream, tensors);
    }
    std::shuffle(tensors.begin(), tensors.end(), std::mt19937(1));
    tensors.push_back(tensors.front());  // twice is not once
    tensors.push_back(tensors.front());
    for (const std::uint64_t memory : {std::uint64_t{4} << 20, std::uint64_t{128} << 20}) {
      StreamReader stream(reader, tensors, {.work = {.memory_bytes = memory}});
      check_stream(stream, tensors);
    }
    StreamReader as_completed(reader, tensors, {.order = StreamOrder::as_completed});
    check_stream(as_completed, tensors, false);
    StreamReader in_file_order(reader, tensors, {.order = StreamOrder::file});
    std::uint64_t last = 0;
    for (const StreamedTensor& item : in_file_order) {
      BOOST_TEST(item.tensor.stored_offset() >= last);
      last = item.tensor.stored_offset();
    }
  }
}

BOOST_AUTO_TEST_CASE(regions_and_tensors_are_read_without_the_rest) {
  const TemporaryFolder folder;
  save_stream_sample(folder / "f", form(ChecksumType::block_tree, Codec::none, 12));
  const Reader reader = Reader::open(folder / "f");
  const RegionView small = reader.region("small");
  StreamReader regions(reader, std::vector{small, reader.region("large")});
  std::size_t count = 0;
  for (const StreamedTensor& item : regions) {
    const bool of_first = count < small.tensor_count();
    BOOST_TEST(Reader::region_name(item.tensor) == (of_first ? "small" : "large"));
    ++count;
  }
  BOOST_TEST(count == small.tensor_count() + reader.region("large").tensor_count());

  const std::vector<TensorView> one = {reader.tensor("large/t2")};
  StreamReader stream(reader, one);
  BOOST_TEST(check_stream(stream, one).bytes_read <= 2 * 4096u);

  StreamReader none(reader, std::vector<TensorView>());
  BOOST_TEST(!none.next());
}

BOOST_AUTO_TEST_CASE(bytes_go_where_the_caller_wants_them) {
  const TemporaryFolder folder;
  for (const Codec codec : kCodecs) {
    for (const auto checksum : {ChecksumType::crc32, ChecksumType::block_tree}) {
      save_stream_sample(folder / "f", form(checksum, codec));
      const Reader reader = Reader::open(folder / "f");
      const std::vector<TensorView> tensors = all_tensors(reader);
      for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
        for (const std::size_t shift : {0u, 512u, 7u}) {
          Places places(tensors, 4096, shift);
          StreamReader stream(reader, {.io = io, .destination = std::ref(places)});
          check_stream(stream, tensors);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_handed_out_lies_in_the_callers_memory_or_keeps_its_own) {
  const TemporaryFolder folder;
  save_stream_sample(folder / "f", form(ChecksumType::block_tree, Codec::none));
  std::vector<StreamedTensor> kept;
  std::vector<std::byte> place;
  {
    const Reader reader = Reader::open(folder / "f");
    place.resize(reader.tensor("large/t1").logical_bytes());
    StreamReader stream(reader, {.destination = [&](const TensorView& tensor, std::uint64_t) {
                          return tensor.name() == "t1" ? MutableByteSpan(place) : MutableByteSpan();
                        }});
    stream.for_each([&](StreamedTensor tensor) { kept.push_back(std::move(tensor)); });
  }
  const Reader reader = Reader::open(folder / "f");
  for (const StreamedTensor& item : kept) {
    std::vector<std::byte> expected(item.tensor.logical_bytes());
    item.tensor.read(expected);
    BOOST_TEST(same_bytes(item.bytes, expected));
    const bool is_callers = item.tensor.name() == "t1";
    BOOST_TEST((item.bytes.data() == place.data()) == is_callers);
    BOOST_TEST((item.memory == nullptr) == (is_callers || item.bytes.empty()));
  }
}

BOOST_AUTO_TEST_CASE(no_payload_page_of_the_mapping_is_touched) {
  const TemporaryFolder folder;
  const auto data = std::vector<std::byte>(32 << 20, std::byte{1});
  {
    Writer writer(folder / "f", {.output = {.durability = Durability::none}});
    const RegionId region = writer.add_region({.name = "r"});
    writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {data.size()}}, data);
    writer.commit();
  }
  for (const IoMode io : kModes) {
    const Reader reader = Reader::open(folder / "f");
    StreamReader stream(reader, {.io = io});
    const auto item = stream.next();
    BOOST_TEST_REQUIRE(bool(item));
    BOOST_TEST(same_bytes(item->bytes, data));
    BOOST_TEST(reader.resident_bytes() < 4u << 20);  // the header's and the tables' folios
  }
}

BOOST_AUTO_TEST_CASE(a_stream_says_how_it_read) {
  const TemporaryFolder folder;
  save_stream_sample(folder / "f", form(ChecksumType::block_tree, Codec::none));
  const Reader reader = Reader::open(folder / "f");
  const auto result = [&](IoMode io) {
    StreamReader stream(reader, {.io = io});
    return check_stream(stream, all_tensors(reader));
  };
  // It was just written, and check_stream has touched it.
  result(IoMode::buffered);
  BOOST_TEST((result(IoMode::automatic).io == IoMode::buffered));
  BOOST_TEST((result(IoMode::buffered).io == IoMode::buffered));
  const StreamResult direct = result(IoMode::direct);
  BOOST_TEST(((direct.io == IoMode::direct) || !direct.io_fallback.empty()));
  BOOST_TEST(direct.bytes_read > 6u << 20);
}

BOOST_AUTO_TEST_CASE(what_was_streamed_counts_as_verified) {
  const TemporaryFolder folder;
  save_stream_sample(folder / "f", form(ChecksumType::block_tree, Codec::none));
  const Reader reader = Reader::open(folder / "f");
  StreamReader stream(reader);
  while (stream.next()) {
  }
  const TensorView tensor = reader.tensor("large/t1");
  {
    // In place, so that the mapping shows it.
    std::fstream file(folder / "f", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(tensor.stored_offset() + 5));
    file.put('\x7f');
  }
  BOOST_CHECK_NO_THROW(tensor.bytes());
  BOOST_CHECK_THROW(Reader::open(folder / "f").tensor("large/t1").bytes(), IntegrityError);
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_stream_to_its_parent) {
  if (kThreadSanitized) return;  // which knows no threads that a forked child starts
  const TemporaryFolder folder;
  save_stream_sample(folder / "f", steady_options());
  const Reader reader = Reader::open(folder / "f");
  std::optional<StreamReader> stream;
  stream.emplace(reader);
  stream->next();
  const Outcome outcome = run_with_faults({}, [&] {
    ::alarm(20);
    std::size_t own = 0;
    for (const StreamedTensor& tensor : StreamReader(reader)) own += tensor.bytes.size();
    if (own == 0) throw std::runtime_error("no stream of its own");
    try {
      stream->next();
    } catch (const UsageError&) {
      stream.reset();  // which would wait for threads that are not there
      throw;
    }
  });
  BOOST_TEST(outcome.message.find("the stream belongs to process") != std::string::npos,
             outcome.message);
  std::size_t left = 0;
  while (stream->next()) ++left;
  BOOST_TEST(left + 1 == stream->result().tensors);
}

BOOST_AUTO_TEST_CASE(options_out_of_bounds_are_refused) {
  const TemporaryFolder folder;
  save(folder / "f", small_sample());
  const Reader reader = Reader::open(folder / "f");
  const auto is_bad = has_code(ErrorCode::bad_argument);
  BOOST_CHECK_EXCEPTION(StreamReader(reader, StreamOptions{.work = {.memory_bytes = 1}}),
                        UsageError, is_bad);
  BOOST_CHECK_EXCEPTION(StreamReader(reader, StreamOptions{.queue_depth = 0}), UsageError, is_bad);
  BOOST_CHECK_EXCEPTION(StreamReader(reader, StreamOptions{.queue_depth = 1025}), UsageError,
                        is_bad);
  BOOST_CHECK_EXCEPTION(StreamReader(reader, StreamOptions{.io = IoMode{7}}), UsageError, is_bad);
  const Reader other = Reader::open(folder / "f");
  const std::vector<TensorView> foreign = {other.region(0u).tensor(0)};
  BOOST_CHECK_EXCEPTION(StreamReader(reader, foreign), UsageError,
                        says(ErrorCode::bad_argument, "another Reader"));
  const std::vector<RegionView> foreign_regions = {other.region(0u)};
  BOOST_CHECK_EXCEPTION(StreamReader(reader, foreign_regions), UsageError,
                        says(ErrorCode::bad_argument, "another Reader"));
}

BOOST_AUTO_TEST_SUITE_END()
