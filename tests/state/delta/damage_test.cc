// Chains that are broken: bases that are gone, others, or damaged; deltas that are cut or changed.
#include <cstring>

#include "container/wrap/check.h"
#include "format/delta.h"
#include "format/header.h"
#include "integrity/xxh64.h"
#include "state/delta/check.h"
#include "state/delta/edit.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/text.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_damage)

namespace {

namespace fs = std::filesystem;

SampleState sample(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor listed = Tensor::zeros(DType::f32, {20, 50});
  listed.mutable_as<float>()[random() % 1000] = 1.5f;
  Tensor moved = Tensor::zeros(DType::i16, {2000});
  for (auto& value : moved.mutable_as<std::int16_t>())
    value = static_cast<std::int16_t>(1000 + random() % 4);
  return {.regions = {{"cortex",
                       {{"listed", {listed}},
                        {"moved", {moved}},
                        {"same", {Tensor::zeros(DType::f64, {100})}},
                        {"whole", {random_tensor(DType::u8, {100}, random)}}}}},
          .steps = seed};
}

// base.thalia, and two deltas on it.
struct Chain {
  Chain() {
    save_full(sample(1), base);
    save_delta(sample(2), base, first, {.save = {.timestamp = 1}, .pack = false});
    save_delta(sample(3), first, second, {.save = {.timestamp = 1}, .pack = false});
  }
  TemporaryFolder folder;
  fs::path base = folder / "base.thalia";
  fs::path first = folder / "1.delta.thalia";
  fs::path second = folder / "2.delta.thalia";
};

void read_everything(const fs::path& path, const ChainOptions& options = {}) {
  const ChainReader chain = ChainReader::open(path, options);
  for (std::uint32_t r = 0; r < chain.reader().region_count(); ++r) {
    const RegionView region = chain.reader().region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) chain.read(region.tensor(t));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_reader_shows_what_a_delta_stores) {
  const Chain chain;
  const Reader reader = Reader::open(chain.second);
  const auto base = reader.delta_base();
  BOOST_REQUIRE(base.has_value());
  BOOST_TEST(base->path == "1.delta.thalia");
  BOOST_TEST(base->depth == 2);
  BOOST_TEST(base->step == 2);
  BOOST_TEST((base->checksum == Reader::open(chain.first).closing_checksum()));
  BOOST_TEST(!Reader::open(chain.base).delta_base().has_value());
  const RegionView region = reader.region("cortex");
  BOOST_TEST((region.at("same").encoding() == Encoding::same_as_base));
  BOOST_CHECK_EXCEPTION(region.at("same").bytes(), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "resolve", "same"));
}

BOOST_AUTO_TEST_CASE(a_missing_base_is_an_error_that_names_every_path_tried) {
  const Chain chain;
  const fs::path elsewhere = chain.folder / "elsewhere";
  fs::create_directory(elsewhere);
  fs::rename(chain.base, elsewhere / "base.thalia");
  const fs::path other = chain.folder / "other";
  BOOST_CHECK_EXCEPTION(
      ChainReader::open(chain.second, {.search = {other}}), IoError,
      says(ErrorCode::io, "1.delta.thalia", chain.base.c_str(), (other / "base.thalia").c_str()));
  read_everything(chain.second, {.search = {other, elsewhere}});
}

BOOST_AUTO_TEST_CASE(a_chain_moves_with_its_folder) {
  const Chain chain;
  const fs::path moved = chain.folder / "moved";
  fs::create_directory(moved);
  for (const fs::path& path : {chain.base, chain.first, chain.second})
    fs::rename(path, moved / path.filename());
  check_chain(ChainReader::open(moved / "2.delta.thalia"), sample(3));
  // A link elsewhere leads to the folder.
  fs::create_symlink(moved / "2.delta.thalia", chain.folder / "link.thalia");
  check_chain(ChainReader::open(chain.folder / "link.thalia"), sample(3));
}

BOOST_AUTO_TEST_CASE(a_base_in_another_folder_is_found_from_the_delta_s) {
  const Chain chain;
  const fs::path sub = chain.folder / "sub";
  fs::create_directory(sub);
  save_delta(sample(4), chain.base, sub / "d.delta.thalia");
  BOOST_TEST(Reader::open(sub / "d.delta.thalia").delta_base()->path == "../base.thalia");
  check_chain(ChainReader::open(sub / "d.delta.thalia"), sample(4));
}

BOOST_AUTO_TEST_CASE(another_base_is_an_error_with_the_checksum_that_is_wanted) {
  const Chain chain;
  const std::string wanted = hex(Reader::open(chain.base).closing_checksum().bytes);
  save_full(sample(9), chain.base);
  BOOST_CHECK_EXCEPTION(ChainReader::open(chain.second), IntegrityError,
                        says(ErrorCode::checksum_mismatch, wanted, "base.thalia"));
}

BOOST_AUTO_TEST_CASE(a_damaged_base_is_an_error_that_names_it) {
  const Chain chain;
  std::string bytes = read_file(chain.base);
  write_file(chain.base, bytes.substr(0, bytes.size() / 2));
  BOOST_CHECK_EXCEPTION(ChainReader::open(chain.second), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "base.thalia"));
  const Reader whole = [&] {
    write_file(chain.base, bytes);
    return Reader::open(chain.base);
  }();
  const std::uint64_t at = whole.region("cortex").at("same").stored_offset();
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_file(chain.base, bytes);
  const ChainReader chain_reader = ChainReader::open(chain.second);
  BOOST_CHECK_THROW(chain_reader.read(chain_reader.reader().region("cortex").at("same")),
                    IntegrityError);
}

