// Chains as streams: what comes out is what read() gives, in any order, in bounded memory, into
// memory of the caller's, and nothing that is damaged.
#include <fstream>

#include "state/delta/check.h"
#include "state/quantize/quantization_sample.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_stream)

namespace {

namespace fs = std::filesystem;

// A full file and two deltas on it. "large" has several pieces and moves a little each time;
// "list" changes in few places, "same" never, "added" comes with the last link.
struct StreamedChain {
  StreamedChain() {
    std::mt19937_64 random(3);
    auto& tensors = state.regions["cortex"];
    tensors["large"] = {normal_tensor({1500, 1001}, random)};
    tensors["list"] = {normal_tensor({700, 1000}, random)};
    tensors["same"] = {normal_tensor({400, 1000}, random)};
    tensors["empty"] = {Tensor::zeros(DType::f32, {0, 4})};
    tensors["odd"] = {random_tensor(DType::u8, {1234567}, random)};
    save_full(state, paths[0]);
    for (int link = 1; link <= 2; ++link) {
      ++state.steps;
      for (float& value : tensors["large"].tensor.mutable_as<float>()) value += 1e-4f;
      for (std::size_t i = 0; i < 700'000; i += 70'001)
        tensors["list"].tensor.mutable_as<float>()[i] = static_cast<float>(link);
      if (link == 2) tensors["added"] = {normal_tensor({90}, random)};
      save_delta(state, paths[link - 1], paths[link]);
    }
  }
  TemporaryFolder folder;
  SampleState state;
  fs::path paths[3] = {folder / "0.thalia", folder / "1.delta.thalia", folder / "2.delta.thalia"};
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_chain_streams_as_it_reads) {
  const StreamedChain files;
  for (const fs::path& path : files.paths) {
    const ChainReader chain = ChainReader::open(path);
    for (const auto order : {StreamOrder::as_asked, StreamOrder::file, StreamOrder::as_completed}) {
      // Less memory than the largest tensor takes, and more than all of them.
      for (const std::uint64_t memory : {4ull << 20, 64ull << 20}) {
        for (const unsigned threads : {1u, 3u})
          check_streamed(chain,
                         {.order = order, .work = {.threads = threads, .memory_bytes = memory}});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(some_tensors_come_in_the_order_asked_for_to_where_they_are_wanted) {
  const StreamedChain files;
  const ChainReader chain = ChainReader::open(files.paths[2]);
  const RegionView cortex = chain.reader().region("cortex");
  const std::vector<TensorView> asked = {cortex.at("same"), cortex.at("added"), cortex.at("large"),
                                         cortex.at("same")};
  std::vector<std::byte> memory(16 << 20);
  std::size_t used = 0, count = 0;
  std::uint64_t done = 0, total = 0;
  StreamReader stream =
      chain.stream(asked, {.destination =
                               [&](const TensorView&, std::uint64_t bytes) {
                                 const auto place = MutableByteSpan(memory).subspan(used, bytes);
                                 used += bytes;
                                 return place;
                               },
                           .work = {.progress = [&](std::uint64_t at, std::uint64_t of) {
                             done = at;
                             total = of;
                           }}});
  while (const auto item = stream.next()) {
    BOOST_TEST(item->index == count);
    BOOST_TEST((item->tensor.name() == asked[count].name()));
    BOOST_TEST(same_bytes(item->bytes, chain.read(asked[count]).bytes()));
    BOOST_TEST(item->memory == nullptr);
    ++count;
  }
  BOOST_TEST(count == asked.size());
  BOOST_TEST(done == used);
  BOOST_TEST(total == used);
  StreamReader region = chain.stream(std::span(&cortex, 1));
  count = 0;
  while (region.next()) ++count;
  BOOST_TEST(count == cortex.tensor_count());
}

BOOST_AUTO_TEST_CASE(a_stream_keeps_its_files_open) {
  const StreamedChain files;
  StreamReader stream = ChainReader::open(files.paths[2]).stream();
  for (const fs::path& path : files.paths) fs::remove(path);
  std::size_t count = 0;
  while (const auto item = stream.next()) {
    const auto& sample = files.state.regions.at("cortex").at(std::string(item->tensor.name()));
    BOOST_TEST(same_bytes(item->bytes, sample.tensor.bytes()));
    ++count;
  }
  BOOST_TEST(count == files.state.regions.at("cortex").size());
}

// Blocks of the base that two tensors lie in; only the content hash shows it.
BOOST_AUTO_TEST_CASE(what_is_damaged_below_is_passed_over_or_ends_the_stream) {
  const StreamedChain files;
  {
    const Reader base = Reader::open(files.paths[0]);
    const TensorView large = base.region("cortex").at("large");
    std::fstream file(files.paths[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(large.stored_offset() + large.stored_bytes() / 2));
    file.write("damage", 6);
  }
  const ChainReader chain = ChainReader::open(files.paths[2]);
  std::vector<std::string> damaged;
  StreamReader stream =
      chain.stream(StreamOptions{.damaged = [&](const TensorView& tensor, const Error& error) {
        damaged.emplace_back(tensor.name());
        BOOST_TEST(has_code(ErrorCode::checksum_mismatch)(error));
      }});
  std::size_t count = 0;
  while (const auto item = stream.next()) {
    const auto& sample = files.state.regions.at("cortex").at(std::string(item->tensor.name()));
    BOOST_TEST(same_bytes(item->bytes, sample.tensor.bytes()));
    ++count;
  }
  BOOST_TEST(damaged == std::vector<std::string>{"large"}, boost::test_tools::per_element());
  BOOST_TEST(count == files.state.regions.at("cortex").size() - 1);
  StreamReader ending = chain.stream();
  BOOST_CHECK_EXCEPTION(while (ending.next()){}, IntegrityError,
                        says(ErrorCode::checksum_mismatch, "large", "0.thalia"));
}

BOOST_AUTO_TEST_CASE(quantized_bases_are_restored_and_codes_of_a_delta_refused) {
  const TemporaryFolder folder;
  std::mt19937_64 random(8);
  const Tensor weights = normal_tensor({900, 700}, random);
  write_layer(folder / "plain", {{"w", weights}});
  quantize_file(folder / "plain", folder / "quantized", {}, {.save = quiet_save()});
  const ChainReader base = ChainReader::open(folder / "quantized");
  write_delta(state_source(ChainReader::open(folder / "plain")), base, folder / "delta",
              {.save = {.output = {.durability = Durability::none}}});
  const ChainReader chain = ChainReader::open(folder / "delta");
  check_streamed(chain);
  BOOST_CHECK_EXCEPTION(chain.stream(StreamOptions{.quantized = StreamedQuantized::codes}),
                        UsageError, says(ErrorCode::bad_argument, "quantized", "several files"));
  // A full file has codes.
  StreamReader codes = base.stream(StreamOptions{.quantized = StreamedQuantized::codes});
  const auto item = codes.next();
  BOOST_TEST_REQUIRE(item.has_value());
  BOOST_TEST(item->quantized.has_value());
  BOOST_CHECK_EXCEPTION(StreamReader(chain.reader()), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "ChainReader::stream()"));
  BOOST_CHECK_EXCEPTION(chain.stream(StreamOptions{.queue_depth = 0}), UsageError,
                        says(ErrorCode::bad_argument, "queue_depth"));
}

BOOST_AUTO_TEST_CASE(a_chain_stream_may_be_cancelled_and_dropped) {
  const StreamedChain files;
  const ChainReader chain = ChainReader::open(files.paths[2]);
  std::stop_source cancel;
  StreamReader stream =
      chain.stream(StreamOptions{.work = {.memory_bytes = 4 << 20, .cancel = cancel.get_token()}});
  BOOST_TEST(stream.next().has_value());
  cancel.request_stop();
  BOOST_CHECK_THROW(while (stream.next()){}, CancelledError);
  for (int taken = 0; taken < 6; ++taken) {
    StreamReader dropped = chain.stream(StreamOptions{.work = {.memory_bytes = 4 << 20}});
    for (int i = 0; i < taken; ++i) dropped.next();
  }
}

BOOST_AUTO_TEST_SUITE_END()
