// MCKP files through the interface of all formats, and deltas that are written through it.
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/mckp/opened.h"
#include "formats/mckp/samples.h"
#include "formats/mckp/sink.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/mckp.h"

using namespace thalia;
using test::mckp_bytes;
using test::NamedTensors;
using test::write_file;

BOOST_AUTO_TEST_SUITE(mckp_source_sink)

using namespace thalia::formats;

namespace {

constexpr const char* kMetadata = R"({"lr":0.1,"tree":{"a":[1,2]}})";

NamedTensors samples() {
  return {{"f", test::normal_f32({2000}, 1)},
          {"noise", test::random_tensor(DType::u8, {100}, 2)},
          {"none", Tensor::zeros(DType::i64, {0})},
          {"sparse", test::sparse_f64(Encoding::coo)}};
}

NamedTensors next_of(NamedTensors tensors) {
  tensors[0].second.mutable_bytes()[400] ^= std::byte{1};
  return tensors;
}

SinkInput input_of(const NamedTensors& tensors) {
  SinkInput input{.metadata = kMetadata, .training_steps = 7};
  for (const auto& [name, tensor] : tensors)
    input.tensors.push_back({.name = name, .layout = tensor.layout()});
  return input;
}

// In pieces of 7 bytes.
EmitPayload pieces_of(const NamedTensors& tensors) {
  return [&tensors](std::size_t i, const PieceSink& sink) {
    ByteSpan rest = tensors[i].second.bytes();
    while (!rest.empty()) {
      const ByteSpan piece = rest.first(std::min<std::size_t>(7, rest.size()));
      sink(piece);
      rest = rest.subspan(piece.size());
    }
  };
}

std::vector<std::string> write(const std::filesystem::path& path, const NamedTensors& tensors,
                               std::optional<SinkBase> base = std::nullopt) {
  std::vector<std::string> losses;
  unsigned announced = 0;
  SinkOptions options{.save = {.output = {.durability = Durability::none}},
                      .base = std::move(base)};
  options.announce = [&](const std::vector<std::string>& lost) {
    losses = lost;
    ++announced;
  };
  std::uint64_t done = 0;
  options.save.work.progress = [&](std::uint64_t now, std::uint64_t total) {
    BOOST_TEST((done < now && now <= total));
    done = now;
  };
  const std::uint64_t bytes = write_mckp(path, input_of(tensors), options, pieces_of(tensors));
  BOOST_TEST(announced == 1u);
  BOOST_TEST(std::filesystem::file_size(path) == bytes);
  return losses;
}

void check_source(const std::filesystem::path& path, const NamedTensors& tensors,
                  const OpenOptions& options = {}) {
  const auto source = open_mckp_file(path, options);
  const OpenedFacts& facts = source->facts();
  BOOST_TEST(facts.metadata == kMetadata);
  BOOST_TEST(facts.training_steps.value() == 7u);
  BOOST_TEST(facts.file_bytes == std::filesystem::file_size(path));
  BOOST_REQUIRE(facts.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    BOOST_TEST(facts.tensors[i].name == tensors[i].first);
    BOOST_TEST((facts.tensors[i].layout == tensors[i].second.layout()));
    BOOST_TEST((source->read(i) == tensors[i].second));
    source->check(i);
  }
}

bool writes_nothing(const std::filesystem::path& output, const SinkBase& base, ErrorCode code,
                    const char* says) {
  const bool was_there = std::filesystem::exists(output);
  const std::string before = was_there ? test::read_file(output) : "";
  SinkOptions options{.base = base};
  options.announce = [](const auto&) { BOOST_ERROR("announced"); };
  const NamedTensors tensors = samples();
  BOOST_CHECK_EXCEPTION(write_mckp(output, input_of(tensors), options, pieces_of(tensors)), Error,
                        test::says(code, says));
  if (!was_there) return !std::filesystem::exists(output);
  return test::read_file(output) == before;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_written_is_read) {
  const test::TemporaryFolder folder;
  BOOST_TEST(write(folder / "a.mckp", samples()).empty());
  check_source(folder / "a.mckp", samples());
  const auto source = open_mckp_file(folder / "a.mckp", {});
  BOOST_TEST((MckpFile::open(folder / "a.mckp").find("noise")->method == MckpMethod{}));
  // Stored as it is: not copied.
  BOOST_TEST((source->read(1).bytes().data() == source->read(1).bytes().data()));
  BOOST_TEST((source->read(0).bytes().data() != source->read(0).bytes().data()));
}

BOOST_AUTO_TEST_CASE(a_delta_is_small_and_finds_its_base_in_its_folder_or_below) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "old/er");
  for (const char* const base : {"a.mckp", "old/er/a.mckp"}) {
    write(folder / base, samples());
    BOOST_TEST(
        write(folder / "b.mckp", next_of(samples()), SinkBase{.path = folder / base}).empty());
    const MckpFile file = MckpFile::open(folder / "b.mckp");
    BOOST_TEST(file.header().previous.value().key == base);
    BOOST_TEST(file.find("f")->method.delta);
    BOOST_TEST(file.find("f")->compressed_size < 100u);
    BOOST_TEST(file.find("sparse")->method.delta);
    check_source(folder / "b.mckp", next_of(samples()));
    MckpChain::open(folder / "b.mckp").verify_content();
    std::filesystem::remove(folder / base);
    // The tables are there all the same; tensors that are whole too.
    const auto source = open_mckp_file(folder / "b.mckp", {});
    BOOST_TEST(source->facts().tensors.size() == 4u);
    BOOST_CHECK_THROW(source->read(0), MissingBaseError);
    BOOST_CHECK_THROW(open_mckp_file(folder / "b.mckp",
                                     {.chain = {.read = {.verification = Verification::at_open}}}),
                      MissingBaseError);
  }
}

