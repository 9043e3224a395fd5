// Sparse tensors in MCKP files. docs/format/mckp.md, "Sparse tensors".
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "boost_test.h"
#include "format/payload.h"
#include "formats/mckp/parts.h"
#include "formats/mckp/samples.h"
#include "integrity/sha256.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/compressor.h"
#include "thalia/formats/mckp.h"

using namespace thalia;
using test::mckp_bytes;
using test::NamedTensors;
using test::open_bytes;
using test::Parts;

BOOST_AUTO_TEST_SUITE(mckp_sparse)

namespace {

// One element in ten of a matrix that takes several pieces if it is compressed.
Tensor thin(DType dtype, std::uint64_t rows, std::uint64_t seed) {
  Tensor dense = test::random_tensor(dtype, {rows, 500}, seed);
  const std::size_t width = dtype_bits(dtype) / 8;
  const MutableByteSpan bytes = dense.mutable_bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (i / width % 10 != seed % 10) bytes[i] = std::byte{0};
  return dense;
}

Tensor wide_coo() {
  const std::vector<std::uint64_t> indices{0, 1ull << 33, 7, 5};
  const std::vector<std::uint16_t> values{0x3f80, 0x4000};
  return Tensor::coo<std::uint64_t>(
      DType::bf16, {(1ull << 33) + 1, 8},
      {.indices = indices, .values = std::as_bytes(std::span(values))});
}

NamedTensors samples() {
  return {{"coo", thin(DType::f32, 40, 1).to_coo()},
          {"csr", thin(DType::bf16, 40, 2).to_csr()},
          {"dense", test::normal_f32({9}, 1)},
          {"none", Tensor::zeros(DType::i64, {5, 5}).to_coo()},
          {"padded", test::sparse_f64(Encoding::csr)},
          {"padded coo", test::sparse_f64(Encoding::coo)},
          {"vector", thin(DType::u8, 1, 3).to_coo()},
          {"wide", wide_coo()}};
}

// A file by hand: one f64 tensor of shape [3, 4] in csr, unless the caller says otherwise.
struct Handmade {
  std::string payload;
  std::string dtype = "F64";
  std::string shape = "[3,4]";
  std::string sparse = R"({"encoding":"csr","nnz":3,"index_bits":32})";
  std::uint32_t method = 1 << 11;
  std::uint32_t flags = 8;
  std::uint64_t size = 56;

  std::string bytes() const {
    Parts parts = test::one_tensor(payload, size, method, dtype, shape);
    const std::size_t at = parts.json.find("}],\"metadata\"");
    parts.json.insert(at, ",\"sparse\":" + sparse);
    parts.flags = flags;
    return parts.bytes();
  }
};

Handmade handmade() {
  return {.payload = test::text_of(test::sparse_f64(Encoding::csr).bytes())};
}

}  // namespace

BOOST_AUTO_TEST_CASE(they_come_back_in_their_encoding_from_every_codec) {
  for (const Codec codec :
       {Codec::none, Codec::zstd, Codec::lz4, Codec::plane_entropy, Codec::packed_exponents}) {
    const MckpFile file =
        open_bytes(mckp_bytes(samples(), {.compression = {.codec = codec}}), {.verify = true});
    for (const auto& [name, tensor] : samples()) {
      BOOST_TEST_CONTEXT(name) {
        BOOST_TEST((file.read(name) == tensor));
        BOOST_TEST((file.view(name) == tensor));
        BOOST_TEST((file.find(name)->layout() == tensor.layout()));
        BOOST_TEST(file.find(name)->original_size == tensor.bytes().size());
        BOOST_TEST(file.find(name)->method.sparse == !tensor.is_dense());
      }
    }
    file.verify();
  }
}