BOOST_AUTO_TEST_CASE(cycles_and_wrong_depths_are_refused) {
  const Chain chain;
  // A delta is no base of its own chain, whatever it is told.
  edit_base_path(chain.first, "2.delta.thalia");
  BOOST_CHECK_THROW(ChainReader::open(chain.second), MissingBaseError);
  const Chain other;
  edit_prefix(other.first, [](auto&, auto& reference, auto&) { reference.depth = 2u; });
  BOOST_CHECK_EXCEPTION(ChainReader::open(other.first), FormatError,
                        says(ErrorCode::inconsistent, "depth"));
}

BOOST_AUTO_TEST_CASE(chains_deeper_than_the_caller_allows_are_refused) {
  const Chain chain;
  BOOST_CHECK_EXCEPTION(ChainReader::open(chain.second, {.max_depth = 1}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_depth"));
  BOOST_CHECK_NO_THROW(ChainReader::open(chain.second, {.max_depth = 2}));
}

BOOST_AUTO_TEST_CASE(deltas_of_the_original_program_are_refused) {
  const TemporaryFolder folder;
  std::string bytes(200, '\0');
  std::memcpy(bytes.data(), format::kDeltaMagic, sizeof format::kDeltaMagic);
  bytes[5] = 1;
  write_file(folder / "old.delta.thalia", bytes);
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "old.delta.thalia"), UnsupportedError,
                        says(ErrorCode::unsupported_version, "pickle"));
  bytes.erase(4, 1);  // the form with a magic of 4 bytes
  write_file(folder / "old.delta.thalia", bytes);
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "old.delta.thalia"), UnsupportedError,
                        says(ErrorCode::unsupported_version, "pickle"));
}

BOOST_AUTO_TEST_CASE(a_delta_cannot_replace_its_base) {
  const Chain chain;
  BOOST_CHECK_EXCEPTION(save_delta(sample(5), chain.first, chain.base), UsageError,
                        says(ErrorCode::bad_argument, "base.thalia"));
  check_chain(ChainReader::open(chain.second), sample(3));
}

BOOST_AUTO_TEST_CASE(a_delta_cut_at_any_length_is_refused) {
  const Chain chain;
  const std::string bytes = read_file(chain.first);
  const fs::path cut = chain.folder / "cut.thalia";
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    write_file(cut, bytes.substr(0, length));
    BOOST_TEST_CONTEXT(length) {
      BOOST_CHECK_THROW(ChainReader::open(cut), Error);
      // Reads all that is left: under sanitizers at each sixteenth length.
      if (!kSanitized || length % 16 == 0) BOOST_TEST(!verify(cut).ok());
    }
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_in_front_of_the_container_is_found) {
  const Chain chain;
  std::string bytes = read_file(chain.first);
  const fs::path flipped = chain.folder / "flipped.thalia";
  for (std::size_t at = 0; at < 4096; at += at < 256 ? 1 : 97) {
    for (unsigned bit = 0; bit < 8; bit += at < 144 ? 1 : 7) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1u << bit));
      write_file(flipped, changed);
      BOOST_TEST_CONTEXT(at << " bit " << bit) {
        BOOST_CHECK_THROW(ChainReader::open(flipped), Error);
        BOOST_TEST(!verify(flipped).ok());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(flipped_bytes_of_the_container_are_found_when_they_are_read) {
  const Chain chain;
  std::string bytes = read_file(chain.first);
  const fs::path flipped = chain.folder / "flipped.thalia";
  // Each of the header, and some of the rest.
  for (std::size_t at = 4096; at < bytes.size();
       at += at < 4096 + sizeof(format::Header) ? 1 : 37) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write_file(flipped, changed);
    BOOST_TEST_CONTEXT(at) {
      BOOST_CHECK_THROW(read_everything(flipped, {.read = {.verification = Verification::at_open}}),
                        Error);
      BOOST_TEST(!verify(flipped).ok());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_save_that_fails_leaves_no_trace) {
  const Chain chain;
  StateSource state = state_source(sample(7));
  state.regions[0].tensors[2].load = []() -> Tensor { throw std::runtime_error("no"); };
  const std::string before = read_file(chain.second);
  BOOST_CHECK_THROW(write_delta(state, ChainReader::open(chain.base), chain.second, {}),
                    std::runtime_error);
  BOOST_TEST((read_file(chain.second) == before));
  BOOST_TEST(list_folder(chain.folder.path()).size() == 3);
  state.regions[0].tensors[2].load = [] { return Tensor::zeros(DType::f64, {3}); };
  BOOST_CHECK_EXCEPTION(write_delta(state, ChainReader::open(chain.base), chain.second, {}),
                        UsageError, says(ErrorCode::size_mismatch, "same"));
}

// The frames of what comes before the container, and those of the container.
BOOST_AUTO_TEST_CASE(verify_holds_frames_of_a_wrapped_delta_against_their_checksums) {
  const Chain chain;
  const std::string plain = read_file(chain.first);
  TableEditor table(wrapped(plain, Codec::zstd));
  for (std::size_t at = 0; at < plain.size(); at += 4096) {
    const std::string frame = plain.substr(at, 4096);
    table.checksums.push_back(
        static_cast<std::uint32_t>(integrity::xxh64(std::as_bytes(std::span(frame)))));
  }
  BOOST_TEST_REQUIRE(table.entries.size() > 1u);
  BOOST_TEST(verify(File(table.file()).path).findings.empty());
  for (std::uint32_t& checksum : table.checksums) {
    checksum ^= 1;
    const VerifyReport report = verify(File(table.file()).path);
    BOOST_TEST_REQUIRE(report.findings.size() == 1u);
    BOOST_TEST(report.findings[0].field == "checksum");
    checksum ^= 1;
  }
}

BOOST_AUTO_TEST_SUITE_END()
