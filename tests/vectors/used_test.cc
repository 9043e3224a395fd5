// Whole operations over the published valid files: what a file may be, none of them calls broken.
#include <functional>
#include <string>

#include "boost_test.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/state/growth.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(used_vectors)

namespace {

namespace fs = std::filesystem;

const fs::path kValid = fs::path(THALIA_VECTORS_FOLDER) / "valid";

// Side files have no payloads, and the header of this one is to be recovered first.
bool is_whole(const fs::path& path) {
  return path.extension() != ".meta" && path.filename() != "torn_header.thalia";
}

template <typename Action>
void for_each_file(const Action& action) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kValid)) {
    BOOST_TEST_CONTEXT(entry.path().filename()) action(entry.path());
    ++files;
  }
  BOOST_TEST(files > 60);
}

// What the file cannot have done to it is said by the other classes of errors.
bool works_or_is_refused(const std::function<void()>& operation) {
  try {
    operation();
    return true;
  } catch (const FormatError& error) {
    BOOST_TEST(bool(error.code() == ErrorCode::limit_exceeded), error.what());
  } catch (const IntegrityError& error) {
    BOOST_ERROR(error.what());
  } catch (const Error&) {
  }
  return false;
}

void check_whole(const fs::path& path) {
  const VerifyReport report = verify(path);
  for (const Finding& finding : report.findings)
    BOOST_ERROR(path << ": " << finding.section << "." << finding.field << " " << finding.message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_are_taken_for_what_they_are) {
  for_each_file(
      [](const fs::path& path) { BOOST_TEST(bool(detect_format(path) == FileFormat::thalia)); });
}

BOOST_AUTO_TEST_CASE(whole_ones_convert_load_and_are_written_again) {
  const TemporaryFolder folder;
  int written = 0;
  const OutputOptions quiet{.durability = Durability::none};
  for_each_file([&](const fs::path& path) {
    if (!is_whole(path)) return;
    for (const char* name : {"out.safetensors", "out.npz", "out.pt"}) {
      const ConvertOptions options{.save = {.output = quiet}, .dense = true};
      works_or_is_refused([&] { convert(path, folder / name, options); });
    }
    works_or_is_refused([&] { BrainCheckpoint::load(path); });
    const fs::path out = folder / "out.thalia";
    if (works_or_is_refused([&] { resolve(path, out, {}, {.output = quiet}); })) {
      check_whole(out);
      ++written;
    }
    if (works_or_is_refused([&] { compact(path, out, {.output = quiet}); })) check_whole(out);
  });
  BOOST_TEST(written > 30);
}

BOOST_AUTO_TEST_CASE(regions_of_neurons_grow) {
  const TemporaryFolder folder;
  int grown = 0;
  for_each_file([&](const fs::path& path) {
    if (!is_whole(path)) return;
    const Reader reader = Reader::open(path);
    for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
      if (reader.region(r).n_neurons() == 0) continue;
      const fs::path copy = folder / "copy.thalia";
      fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
      if (!works_or_is_refused([&] {
            grow_file(copy, reader.region(r).name(), 1, {},
                      {.change = {.output = {.durability = Durability::none}}});
          }))
        continue;
      check_whole(copy);
      ++grown;
    }
  });
  BOOST_TEST(grown > 3);
}

BOOST_AUTO_TEST_SUITE_END()