BOOST_AUTO_TEST_CASE(several_pieces_of_one_are_put_together) {
  // The indices alone are more than a piece, so there is one with indices and values in it.
  const Tensor tensor = thin(DType::f32, 24'000, 4).to_coo();
  BOOST_REQUIRE(format::sparse_parts(tensor.layout())->values.offset > 4u << 20);
  for (const Codec codec : {Codec::none, Codec::zstd, Codec::lz4}) {
    const std::string bytes = mckp_bytes({{"t", tensor}}, {.compression = {.codec = codec}});
    BOOST_TEST((open_bytes(bytes).read("t") == tensor));
    BOOST_TEST(open_bytes(bytes).find("t")->method.plane_width == (codec == Codec::none ? 0 : 4));
  }
}

BOOST_AUTO_TEST_CASE(of_byte_grouping_only_the_values_are_touched) {
  const Tensor tensor = thin(DType::f32, 4, 1).to_csr();
  const std::string file = mckp_bytes({{"t", tensor}}, {.compression = {.codec = Codec::none}});
  const MckpTensor stored = *open_bytes(file).find("t");
  BOOST_TEST(stored.method.plane_width == 0u);
  // By hand: method store, sparse, byte-grouped with a width of 4.
  const std::uint64_t begin = format::sparse_parts(tensor.layout())->values.offset;
  std::string payload = test::text_of(tensor.bytes());
  const std::string values = payload.substr(begin);
  payload.resize(begin);
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t i = k; i < values.size(); i += 4) payload += values[i];
  Handmade made{
      .payload = payload,
      .dtype = "F32",
      .shape = "[4,500]",
      .sparse = fmt::format(R"({{"encoding":"csr","nnz":{},"index_bits":32}})", tensor.nnz()),
      .method = 1 << 11 | 1 << 9 | 4 << 16,
      .flags = 8 | 2,
      .size = tensor.bytes().size()};
  BOOST_TEST((open_bytes(made.bytes()).read("t") == tensor));
}

BOOST_AUTO_TEST_CASE(a_file_without_them_says_nothing_of_them) {
  const std::string dense = mckp_bytes({{"a", test::normal_f32({9}, 1)}});
  BOOST_TEST((std::to_integer<int>(test::bytes_of(dense)[8]) & 8) == 0);
  BOOST_TEST(!open_bytes(dense).find("a")->sparse);
  const std::string sparse = mckp_bytes({{"a", test::sparse_f64(Encoding::csr)}});
  BOOST_TEST((std::to_integer<int>(test::bytes_of(sparse)[8]) & 8) == 8);
}

BOOST_AUTO_TEST_CASE(their_content_hash_is_what_the_document_spells) {
  std::string list;
  const auto number = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) list += static_cast<char>(value >> (8 * i));
  };
  for (const auto& [name, tensor] : samples()) {
    number(name.size(), 4);
    list += name;
    const std::uint64_t encoding = tensor.is_dense()                    ? 0
                                   : tensor.encoding() == Encoding::csr ? 256
                                                                        : 512;
    number(static_cast<std::uint64_t>(tensor.dtype()) + encoding, 4);
    number(tensor.shape().rank(), 4);
    for (const std::uint64_t extent : tensor.shape().extents()) number(extent, 8);
    if (!tensor.is_dense()) {
      number(tensor.nnz(), 8);
      number(tensor.layout().wide_indices ? 64 : 32, 4);
    }
    number(tensor.bytes().size(), 8);
    list += test::text_of(as_byte_span(integrity::sha256(tensor.bytes()).bytes));
  }
  MckpWriteResult result;
  mckp_bytes(samples(), {.header = {.content_digests = LeafAlgorithm::sha256}}, {}, &result);
  BOOST_TEST((result.content_hash == integrity::sha256(as_byte_span(list))));
  MckpWriteResult csr, dense;
  const Tensor tensor = test::sparse_f64(Encoding::csr);
  mckp_bytes({{"t", tensor}}, {}, {}, &csr);
  mckp_bytes({{"t", tensor.to_dense()}}, {}, {}, &dense);
  BOOST_TEST((csr.content_hash != dense.content_hash));
}

