// What identifies the content of an MCKP file. docs/format/mckp.md, "Content hash".
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/mckp/samples.h"
#include "integrity/content_hash.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/formats/compressor.h"
#include "thalia/formats/mckp.h"

using namespace thalia;
using test::mckp_bytes;
using test::NamedTensors;

BOOST_AUTO_TEST_SUITE(mckp_hash)

namespace {

constexpr std::size_t kMiB = 1 << 20;

template <typename Digest>
void append(std::string& text, const Digest& digest) {
  text += test::text_of(as_byte_span(digest.bytes));
}

// As docs/format/mckp.md and docs/format/format.md spell it. The names of `tensors` ascend.
Digest256 spelled(const NamedTensors& tensors, LeafAlgorithm digests) {
  std::string list;
  const auto number = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) list += static_cast<char>(value >> (8 * i));
  };
  for (const auto& [name, tensor] : tensors) {
    number(name.size(), 4);
    list += name;
    number(static_cast<std::uint64_t>(tensor.dtype()), 4);
    number(tensor.shape().rank(), 4);
    for (const std::uint64_t extent : tensor.shape().extents()) number(extent, 8);
    number(tensor.bytes().size(), 8);
    if (digests == LeafAlgorithm::sha256) {
      append(list, integrity::sha256(tensor.bytes()));
      continue;
    }
    std::string pieces;
    for (ByteSpan left = tensor.bytes(); !left.empty();) {
      const ByteSpan piece = left.first(std::min(left.size(), kMiB));
      append(pieces, integrity::xxh3_128(piece));
      left = left.subspan(piece.size());
    }
    append(list, integrity::xxh3_128(as_byte_span(pieces)));
  }
  return integrity::sha256(as_byte_span(list));
}

// More than a piece of the digest, and than a piece that is compressed.
NamedTensors samples() {
  return {{"a", test::normal_bf16({2, 3}, 2)},
          {"b", test::normal_f32({1'300'001}, 1)},
          {"c", Tensor::zeros(DType::u8, {0})}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_what_the_document_spells) {
  const NamedTensors tensors = samples();
  for (const LeafAlgorithm digests : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
    MckpWriteResult result;
    const auto bytes = mckp_bytes(tensors, {.header = {.content_digests = digests}}, {}, &result);
    BOOST_TEST((result.content_hash == spelled(tensors, digests)));
    const MckpHeader header = test::open_bytes(bytes).header();
    BOOST_TEST((header.content_hash == result.content_hash));
    BOOST_TEST((header.content_digests == digests));
  }
}

BOOST_AUTO_TEST_CASE(it_does_not_depend_on_how_content_is_stored) {
  const NamedTensors tensors = samples();
  const NamedTensors turned{tensors[2], tensors[1], tensors[0]};
  MckpWriteResult one, two, three;
  mckp_bytes(tensors, {}, {}, &one);
  mckp_bytes(turned, {.compression = {.codec = Codec::lz4}, .header = {.training_step = 5}}, {},
             &two);
  BOOST_TEST((one.content_hash == two.content_hash));
  const NamedTensors renamed{tensors[0], {"d", tensors[1].second}, tensors[2]};
  mckp_bytes(renamed, {}, {}, &three);
  BOOST_TEST((one.content_hash != three.content_hash));
}

BOOST_AUTO_TEST_CASE(it_does_not_depend_on_threads_or_pieces) {
  // Odd lengths, more than one piece, and codes of less than a byte.
  const Tensor floats = test::normal_f32({1'300'001}, 1);
  for (const LeafAlgorithm digests : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
    const auto hash = [&](unsigned threads, std::optional<MckpQuantizationOptions> quantization,
                          double* error = nullptr) {
      MckpWriteResult result;
      const NamedTensors tensors{
          {"a", floats}, {"b", Tensor::zeros(DType::u8, {0})}, {"c", floats}};
      const auto bytes = mckp_bytes(tensors,
                                    {.quantization = quantization,
                                     .header = {.content_digests = digests},
                                     .work = {.threads = threads}},
                                    {}, &result);
      if (error != nullptr) *error = result.largest_error;
      // The hash is that of what comes back, which is something else where codes took the place of
      // numbers.
      const MckpFile file = test::open_bytes(bytes);
      BOOST_TEST((spelled({{"a", file.read("a")}, {"b", file.read("b")}, {"c", file.read("c")}},
                          digests) == result.content_hash));
      return result.content_hash;
    };
    BOOST_TEST((hash(1, {}) == hash(4, {})));
    for (const unsigned bits : {1u, 2u, 5u}) {
      if (test::kSanitized && bits != 5) continue;
      double one = 0, four = 0;
      const MckpQuantizationOptions lossy{.bits = bits};
      BOOST_TEST((hash(1, lossy, &one) == hash(4, lossy, &four)));
      BOOST_TEST(one == four);
      BOOST_TEST(one > 0.0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_chain_may_mix_digests) {
  const auto storage = std::make_shared<MemoryStorage>();
  const auto compressor = [&](LeafAlgorithm digests) {
    return CheckpointCompressor({.content_digests = digests}, storage);
  };
  Checkpoint checkpoint;
  checkpoint.tensors["w"] = test::normal_f32({5000}, 1);
  const CheckpointCompressor strong = compressor(LeafAlgorithm::sha256),
                             fast = compressor(LeafAlgorithm::xxh3_128);
  strong.save(checkpoint, "one");
  checkpoint.tensors["w"].mutable_bytes()[17] ^= std::byte{1};
  BOOST_TEST(fast.save(checkpoint, "two", "one").delta_tensors == 1u);
  checkpoint.tensors["w"].mutable_bytes()[18] ^= std::byte{1};
  BOOST_TEST(strong.save(checkpoint, "three", "two").delta_tensors == 1u);
  for (const auto& reader : {strong, fast}) {
    BOOST_TEST((reader.load("three").tensors.at("w") == checkpoint.tensors["w"]));
    MckpChain::open(*storage, "two").verify_content();
  }
}

BOOST_AUTO_TEST_CASE(a_file_in_memory_is_the_file_that_a_sink_gets) {
  // One header that is longer than the parts that the blocks are moved in, and no block at all.
  NamedTensors many;
  for (int i = 0; i < 6000; ++i)
    many.emplace_back("tensor " + std::to_string(i * i),
                      test::normal_f32({3}, static_cast<std::uint64_t>(i)));
  for (const NamedTensors& tensors : {samples(), many, NamedTensors()}) {
    for (const Codec codec : {Codec::plane_entropy, Codec::none, Codec::zstd}) {
      std::vector<std::byte> memory{std::byte{1}}, sunk;
      const auto add = [&](MckpWriter writer) {
        for (const auto& [name, tensor] : tensors) writer.add(name, tensor);
        return writer.commit();
      };
      const MckpWriteResult one = add(MckpWriter(memory, {.compression = {.codec = codec}}));
      const MckpWriteResult two = add(MckpWriter(
          ByteSink([&](ByteSpan piece) { sunk.insert(sunk.end(), piece.begin(), piece.end()); }),
          {.compression = {.codec = codec}}));
      BOOST_TEST((memory == sunk));
      BOOST_TEST(one.file_bytes == memory.size());
      BOOST_TEST(two.file_bytes == sunk.size());
      test::open_bytes(test::text_of(memory), {.verify = true}).verify();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
