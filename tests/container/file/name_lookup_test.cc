// A look-up by name verifies what it hands out, or the neighbours that show that there is nothing,
// and not every entry that it passes: damage elsewhere in the directory is not in its way, and
// damage that leads it astray is an error and never a wrong answer.
#include <cstddef>
#include <set>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "format/directory.h"
#include "format/header.h"
#include "format/overlay.h"
#include "format/region.h"
#include "format/tensor.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

namespace {

constexpr std::uint32_t kTensors = 1000;
constexpr std::uint32_t kRegions = 600;
constexpr std::uint64_t kBlock = 4096;

// Every other number, so that each name has one that is missing after it.
std::string numbered(const char* what, std::uint32_t i, const char* kind = "") {
  return fmt::format("{}{:05}{}.w", what, 2 * i, kind);
}

Sample one_region() {
  Sample sample{.regions = {{{.name = "r"}, {}}}, .connections = {}};
  for (std::uint32_t i = 0; i < kTensors; ++i)
    sample.regions[0].tensors.push_back(dense_tensor(numbered("t", i), DType::u8, {8}));
  return sample;
}

Sample many_regions() {
  Sample sample{.regions = {}, .connections = {}};
  for (std::uint32_t i = 0; i < kRegions; ++i)
    sample.regions.push_back({{.name = numbered("r", i)}, {}});
  return sample;
}

// Another tensor, in other blocks, and not in those of the ends.
std::uint32_t far_from(std::uint32_t tensor) {
  return (tensor + 200) % 700 + 50;
}

// A file in blocks of 4 KiB and the tables of its directory as they were saved.
class Tables {
 public:
  explicit Tables(const Sample& sample) {
    const TemporaryFolder folder;
    save(folder / "f", sample);
    bytes_ = read_file(folder / "f");
    directory_at_ = header().directory_offset;
  }

  const std::string& bytes() const { return bytes_; }
  const format::Header& header() const { return format::overlay<format::Header>(all(), 0, ""); }
  const format::DirectoryHeader& directory() const {
    return format::overlay<format::DirectoryHeader>(all(), directory_at_, "");
  }
  std::uint64_t entry_at(std::uint32_t i) const {
    return directory_at_ + directory().tensors_offset + i * sizeof(format::TensorEntry);
  }
  std::uint64_t record_at(std::uint32_t i) const {
    return directory_at_ + directory().regions_offset + i * sizeof(format::DirectoryRegion);
  }
  std::uint64_t name_at(std::uint32_t offset) const {
    return directory_at_ + directory().names_offset + offset;
  }
  std::uint64_t name_of_tensor(std::uint32_t i) const {
    return name_at(format::overlay<format::TensorEntry>(all(), entry_at(i), "").name_offset);
  }
  std::uint64_t name_of_region(std::uint32_t i) const {
    return name_at(format::overlay<format::DirectoryRegion>(all(), record_at(i), "").name_offset);
  }

 private:
  ByteSpan all() const { return std::as_bytes(std::span(bytes_)); }

  std::string bytes_;
  std::uint64_t directory_at_ = 0;
};

// Blocks that must stay as they are.
class Sound {
 public:
  void add(std::uint64_t at, std::uint64_t length) {
    for (std::uint64_t block = at / kBlock; block <= (at + length - 1) / kBlock; ++block)
      blocks_.insert(block);
  }
  void add_tensor(const Tables& tables, std::uint32_t i) {
    add(tables.entry_at(i), sizeof(format::TensorEntry));
    add(tables.name_of_tensor(i), numbered("t", i).size());
  }
  void add_region(const Tables& tables, std::uint32_t i) {
    add(tables.record_at(i), sizeof(format::DirectoryRegion));
    add(tables.name_of_region(i), 1);
    add(tables.header().region_index_offset + i * sizeof(format::RegionIndexEntry),
        sizeof(format::RegionIndexEntry));
  }
  bool has(std::uint64_t at) const { return blocks_.contains(at / kBlock); }

