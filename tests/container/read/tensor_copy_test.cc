// Tensors that several threads copy: sizes around what one thread takes, blocks smaller and larger.
#include <algorithm>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/reader.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(tensor_copy)

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// After a tensor of `before` bytes, so that its extents do not start with a block.
void save_bytes(const std::filesystem::path& path, ByteSpan bytes, std::uint64_t before,
                const SaveOptions& options) {
  const auto first = random_bytes(before, 2);
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_tensor(region, {.name = "before", .dtype = DType::u8, .shape = {before}}, first);
  writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {bytes.size()}}, bytes);
  writer.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(several_threads_copy_every_byte_once) {
  const TemporaryFolder folder;
  const auto bytes = random_bytes(9 * kMiB + 1);
  for (const unsigned block_log2 : {12u, 20u, 22u}) {
    for (const std::uint64_t size :
         {std::uint64_t{1}, kMiB, 4 * kMiB - 1, 4 * kMiB, 9 * kMiB + 1}) {
      BOOST_TEST_CONTEXT("blocks of 2^" << block_log2 << ", " << size << " bytes") {
        const ByteSpan payload = ByteSpan(bytes).first(size);
        save_bytes(folder / "f", payload, 70'000,
                   {.block_log2 = block_log2, .output = {.durability = Durability::none}});
        for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
          const Reader reader =
              Reader::open(folder / "f", {.verification = verification, .work = {.threads = 4}});
          std::vector<std::byte> out(size);
          reader.tensor("t").read(out);
          BOOST_TEST(std::equal(out.begin(), out.end(), payload.begin()));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(damage_anywhere_ends_the_copy) {
  const TemporaryFolder folder;
  const auto bytes = random_bytes(9 * kMiB);
  for (const ChecksumType checksum : {ChecksumType::block_tree, ChecksumType::crc32}) {
    save_bytes(folder / "f", bytes, 1000,
               {.checksum = checksum, .output = {.durability = Durability::none}});
    const std::string sound = read_file(folder / "f");
    const std::uint64_t start = Reader::open(folder / "f").tensor("t").stored_offset();
    for (const std::uint64_t at : {std::uint64_t{0}, 5 * kMiB, 8 * kMiB}) {
      BOOST_TEST_CONTEXT("checksum " << int(checksum) << ", byte " << at) {
        std::string damaged = sound;
        damaged[start + at] ^= 1;
        write_file(folder / "f", damaged);
        const Reader reader = Reader::open(folder / "f", {.work = {.threads = 4}});
        std::vector<std::byte> out(bytes.size());
        BOOST_CHECK_EXCEPTION(reader.tensor("t").read(out), IntegrityError,
                              says(ErrorCode::checksum_mismatch, "'t'", "'r'"));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