BOOST_AUTO_TEST_CASE(a_delta_of_equal_indices_is_small_and_of_others_is_none) {
  const auto storage = std::make_shared<MemoryStorage>();
  const CheckpointCompressor compressor({.compression = {.codec = Codec::zstd}}, storage);
  Checkpoint checkpoint;
  checkpoint.tensors["same"] = thin(DType::f32, 100, 1).to_csr();
  checkpoint.tensors["moved"] = thin(DType::f32, 10, 2).to_coo();
  checkpoint.tensors["dense"] = thin(DType::f32, 10, 3);
  compressor.save(checkpoint, "one");
  Tensor& same = checkpoint.tensors["same"];
  const std::uint64_t begin = format::sparse_parts(same.layout())->values.offset;
  same.mutable_bytes()[begin + 40] ^= std::byte{1};
  Tensor moved = checkpoint.tensors["moved"].to_dense();
  moved.mutable_bytes()[0] = std::byte{1};
  checkpoint.tensors["moved"] = moved.to_coo();
  checkpoint.tensors["dense"] = checkpoint.tensors["dense"].to_csr();
  // From what is kept in memory, and from the storage.
  for (const CheckpointCompressor& by :
       {compressor, CheckpointCompressor({.compression = {.codec = Codec::zstd}}, storage)}) {
    const CheckpointMeta meta = by.save(checkpoint, "two", "one");
    BOOST_TEST(meta.delta_tensors == 1u);
    const MckpChain chain = MckpChain::open(*storage, "two");
    chain.verify_content();
    BOOST_TEST(chain.newest().find("same")->method.delta);
    BOOST_TEST(chain.newest().find("same")->compressed_size < 100u);
    for (const auto& [name, tensor] : checkpoint.tensors)
      BOOST_TEST((chain.read(name) == tensor), name);
    const Checkpoint loaded = by.load("two");
    BOOST_TEST((loaded.tensors.at("same") == same));
    BOOST_CHECK_THROW(chain.newest().read("same"), MissingBaseError);
    BOOST_CHECK_EXCEPTION(chain.newest().read("same", same.to_dense()), UsageError,
                          test::says(ErrorCode::dtype_mismatch, "dense f32", "csr f32, nnz"));
  }
}

BOOST_AUTO_TEST_CASE(nothing_sparse_is_quantized) {
  const MckpFile file = open_bytes(mckp_bytes({{"layer.weight", thin(DType::f32, 40, 1).to_csr()}},
                                              {.quantization = MckpQuantizationOptions{}}));
  BOOST_TEST(!file.find("layer.weight")->method.quantized);
  BOOST_TEST((file.read("layer.weight") == thin(DType::f32, 40, 1).to_csr()));
}

BOOST_AUTO_TEST_CASE(broken_indices_are_not_written) {
  std::vector<std::byte> out;
  MckpWriter writer(out);
  Tensor broken = test::sparse_f64(Encoding::coo);
  broken.mutable_bytes()[0] = std::byte{3};
  BOOST_CHECK_EXCEPTION(writer.add("t", broken), UsageError,
                        test::says(ErrorCode::bad_argument, "indices"));
  // The writer goes on.
  writer.add("t", test::sparse_f64(Encoding::coo));
  BOOST_TEST(writer.commit().tensors == 1u);
}

BOOST_AUTO_TEST_CASE(every_index_is_checked_when_it_is_read) {
  const std::string good = handmade().payload;
  BOOST_TEST((open_bytes(handmade().bytes()).read("t") == test::sparse_f64(Encoding::csr)));
  // Row pointers 0 1 1 3, columns 1 0 3, four bytes of padding.
  for (std::size_t at = 0; at < 32; at += 4) {
    Handmade made = handmade();
    made.payload[at] = 4;
    const MckpFile file = open_bytes(made.bytes());
    BOOST_CHECK_EXCEPTION(file.read("t"), FormatError,
                          test::says(ErrorCode::bad_value, "payload", "'t'"));
    BOOST_CHECK_THROW(file.view("t"), FormatError);
  }
  // A difference whose result has a bad index, and whose base has a good one.
  Tensor next = test::sparse_f64(Encoding::csr);
  const std::string delta = mckp_bytes(
      {{"t", test::sparse_f64(Encoding::csr)}},
      {.compression = {.codec = Codec::zstd}, .header = {.previous = MckpPrevious{"base", {}}}},
      {{"t", next}});
  next.mutable_bytes()[16] = std::byte{9};
  BOOST_REQUIRE(open_bytes(delta).find("t")->method.delta);
  BOOST_CHECK_EXCEPTION(open_bytes(delta).read("t", next), FormatError,
                        test::has_code(ErrorCode::bad_value));
}