BOOST_AUTO_TEST_CASE(a_delta_of_a_delta_and_of_a_base_elsewhere_is_read_with_a_folder_to_search) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "x");
  std::filesystem::create_directories(folder / "y");
  const NamedTensors second = next_of(samples());
  NamedTensors third = second;
  third[0].second.mutable_bytes()[80] ^= std::byte{4};
  write(folder / "x/a.mckp", samples());
  write(folder / "x/b.mckp", second, SinkBase{.path = folder / "x/a.mckp"});
  const auto losses = write(folder / "y/c.mckp", third, SinkBase{.path = folder / "x/b.mckp"});
  BOOST_TEST(losses.size() == 1u);
  BOOST_CHECK_THROW(open_mckp_file(folder / "y/c.mckp", {})->read(0), MissingBaseError);
  check_source(folder / "y/c.mckp", third, {.chain = {.search = {folder / "x"}}});
}

BOOST_AUTO_TEST_CASE(a_delta_that_nobody_could_read_is_refused) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "x");
  write(folder / "a.mckp", samples());
  write(folder / "b.mckp", next_of(samples()), SinkBase{.path = folder / "a.mckp"});
  const auto bad = ErrorCode::bad_argument;
  // In place of the base, and of what the base needs.
  BOOST_TEST(writes_nothing(folder / "b.mckp", {.path = folder / "b.mckp"}, bad, "base needs"));
  BOOST_TEST(writes_nothing(folder / "a.mckp", {.path = folder / "b.mckp"}, bad, "base needs"));
  // The key of the base's base.
  write(folder / "x/q.mckp", samples());
  write(folder / "x/x.mckp", next_of(samples()), SinkBase{.path = folder / "x/q.mckp"});
  std::filesystem::rename(folder / "x/x.mckp", folder / "q.mckp");
  BOOST_TEST(writes_nothing(folder / "z.mckp",
                            {.path = folder / "q.mckp", .chain = {.search = {folder / "x"}}}, bad,
                            "its key"));
  // No base at all, no MCKP file, and one that does not say what it is.
  BOOST_TEST(writes_nothing(folder / "z.mckp", {.path = folder / "none"}, ErrorCode::io, "none"));
  write_file(folder / "text", "no checkpoint, and long enough for a prelude");
  BOOST_TEST(
      writes_nothing(folder / "z.mckp", {.path = folder / "text"}, ErrorCode::bad_magic, "MCKP"));
  write(folder / ".hidden", samples());
  BOOST_TEST(writes_nothing(folder / "z.mckp", {.path = folder / ".hidden"}, bad, "no key"));
  // A base that is damaged where only the file's checksum tells.
  std::string bytes = test::read_file(folder / "a.mckp");
  bytes[bytes.size() - 16] = static_cast<char>(bytes[bytes.size() - 16] ^ 1);
  write_file(folder / "e.mckp", bytes);
  BOOST_TEST(writes_nothing(folder / "z.mckp", {.path = folder / "e.mckp"},
                            ErrorCode::checksum_mismatch, "e.mckp"));
}

BOOST_AUTO_TEST_CASE(the_whole_file_is_checked_before_the_first_tensor) {
  const test::TemporaryFolder folder;
  write(folder / "a.mckp", samples());
  std::string bytes = test::read_file(folder / "a.mckp");
  bytes[bytes.size() - 16] = static_cast<char>(bytes[bytes.size() - 16] ^ 1);
  write_file(folder / "a.mckp", bytes);
  const auto opened = [&](Verification verification) {
    return open_mckp_file(folder / "a.mckp", {.chain = {.read = {.verification = verification}}});
  };
  BOOST_CHECK_THROW(opened(Verification::at_open), IntegrityError);
  BOOST_CHECK_THROW(opened(Verification::on_first_touch)->read(0), IntegrityError);
  BOOST_TEST((opened(Verification::by_tensor)->read(0) == samples()[0].second));
  BOOST_TEST((opened(Verification::off)->read(0) == samples()[0].second));
}

BOOST_AUTO_TEST_CASE(what_the_format_lacks_is_refused_before_anything_is_written) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const SinkTensor& tensor, SinkOptions options = {}) {
    options.announce = [](const auto&) { BOOST_ERROR("announced"); };
    try {
      write_mckp(folder / "o", {.tensors = {tensor}}, options, [](std::size_t, const auto&) {});
    } catch (const UnsupportedError& error) {
      return error.context().path == (folder / "o").string();
    } catch (const UsageError&) {
      return true;
    }
    return false;
  };
  const TensorLayout good{.dtype = DType::u8, .shape = {1}};
  BOOST_TEST(refused({.name = "\xff", .layout = good}));
  BOOST_TEST(refused({.name = std::string(65'536, 'n'), .layout = good}));
  BOOST_TEST(refused({.name = "q", .layout = {.shape = {1}, .encoding = Encoding::quantized}}));
  BOOST_TEST(refused({.name = "s", .layout = {.shape = {}, .encoding = Encoding::coo}}));
  BOOST_TEST(refused({.name = "a", .layout = good}, {.save = {.compression = {.level = 99}}}));
  BOOST_TEST(test::list_folder(folder.path()).empty());
}

BOOST_AUTO_TEST_SUITE_END()
