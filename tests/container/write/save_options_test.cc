// Every option that shapes the file: checksums, leaves, blocks, compression; and the ways in which
// payloads come in.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "boost_test.h"
#include "container/write/same_as_sample.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(save_options)

namespace {

// Compressible for any codec, and different everywhere.
SampleTensor ramp_tensor(std::string name, std::uint64_t bytes) {
  SampleTensor tensor = dense_tensor(std::move(name), DType::u8, {bytes});
  for (std::uint64_t i = 0; i < bytes; ++i) tensor.payload[i] = std::byte(i / 61 + i / 5000);
  return tensor;
}

// One tensor of a few chunks, one that does not shrink, and small ones.
Sample chunked_sample() {
  Sample sample = varied_sample();
  sample.regions[2].tensors.push_back(ramp_tensor("shrinks", 200'000));
  sample.regions[2].tensors.push_back(dense_tensor("random", DType::u8, {100'000}));
  // Half of it shrinks: its chunks have different codecs.
  SampleTensor mixed = dense_tensor("mixed", DType::u8, {64 << 10});
  std::fill(mixed.payload.begin(), mixed.payload.begin() + (32 << 10), std::byte{7});
  sample.regions[2].tensors.push_back(std::move(mixed));
  return sample;
}

// Tensor numbers in the order of declaration, interleaved at random, in pieces of odd lengths.
void stream_in_pieces(Writer& writer, const std::vector<TensorId>& ids,
                      const std::vector<const SampleTensor*>& tensors, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> written(ids.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!tensors[i]->payload.empty()) open.push_back(i);
  }
  while (!open.empty()) {
    const std::size_t pick = random() % open.size();
    const std::size_t i = open[pick];
    const ByteSpan left = ByteSpan(tensors[i]->payload).subspan(written[i]);
    const std::size_t length = std::min<std::size_t>(left.size(), random() % 3000);
    writer.write(ids[i], left.first(length));
    written[i] += length;
    if (length == left.size()) open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
  }
}

// Declares all regions of `sample` with streamed tensors, but for every `borrowed`-th.
std::string save_streamed(const Sample& sample, std::size_t borrowed, std::uint64_t seed) {
  const TemporaryFolder folder;
  Writer writer(folder / "f", steady_options());
  writer.set_metadata(sample.metadata);
  writer.set_training_steps(sample.training_steps);
  std::vector<TensorId> ids;
  std::vector<const SampleTensor*> tensors;
  std::size_t count = 0;
  for (const SampleRegion& region : sample.regions) {
    const RegionId id = writer.add_region(region.spec);
    for (const SampleTensor& tensor : region.tensors) {
      if (++count % borrowed == 0) {
        writer.add_tensor(id, tensor.spec, tensor.payload);
      } else {
        ids.push_back(writer.add_tensor(id, tensor.spec));
        tensors.push_back(&tensor);
      }
    }
  }
  for (const SampleConnection& connection : sample.connections) {
    const auto number = writer.add_connection(connection.source, connection.target);
    writer.add_connection_weights(number, connection.weights.spec, connection.weights.payload);
    if (connection.delays)
      writer.add_connection_delays(number, connection.delays->spec, connection.delays->payload);
  }
  stream_in_pieces(writer, ids, tensors, seed);
  writer.commit();
  return read_file(folder / "f");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_checksum_and_block_size_holds) {
  const Sample sample = chunked_sample();
  for (const ChecksumType type :
       {ChecksumType::none, ChecksumType::sha256, ChecksumType::crc32, ChecksumType::block_tree}) {
    for (const LeafAlgorithm leaves : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
      for (const unsigned log2 : {12u, 13u, 16u, 20u, 30u}) {
        SaveOptions options = steady_options();
        options.checksum = type;
        options.leaves = leaves;
        options.block_log2 = log2;
        BOOST_TEST_CONTEXT("checksum " << int(type) << ", leaves " << int(leaves) << ", 2^"
                                       << log2) {
          check_round_trip(sample, options);
        }
        if (type != ChecksumType::block_tree) break;  // the others have no blocks
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_codec_level_and_chunk_size_comes_back) {
  const Sample sample = chunked_sample();
  for (const auto& [codec, levels] :
       {std::pair(Codec::zstd, std::vector{0, 1, 22}), std::pair(Codec::lz4, std::vector{0, 12})}) {
    for (const int level : levels) {
      for (const std::uint32_t chunk_bytes : {4096u, 12288u, 65536u, 1u << 20, 1u << 30}) {
        SaveOptions options = steady_options();
        options.compression.codec = codec;
        options.compression.level = level;
        options.compression.chunk_bytes = chunk_bytes;
        options.work.threads = 2;
        BOOST_TEST_CONTEXT("codec " << int(codec) << ", level " << level << ", chunks of "
                                    << chunk_bytes) {
          check_round_trip(sample, options);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_shrink_stay_raw) {
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  save(folder / "f", chunked_sample(), options);
  const Reader reader = Reader::open(folder / "f");
  BOOST_TEST(reader.tensor("random").is_raw());
  const TensorView shrinks = reader.tensor("shrinks");
  BOOST_TEST(shrinks.chunk_count() == 200'000u / 4096 + 1);
  BOOST_TEST(shrinks.stored_bytes() < shrinks.logical_bytes() / 4);
  BOOST_TEST(reader.tensor("mixed").chunk_count() == 16u);
  BOOST_TEST(reader.tensor("mixed").stored_bytes() > (32u << 10));
  BOOST_TEST(reader.header().flags.compressed);
  BOOST_TEST(!reader.header().flags.lz4);
}

BOOST_AUTO_TEST_CASE(streamed_payloads_give_the_bytes_of_borrowed_ones) {
  const Sample sample = chunked_sample();
  const std::string expected = check_round_trip(sample);
  for (const std::size_t borrowed : {1u, 2u, 3u, 1000u}) {
    BOOST_TEST(bool(save_streamed(sample, borrowed, borrowed) == expected));
  }
}

BOOST_AUTO_TEST_CASE(compressed_payloads_can_be_streamed_in_the_order_of_the_file) {
  const Sample sample = {
      .regions = {{{.name = "a"}, {ramp_tensor("x", 70'000), ramp_tensor("y", 9'000)}},
                  {{.name = "b"}, {ramp_tensor("z", 10'000)}}},
      .connections = {}};
  SaveOptions options = steady_options();
  options.compression.codec = Codec::lz4;
  options.compression.chunk_bytes = 8192;
  const std::string expected = check_round_trip(sample, options);
  const TemporaryFolder folder;
  Writer writer(folder / "f", options);
  const RegionId a = writer.add_region(sample.regions[0].spec);
  const TensorId x = writer.add_tensor(a, sample.regions[0].tensors[0].spec);
  writer.add_tensor(a, sample.regions[0].tensors[1].spec, sample.regions[0].tensors[1].payload);
  const TensorId z = writer.add_tensor(writer.add_region(sample.regions[1].spec),
                                       sample.regions[1].tensors[0].spec);
  const ByteSpan first = sample.regions[0].tensors[0].payload;
  for (std::size_t at = 0; at < first.size(); at += 777)
    writer.write(x, first.subspan(at, std::min<std::size_t>(777, first.size() - at)));
  writer.write(z, sample.regions[1].tensors[0].payload);
  writer.commit();
  BOOST_TEST(bool(read_file(folder / "f") == expected));
}

BOOST_AUTO_TEST_CASE(sparse_arrays_give_the_bytes_of_their_payload) {
  // Odd counts, so that padding comes before the 8-byte values.
  const SampleTensor csr = csr_tensor("s", DType::f64, {4, 6});
  const SampleTensor coo = coo_tensor("c", DType::i64, {3, 3, 3}, true);
  const std::string expected =
      check_round_trip({.regions = {{{.name = "r"}, {csr, coo}}}, .connections = {}});
  const TemporaryFolder folder;
  save(folder / "in", {.regions = {{{.name = "r"}, {csr, coo}}}, .connections = {}});
  const Reader reader = Reader::open(folder / "in");
  Writer writer(folder / "f", steady_options());
  const RegionId region = writer.add_region({.name = "r"});
  const TensorSpec plain{.name = "s", .dtype = DType::f64, .shape = {4, 6}};
  writer.add_csr(region, plain, std::get<CsrArrays<std::uint32_t>>(reader.tensor("s").csr()));
  writer.add_coo(region, {.name = "c", .dtype = DType::i64, .shape = {3, 3, 3}},
                 std::get<CooArrays<std::uint64_t>>(reader.tensor("c").coo()));
  writer.commit();
  BOOST_TEST(bool(read_file(folder / "f") == expected));
}

BOOST_AUTO_TEST_CASE(progress_rises_to_its_total) {
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.work.threads = 2;
  std::uint64_t last = 0;
  std::uint64_t end = 0;
  options.work.progress = [&](std::uint64_t done, std::uint64_t total) {
    BOOST_TEST(done > last);
    BOOST_TEST(done <= total);
    last = done;
    end = total;
  };
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    options.compression.codec = codec;
    last = end = 0;
    const SaveResult result = save(folder / "f", chunked_sample(), options);
    BOOST_TEST(last == result.payload_bytes);
    BOOST_TEST(last == end);
  }
  last = 0;
  VerifyOptions verifying;
  verifying.work.progress = options.work.progress;
  verify(folder / "f", verifying);
  BOOST_TEST(last > 0u);
  BOOST_TEST(last == end);
}

BOOST_AUTO_TEST_CASE(sha256_of_the_file_stands_beside_it) {
  const TemporaryFolder folder;
  for (const Codec codec : {Codec::none, Codec::lz4}) {
    for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
      for (const ChecksumType checksum : {ChecksumType::block_tree, ChecksumType::sha256}) {
        SaveOptions options = steady_options();
        options.compression.codec = codec;
        options.io = io;
        options.checksum = checksum;
        options.sha256 = true;
        options.work.threads = 2;
        const SaveResult result = save(folder / "f", chunked_sample(), options);
        BOOST_TEST_REQUIRE(result.sha256.has_value());
        const Digest256 expected = integrity::sha256(bytes_of(read_file(folder / "f")));
        BOOST_TEST(std::ranges::equal(result.sha256->bytes, expected.bytes));
        BOOST_TEST(read_file(folder / "f.sha256").substr(64) == "  f\n");
        const std::string check =
            "cd " + folder.path().string() + " && sha256sum --check --strict --status f.sha256";
        BOOST_TEST(std::system(check.c_str()) == 0);
      }
    }
  }
}

// A crash at any call leaves a file with its digest, or without one: never with that of another.
BOOST_AUTO_TEST_CASE(no_digest_stands_beside_a_file_that_it_is_not_of) {
  SaveOptions options = steady_options();
  options.sha256 = true;
  Sample other = small_sample();
  other.training_steps = 7;
  bool has_returned = false;
  for (unsigned call = 0; !has_returned; ++call) {
    const TemporaryFolder folder;
    save(folder / "f", small_sample(), options);
    has_returned =
        run_killed_at(call, [&] { save(folder / "f", other, options); }) == End::returned;
    const std::string check =
        "cd " + folder.path().string() + " && sha256sum --check --strict --status f.sha256";
    const bool has_digest = std::filesystem::exists(folder / "f.sha256");
    BOOST_TEST((!has_digest || std::system(check.c_str()) == 0), call);
    BOOST_TEST(verify(folder / "f").ok());
    if (has_returned) BOOST_TEST(has_digest);
  }
}

// Payloads of more than an extent go out before the file is complete.
BOOST_AUTO_TEST_CASE(checksums_of_the_whole_file_cover_what_went_out_early) {
  const TemporaryFolder folder;
  const SampleTensor large[] = {dense_tensor("a", DType::u8, {4 << 20}), ramp_tensor("b", 9 << 20),
                                dense_tensor("c", DType::u8, {3 << 20})};
  for (const Codec codec : {Codec::none, Codec::zstd, Codec::plane_entropy}) {
    for (const bool streamed : {false, true}) {
      for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
        for (const ChecksumType checksum :
             {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32}) {
          SaveOptions options = steady_options();
          options.compression.codec = codec;
          options.io = io;
          options.checksum = checksum;
          options.sha256 = true;
          Writer writer(folder / "f", options);
          const RegionId region = writer.add_region({.name = "r"});
          std::vector<TensorId> ids;
          for (const SampleTensor& tensor : large) {
            ids.push_back(streamed ? writer.add_tensor(region, tensor.spec)
                                   : writer.add_tensor(region, tensor.spec, tensor.payload));
          }
          for (std::size_t i = 0; streamed && i < ids.size(); ++i)
            writer.write(ids[i], large[i].payload);
          const SaveResult result = writer.commit();
          const Digest256 expected = integrity::sha256(bytes_of(read_file(folder / "f")));
          BOOST_TEST(bool(*result.sha256 == expected));
          const VerifyReport found = verify(folder / "f");
          BOOST_TEST(found.ok(), codec_name(codec) << " streamed " << streamed);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sha256_file_escapes_names_as_sha256sum_does) {
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.sha256 = true;
  save(folder / "back\\slash\nline", small_sample(), options);
  const std::string check =
      "cd " + folder.path().string() + " && sha256sum --check --strict --status *.sha256";
  BOOST_TEST(std::system(check.c_str()) == 0);
}

BOOST_AUTO_TEST_CASE(cancelled_save_leaves_the_old_file) {
  const TemporaryFolder folder;
  save(folder / "f", varied_sample(), steady_options());
  const auto old = read_file(folder / "f");
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    std::stop_source source;
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    options.work.cancel = source.get_token();
    source.request_stop();
    BOOST_CHECK_EXCEPTION(save(folder / "f", chunked_sample(), options), CancelledError,
                          says(ErrorCode::cancelled, (folder / "f").string()));
    BOOST_TEST(bool(read_file(folder / "f") == old));
    BOOST_TEST(list_folder(folder.path()).size() == 1u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
