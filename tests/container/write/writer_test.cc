// What a writer refuses, and that nothing is left of a save that did not end well.
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "boost_test.h"
#include "container/write/same_as_sample.h"
#include "io/file/memory_file.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(writer)

namespace {

constexpr const char* kOld = "the file that was there";

// A folder with a file of other contents at the target.
struct Target {
  Target() : path(folder / "f.thalia") { write_file(path, kOld); }
  ~Target() {
    BOOST_TEST(read_file(path) == kOld);
    BOOST_TEST(list_folder(folder.path()) == Names{"f.thalia"}, per_element());
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  TemporaryFolder folder;
  std::filesystem::path path;
};

void refuse_options(const SaveOptions& options, const char* field) {
  const Target target;
  BOOST_CHECK_EXCEPTION(Writer(target.path, options), UsageError,
                        says(ErrorCode::bad_argument, field));
}

// `use` throws with this code; what it was told before stays good, and can be committed.
template <typename Use>
void refuse(ErrorCode code, const char* part, Use use) {
  const TemporaryFolder folder;
  Writer writer(folder / "f", steady_options());
  const RegionId region = writer.add_region({.name = "region"});
  static constexpr float kValues[6] = {};
  writer.add_tensor(region, {.name = "tensor", .shape = {6}}, as_byte_span(kValues));
  BOOST_CHECK_EXCEPTION(use(writer, region), UsageError, says(code, part));
  writer.commit();
  BOOST_TEST(verify(folder / "f").ok());
  BOOST_TEST(Reader::open(folder / "f").tensor_count() == 1u);
}

void refuse_tensor(ErrorCode code, const char* part, TensorSpec spec,
                   std::optional<std::size_t> payload = std::nullopt) {
  if (spec.name.empty()) spec.name = "another";
  const std::vector<std::byte> bytes(payload.value_or(0));
  refuse(code, part, [&](Writer& writer, RegionId region) {
    payload ? writer.add_tensor(region, spec, bytes) : writer.add_tensor(region, spec);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(options_out_of_bounds_are_refused) {
  const auto with = [](auto member, auto value) {
    SaveOptions options = steady_options();
    options.*member = value;
    return options;
  };
  refuse_options(with(&SaveOptions::checksum, ChecksumType{4}), "checksum");
  refuse_options(with(&SaveOptions::leaves, LeafAlgorithm{0}), "leaves");
  refuse_options(with(&SaveOptions::leaves, LeafAlgorithm{3}), "leaves");
  refuse_options(with(&SaveOptions::block_log2, 11u), "block_log2");
  refuse_options(with(&SaveOptions::block_log2, 31u), "block_log2");
  for (const std::uint32_t bytes : {0u, 4095u, 4097u, (1u << 30) + 4096, ~0u})
    refuse_options({.compression = {.chunk_bytes = bytes}}, "chunk_bytes");
  for (const auto codec : {Codec{kCodecCount}, Codec{9}})
    refuse_options({.compression = {.codec = codec}}, "codec");
  refuse_options({.compression = {.codec = Codec::none}, .automatic_codec = true}, "codec");
  for (const auto& [codec, level] :
       {std::pair(Codec::none, 1), std::pair(Codec::zstd, 23), std::pair(Codec::zstd, -1),
        std::pair(Codec::lz4, 13), std::pair(Codec::plane_entropy, 1),
        std::pair(Codec::packed_exponents, 1)}) {
    refuse_options({.compression = {.codec = codec, .level = level}}, "compression_level");
  }
}

BOOST_AUTO_TEST_CASE(specs_that_make_no_tensor_are_refused) {
  const auto bad = ErrorCode::bad_argument;
  refuse_tensor(bad, "another", {.dtype = DType{29}, .shape = {1}});
  refuse_tensor(bad, "another", {.shape = {1}, .role = Role{kRoleCount}});
  refuse_tensor(bad, "another", {.shape = {1}, .encoding = Encoding{8}});
  refuse_tensor(bad, "another", {.shape = {1}, .encoding = Encoding{255}});
  refuse_tensor(bad, "another", {.shape = {1}, .encoding = Encoding::quantized});
  refuse_tensor(bad, "another", {.shape = {1ull << 62, 4}});
  refuse_tensor(bad, "another", {.shape = {1ull << 62}});
  refuse_tensor(bad, "another", {.dtype = DType::c128, .shape = {1ull << 60}});
  refuse_tensor(bad, "nnz", {.shape = {4}, .nnz = 1});
  refuse_tensor(bad, "another", {.shape = {4}, .wide_indices = true});
  refuse_tensor(bad, "another", {.shape = {4}, .encoding = Encoding::csr});
  refuse_tensor(bad, "another", {.shape = {4, 4, 4}, .encoding = Encoding::csr});
  refuse_tensor(bad, "another", {.shape = {}, .encoding = Encoding::coo});
  refuse_tensor(bad, "nnz at most 16", {.shape = {4, 4}, .encoding = Encoding::csr, .nnz = 17});
  refuse_tensor(bad, "another", {.dtype = DType::i4, .shape = {4, 4}, .encoding = Encoding::csr});
  refuse_tensor(bad, "wide", {.shape = {1ull << 32, 1}, .encoding = Encoding::csr});
  refuse_tensor(bad, "wide", {.shape = {1ull << 32}, .encoding = Encoding::coo});
  refuse_tensor(ErrorCode::duplicate, "tensor", {.name = "tensor", .shape = {1}});
  for (const std::size_t size : {0u, 11u, 13u})
    refuse_tensor(ErrorCode::size_mismatch, "another", {.shape = {3}}, size);
}

BOOST_AUTO_TEST_CASE(declarations_that_contradict_are_refused) {
  const auto bad = ErrorCode::bad_argument;
  refuse(ErrorCode::duplicate, "region",
         [](Writer& writer, RegionId) { writer.add_region({.name = "region"}); });
  refuse(bad, "neuron_type", [](Writer& writer, RegionId) {
    writer.add_region({.name = "b", .neuron_type = NeuronType{3}});
  });
  for (const char* json : {"", "[]", "{", "{} {}", "null", "{\"a\":01}", "{\"\xFF\":1}"}) {
    refuse(bad, "metadata", [=](Writer& writer, RegionId) { writer.set_metadata(json); });
    refuse(bad, "config_json", [=](Writer& writer, RegionId) {
      writer.add_region({.name = "b", .config_json = json});
    });
  }
  refuse(bad, "metadata_json",
         [](Writer& writer, RegionId) { writer.add_region({.name = "b", .metadata_json = "7"}); });
  refuse(bad, "region", [](Writer& writer, RegionId) {
    writer.add_tensor(RegionId{1}, {.name = "t", .shape = {1}});
  });
  refuse(ErrorCode::not_found, "nowhere",
         [](Writer& writer, RegionId) { writer.add_connection("region", "nowhere"); });
  refuse(bad, "connection",
         [](Writer& writer, RegionId) { writer.add_connection_weights({0}, {.shape = {0}}, {}); });
}

BOOST_AUTO_TEST_CASE(borrowed_sparse_arrays_are_checked_at_commit) {
  const Target target;
  Writer writer(target.path, steady_options());
  const RegionId region = writer.add_region({.name = "r"});
  SampleTensor tensor = csr_tensor("s", DType::f32, {3, 5});
  tensor.payload[4 * 4] = std::byte{5};
  writer.add_tensor(region, tensor.spec, tensor.payload);
  BOOST_CHECK_EXCEPTION(writer.commit(), UsageError,
                        says(ErrorCode::bad_argument, "column_indices[0]", "'s'"));
  BOOST_CHECK_EXCEPTION(writer.commit(), UsageError, has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(sparse_arrays_of_other_lengths_are_refused) {
  const std::uint32_t pointers[] = {0, 1, 1, 2};
  const std::uint32_t columns[] = {0, 1};
  const float values[] = {1, 2, 3};
  refuse(ErrorCode::size_mismatch, "16", [&](Writer& writer, RegionId region) {
    writer.add_csr<std::uint32_t>(
        region, {.name = "s", .shape = {3, 2}},
        {std::span(pointers).first(3), columns, as_byte_span(values).first(8)});
  });
  refuse(ErrorCode::size_mismatch, "8", [&](Writer& writer, RegionId region) {
    writer.add_csr<std::uint32_t>(region, {.name = "s", .shape = {3, 2}},
                                  {pointers, columns, as_byte_span(values)});
  });
  refuse(ErrorCode::bad_argument, "a dtype", [&](Writer& writer, RegionId region) {
    writer.add_csr<std::uint32_t>(region, {.name = "s", .dtype = DType{200}, .shape = {3, 2}},
                                  {pointers, columns, as_byte_span(values).first(8)});
  });
  refuse(ErrorCode::size_mismatch, "", [&](Writer& writer, RegionId region) {
    writer.add_coo<std::uint32_t>(region, {.name = "s", .shape = {3, 2}},
                                  {std::span(pointers).first(3), as_byte_span(values).first(4)});
  });
}

BOOST_AUTO_TEST_CASE(a_connection_needs_weights_and_has_one_matrix_of_each) {
  const Target target;
  {
    Writer writer(target.path, steady_options());
    writer.add_region({.name = "a"});
    writer.add_connection("a", "a");
    BOOST_CHECK_EXCEPTION(writer.add_connection("a", "a"), UsageError,
                          has_code(ErrorCode::duplicate));
    const std::byte one[1] = {};
    const TensorSpec spec{.dtype = DType::u8, .shape = {1}};
    writer.add_connection_delays({0}, spec, one);
    BOOST_CHECK_EXCEPTION(writer.add_connection_delays({0}, spec, one), UsageError,
                          has_code(ErrorCode::duplicate));
    BOOST_CHECK_EXCEPTION(writer.commit(), UsageError,
                          says(ErrorCode::wrong_state, "without weights"));
  }
}

BOOST_AUTO_TEST_CASE(streams_that_are_too_long_too_short_or_late_end_the_save) {
  const TensorSpec spec{.name = "t", .shape = {2}};
  const std::vector<std::byte> bytes(9);
  const ByteSpan all(bytes);
  const auto streaming = [&](auto use, ErrorCode code) {
    const Target target;
    Writer writer(target.path, steady_options());
    const RegionId region = writer.add_region({.name = "r"});
    const TensorId tensor = writer.add_tensor(region, spec);
    BOOST_CHECK_EXCEPTION(use(writer, region, tensor), UsageError, has_code(code));
  };
  const auto mismatch = ErrorCode::size_mismatch;
  streaming([&](Writer& w, RegionId, TensorId t) { w.write(t, all); }, mismatch);
  streaming(
      [&](Writer& w, RegionId, TensorId t) {
        w.write(t, all.first(8));
        w.write(t, all.first(1));
      },
      mismatch);
  streaming([](Writer& w, RegionId, TensorId) { w.commit(); }, mismatch);
  streaming(
      [&](Writer& w, RegionId, TensorId t) {
        w.write(t, all.first(7));
        w.commit();
      },
      mismatch);
  streaming([&](Writer& w, RegionId, TensorId) { w.write(TensorId{1}, all.first(1)); },
            ErrorCode::bad_argument);
  streaming(
      [&](Writer& w, RegionId r, TensorId t) {
        w.write(t, all.first(1));
        w.add_tensor(r, {.name = "late", .shape = {1}});
      },
      ErrorCode::wrong_state);
  streaming(
      [&](Writer& w, RegionId, TensorId t) {
        w.write(t, all.first(1));
        w.set_metadata("{}");
      },
      ErrorCode::wrong_state);
}

BOOST_AUTO_TEST_CASE(a_writer_that_is_not_committed_leaves_no_trace) {
  const Target target;
  { Writer writer(target.path); }
  {
    Writer writer(target.path, steady_options());
    const TensorId tensor =
        writer.add_tensor(writer.add_region({.name = "r"}), {.name = "t", .shape = {1 << 20}});
    const std::vector<std::byte> bytes(3 << 20);
    writer.write(tensor, bytes);
    Writer moved = std::move(writer);
    moved.write(tensor, ByteSpan(bytes).first(1 << 20));
  }
}

BOOST_AUTO_TEST_CASE(a_writer_commits_once) {
  const TemporaryFolder folder;
  Writer writer(folder / "f", steady_options());
  writer.commit();
  BOOST_CHECK_EXCEPTION(writer.commit(), UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(writer.add_region({.name = "r"}), UsageError,
                        has_code(ErrorCode::wrong_state));
  BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
}

BOOST_AUTO_TEST_CASE(callbacks_of_a_save_cannot_use_their_writer) {
  const TemporaryFolder folder;
  const Sample sample = varied_sample();
  SaveOptions options = steady_options();
  std::optional<Writer> writer;
  int refused = 0;
  options.work.progress = [&](std::uint64_t, std::uint64_t) {
    const auto in_use = says(ErrorCode::wrong_state, "the save is in use");
    BOOST_CHECK_EXCEPTION(writer->commit(), UsageError, in_use);
    BOOST_CHECK_EXCEPTION(writer->add_region({.name = "late"}), UsageError, in_use);
    BOOST_CHECK_EXCEPTION(writer->set_metadata("{}"), UsageError, in_use);
    BOOST_CHECK_EXCEPTION(writer->write(TensorId{0}, {}), UsageError, in_use);
    ++refused;
  };
  writer.emplace(folder / "f", options);
  declare(*writer, sample);
  writer->commit();
  BOOST_TEST(refused > 0);
  check_same(Reader::open(folder / "f"), sample);
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_file_to_its_parent) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes(3 << 20);
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    options.work.threads = 3;
    std::optional<Writer> writer;
    writer.emplace(folder / "f", options);
    const RegionId region = writer->add_region({.name = "r"});
    const TensorId tensor =
        writer->add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {2 * bytes.size()}});
    writer->write(tensor, bytes);  // threads compress it
    const Outcome outcome = run_with_faults({}, [&] {
      ::alarm(20);
      try {
        writer->write(tensor, bytes);
      } catch (const UsageError&) {
        writer.reset();  // which would wait for them
        throw;
      }
    });
    BOOST_TEST(
        outcome.message.find("f: the file that is written belongs to process") != std::string::npos,
        outcome.message);
    writer->write(tensor, bytes);
    writer->commit();
    BOOST_TEST(verify(folder / "f").ok());
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  }
}

BOOST_AUTO_TEST_CASE(targets_that_are_no_file_are_refused) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  BOOST_CHECK_THROW(Writer(folder / "d"), UsageError);
  BOOST_CHECK_EXCEPTION(Writer(folder / "none/f"), IoError,
                        [](const IoError& error) { return error.errno_value() == ENOENT; });
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "none"), IoError,
                        [](const IoError& error) { return error.errno_value() == ENOENT; });
  BOOST_CHECK_EXCEPTION(verify(folder / "none"), IoError,
                        [](const IoError& error) { return error.errno_value() == ENOENT; });
  BOOST_CHECK_THROW(Reader::open(folder / "d"), UsageError);
  write_file(folder / "empty", "");
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "empty"), FormatError,
                        has_code(ErrorCode::truncated));
  write_file(folder / "text", "THAI food, and nothing else in this file");
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "text"), FormatError, has_code(ErrorCode::bad_magic));
}