BOOST_AUTO_TEST_CASE(headers_that_lie_of_them_are_refused) {
  const auto refuse = [](const std::function<void(Handmade&)>& change, ErrorCode code,
                         const char* says) {
    Handmade made = handmade();
    change(made);
    BOOST_TEST_CONTEXT(made.sparse << " " << made.shape << " " << made.dtype)
    BOOST_CHECK_EXCEPTION(open_bytes(made.bytes()), Error, test::says(code, says));
  };
  const auto sparse = [&](const char* text, ErrorCode code, const char* says) {
    refuse([=](Handmade& made) { made.sparse = text; }, code, says);
  };
  sparse("null", ErrorCode::inconsistent, "sparse");
  sparse("[]", ErrorCode::bad_value, "sparse");
  sparse("{}", ErrorCode::bad_value, "encoding");
  sparse(R"({"encoding":"csc","nnz":3,"index_bits":32})", ErrorCode::unsupported_feature, "csc");
  sparse(R"({"encoding":"dense","nnz":3,"index_bits":32})", ErrorCode::unsupported_feature,
         "encoding");
  sparse(R"({"encoding":"csr","nnz":3})", ErrorCode::bad_value, "index_bits");
  sparse(R"({"encoding":"csr","nnz":3,"index_bits":16})", ErrorCode::bad_value, "index_bits");
  sparse(R"({"encoding":"csr","nnz":-1,"index_bits":32})", ErrorCode::bad_value, "nnz");
  sparse(R"({"encoding":"csr","nnz":3,"nnz":3,"index_bits":32})", ErrorCode::inconsistent, "nnz");
  sparse(R"({"encoding":"csr","nnz":13,"index_bits":32})", ErrorCode::out_of_bounds, "nnz");
  sparse(R"({"encoding":"csr","nnz":18446744073709551615,"index_bits":64})",
         ErrorCode::out_of_bounds, "nnz");
  sparse(R"({"encoding":"csr","nnz":2,"index_bits":32})", ErrorCode::inconsistent, "original_size");
  sparse(R"({"encoding":"coo","nnz":2,"index_bits":32})", ErrorCode::inconsistent, "original_size");
  refuse([](Handmade& made) { made.flags = 0; }, ErrorCode::inconsistent, "flags");
  refuse([](Handmade& made) { made.method = 0; }, ErrorCode::inconsistent, "sparse");
  refuse([](Handmade& made) { made.method |= 1 << 10; }, ErrorCode::inconsistent, "sparse");
  refuse([](Handmade& made) { made.shape = "[12]"; }, ErrorCode::inconsistent, "2 dimensions");
  refuse([](Handmade& made) { made.dtype = "U4"; }, ErrorCode::inconsistent, "whole bytes");
  refuse(
      [](Handmade& made) {
        made.shape = "[]";
        made.sparse = R"({"encoding":"coo","nnz":0,"index_bits":32})";
      },
      ErrorCode::inconsistent, "1 dimension");
  refuse([](Handmade& made) { made.shape = "[3,4294967296]"; }, ErrorCode::inconsistent,
         "index_bits");
  refuse([](Handmade& made) { made.shape = "[18446744073709551615,1]"; }, ErrorCode::out_of_bounds,
         "shape");
  // Rows whose pointers would fill memory: the size in the header has to be theirs.
  refuse(
      [](Handmade& made) {
        made.shape = "[1000000000000,1]";
        made.sparse = R"({"encoding":"csr","nnz":0,"index_bits":64})";
      },
      ErrorCode::inconsistent, "original_size");
}

BOOST_AUTO_TEST_CASE(a_size_that_the_payload_cannot_have_is_refused_before_memory_is_asked_for) {
  Handmade made = handmade();
  made.shape = "[1000000000000,1]";
  made.sparse = R"({"encoding":"csr","nnz":0,"index_bits":64})";
  made.size = 8'000'000'000'008;
  for (const std::uint32_t codec : {0u, 1u, 2u, 3u}) {
    made.method = 1 << 11 | codec;
    BOOST_CHECK_THROW(open_bytes(made.bytes()).read("t"), FormatError);
  }
}

BOOST_AUTO_TEST_SUITE_END()