 private:
  std::set<std::uint64_t> blocks_;
};

// Damages every block of the tables but the sound ones, in a way that leaves the order of names.
unsigned damage_tensors(DamagedFile& file, const Tables& tables, const Sound& sound) {
  std::set<std::uint64_t> damaged;
  for (std::uint32_t i = 0; i < kTensors; ++i) {
    for (const std::uint64_t at : {tables.entry_at(i) + offsetof(format::TensorEntry, content_hash),
                                   tables.name_of_tensor(i) + numbered("t", i).size() - 1}) {
      if (!sound.has(at) && damaged.insert(at / kBlock).second) file.flip(at, 1);
    }
  }
  return static_cast<unsigned>(damaged.size());
}

const auto kDamaged = has_code(ErrorCode::checksum_mismatch);

void check_absent(const RegionView& region, const std::string& name) {
  BOOST_TEST(!region.find(name).has_value());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(name_lookup)

BOOST_AUTO_TEST_CASE(only_the_blocks_of_what_is_found_have_to_be_sound) {
  const Sample sample = one_region();
  const Tables tables(sample);
  for (const std::uint32_t wanted : {0u, 1u, 499u, 500u, 700u, kTensors - 1}) {
    for (const Access access : {Access::mapped, Access::copied}) {
      BOOST_TEST_CONTEXT("tensor " << wanted << ", access " << int(access)) {
        DamagedFile file(tables.bytes());
        Sound sound;
        sound.add_region(tables, 0);
        sound.add_tensor(tables, wanted);
        BOOST_TEST(damage_tensors(file, tables, sound) > 35u);
        const RegionView region =
            Reader::open(file.path(), {.input = {.access = access}}).region("r");
        const ByteSpan found = region.at(numbered("t", wanted)).bytes();
        const std::vector<std::byte>& payload = sample.regions[0].tensors[wanted].payload;
        BOOST_TEST(same_bytes(found, payload));
        // What lies in the damaged blocks is refused as ever.
        BOOST_CHECK_EXCEPTION(region.at(numbered("t", far_from(wanted))), IntegrityError, kDamaged);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_missing_between_two_sound_neighbours) {
  const Tables tables(one_region());
  for (const std::uint32_t before : {0u, 300u, 499u, 700u, kTensors - 2}) {
    BOOST_TEST_CONTEXT("after tensor " << before) {
      DamagedFile file(tables.bytes());
      Sound sound;
      sound.add_region(tables, 0);
      sound.add_tensor(tables, before);
      sound.add_tensor(tables, before + 1);
      damage_tensors(file, tables, sound);
      const RegionView region = Reader::open(file.path()).region("r");
      check_absent(region, numbered("t", before, "x"));
      BOOST_CHECK_EXCEPTION(region.find(numbered("t", far_from(before), "x")), IntegrityError,
                            kDamaged);
    }
  }
  DamagedFile file(tables.bytes());
  const RegionView region = Reader::open(file.path()).region("r");
  for (const char* outside : {"", "a", "t", "z"}) check_absent(region, outside);
}

BOOST_AUTO_TEST_CASE(an_entry_that_leads_astray_is_an_error_and_no_answer) {
  const Tables tables(one_region());
  // The first that every search looks at.
  const std::uint32_t root = kTensors / 2;
  const std::uint64_t offset_field =
      tables.entry_at(root) + offsetof(format::TensorEntry, name_offset);
  const std::uint64_t name = tables.name_of_tensor(root);
  struct Damage {
    const char* what;
    std::uint64_t at;
    unsigned mask;
    std::uint32_t misled;  ///< a tensor on the side that the search no longer goes to
  };
  for (const Damage& damage : {Damage{"a name too large", name, 0x08, root + 200},
                               Damage{"a name too small", name, 0x40, root - 200},
                               Damage{"a name beyond the names", offset_field + 3, 0x80, 3}}) {
    BOOST_TEST_CONTEXT(damage.what) {
      DamagedFile file(tables.bytes());
      file.flip(damage.at, damage.mask);
      const RegionView region = Reader::open(file.path()).region("r");
      for (int round = 0; round < 2; ++round) {
        BOOST_CHECK_EXCEPTION(region.find(numbered("t", damage.misled)), IntegrityError, kDamaged);
        BOOST_CHECK_EXCEPTION(region.find(numbered("t", damage.misled, "x")), IntegrityError,
                              kDamaged);
      }
      BOOST_CHECK_EXCEPTION(region.find(numbered("t", root)), IntegrityError, kDamaged);
    }
  }
}

BOOST_AUTO_TEST_CASE(regions_are_found_in_the_same_way) {
  const Tables tables(many_regions());
  for (const std::uint32_t wanted : {0u, 1u, 250u, 300u, kRegions - 1}) {
    BOOST_TEST_CONTEXT("region " << wanted) {
      DamagedFile file(tables.bytes());
      Sound sound;
      sound.add(tables.record_at(kRegions), sizeof(format::le32) * kRegions);  // their order
      sound.add_region(tables, wanted);
      std::set<std::uint64_t> damaged;
      for (std::uint32_t i = 0; i < kRegions; ++i) {
        const std::uint64_t at =
            tables.record_at(i) + offsetof(format::DirectoryRegion, logical_bytes);
        if (!sound.has(at) && damaged.insert(at / kBlock).second) file.flip(at, 1);
      }
      BOOST_TEST(damaged.size() >= 2u);
      const Reader reader = Reader::open(file.path());
      BOOST_TEST(reader.region(numbered("r", wanted)).name() == numbered("r", wanted));
      BOOST_CHECK_EXCEPTION(reader.find_region(numbered("r", (wanted + 150) % 450)), IntegrityError,
                            kDamaged);
    }
  }
  // One that leads astray.
  DamagedFile file(tables.bytes());
  file.flip(tables.name_of_region(kRegions / 2), 0x08);
  const Reader reader = Reader::open(file.path());
  BOOST_CHECK_EXCEPTION(reader.find_region(numbered("r", kRegions / 2 + 100)), IntegrityError,
                        kDamaged);
}

BOOST_AUTO_TEST_SUITE_END()