BOOST_AUTO_TEST_CASE(a_link_that_is_to_be_followed_stays_and_the_mode_is_kept) {
  const TemporaryFolder folder;
  write_file(folder / "target", "x");
  BOOST_TEST(::chmod((folder / "target").c_str(), 0640) == 0);
  std::filesystem::create_symlink("target", folder / "link");
  BOOST_CHECK_THROW(save(folder / "link", small_sample()), UsageError);
  save(folder / "link", small_sample(), {.output = {.link = OutputLink::followed}});
  BOOST_TEST(std::filesystem::is_symlink(folder / "link"));
  check_same(Reader::open(folder / "target"), small_sample());
  const auto mode = std::filesystem::status(folder / "target").permissions();
  BOOST_TEST(static_cast<unsigned>(mode) == 0640u);
  BOOST_TEST((list_folder(folder.path()) == Names{"link", "target"}));
}

BOOST_AUTO_TEST_CASE(a_file_without_a_name_has_the_bytes_of_one_with_it) {
  const TemporaryFolder folder;
  static constexpr float kValues[6] = {1, 2, 3, 4, 5, 6};
  const auto commit = [](Writer writer) {
    const RegionId region = writer.add_region({.name = "region"});
    writer.add_tensor(region, {.name = "tensor", .shape = {6}}, as_byte_span(kValues));
    return writer.commit().file_bytes;
  };
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    const std::uint64_t bytes = commit(Writer(folder / "f", options));
    const io::UniqueFd memory = io::create_memory_file();
    BOOST_TEST(commit(Writer(memory.get(), "memory", options)) == bytes);
    std::string found(bytes + 1, ' ');
    BOOST_TEST(::pread(memory.get(), found.data(), found.size(), 0) == static_cast<ssize_t>(bytes));
    found.pop_back();
    BOOST_TEST((found == read_file(folder / "f")));
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  }
  SaveOptions wrong;
  wrong.block_log2 = 1;
  BOOST_CHECK_THROW(Writer(0, "memory", wrong), UsageError);
}

BOOST_AUTO_TEST_SUITE_END()
