// How a delta names its base, and which files it may have opened.
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "state/delta/check.h"
#include "state/delta/edit.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_base)

namespace {

namespace fs = std::filesystem;

SampleState sample(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return {.regions = {{"cortex", {{"w", {random_tensor(DType::f32, {100}, random)}}}}},
          .steps = seed};
}

// run/base.thalia, and run/d.delta.thalia on it.
struct Run {
  Run() {
    fs::create_directory(folder.path() / "run");
    save_full(sample(1), base);
    save_delta(sample(2), base, delta);
  }
  TemporaryFolder folder;
  fs::path base = folder / "run/base.thalia";
  fs::path delta = folder / "run/d.delta.thalia";
};

class InFolder {
 public:
  explicit InFolder(const fs::path& folder) { fs::current_path(folder); }
  ~InFolder() { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
};

std::string error_of(const fs::path& delta, const ChainOptions& options = {}) {
  try {
    ChainReader::open(delta, options);
  } catch (const Error& error) {
    return std::string(error_code_name(error.code())) + ": " + error.what();
  }
  return "none";
}

void check_found(const fs::path& delta, const ChainOptions& options = {}) {
  check_chain(ChainReader::open(delta, options), sample(2));
}

}  // namespace

BOOST_AUTO_TEST_CASE(bare_names_store_no_path_of_the_machine) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "run");
  {
    const InFolder in(folder / "run");
    save_full(sample(1), "base.thalia");
    save_delta(sample(2), "base.thalia", "d.delta.thalia");
    check_found("d.delta.thalia");
  }
  const fs::path delta = folder / "run/d.delta.thalia";
  BOOST_TEST(Reader::open(delta).delta_base()->path == "base.thalia");
  BOOST_TEST(read_file(delta).find(folder.path().string()) == std::string::npos);
  fs::rename(folder / "run", folder / "moved");
  check_found(folder / "moved/d.delta.thalia");
}

BOOST_AUTO_TEST_CASE(a_base_in_memory_is_named_from_the_delta_s_folder_too) {
  const TemporaryFolder folder;
  const InFolder in(folder.path());
  const SaveResult saved = save_full(sample(1), "base.thalia");
  write_delta(state_source(sample(2)),
              SavedState{.path = "base.thalia",
                         .identity = saved.identity,
                         .state = state_source(sample(1)),
                         .digests = saved.digests},
              "d.delta.thalia", {.save = {.output = {.durability = Durability::none}}});
  BOOST_TEST(Reader::open("d.delta.thalia").delta_base()->path == "base.thalia");
}

BOOST_AUTO_TEST_CASE(a_delta_may_be_called_as_its_base_is) {
  const TemporaryFolder folder;
  for (const char* name : {"step_1", "step_2", "attic"}) fs::create_directory(folder / name);
  const fs::path base = folder / "step_1/model.thalia";
  const fs::path delta = folder / "step_2/model.thalia";
  save_full(sample(1), base);
  save_delta(sample(2), base, delta);
  check_found(delta);
  fs::rename(base, folder / "attic/model.thalia");
  check_found(delta, {.search = {folder / "attic"}});
  BOOST_CHECK_EXCEPTION(ChainReader::open(delta), MissingBaseError,
                        says(ErrorCode::io, base.c_str()));
}

BOOST_AUTO_TEST_CASE(an_absolute_path_is_opened_only_where_the_caller_allows_it) {
  const Run run;
  fs::create_directory(run.folder / "other");
  const fs::path secret = run.folder / "other/base.thalia";
  fs::rename(run.base, secret);
  edit_base_path(run.delta, secret.string());
  BOOST_CHECK_THROW(ChainReader::open(run.delta), MissingBaseError);
  check_found(run.delta, {.bases = {.absolute = true}});
  // In the path, the file name counts.
  check_found(run.delta, {.search = {run.folder / "other"}});
  fs::rename(secret, run.base);
  check_found(run.delta);
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_not_opened) {
  const Run run;
  fs::remove(run.base);
  BOOST_REQUIRE(::mkfifo(run.base.c_str(), 0600) == 0);
  BOOST_TEST(error_of(run.delta).find("(not a regular file)") != std::string::npos);
  fs::remove(run.base);
  fs::create_symlink("/dev/zero", run.base);
  BOOST_TEST(error_of(run.delta).find("(not a regular file)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_error_about_a_base_tells_nothing_of_what_is_in_it) {
  const Run run;
  const std::string whole = read_file(run.base);
  const auto with = [&](const std::string& contents) {
    write_file(run.base, contents);
    return error_of(run.delta);
  };
  const std::string text = with("root:x:0:0:root:/root:/bin/bash\n");
  BOOST_TEST(text.find("is no checkpoint that the delta was taken against") != std::string::npos);
  BOOST_TEST(text.find(run.base.string()) != std::string::npos);
  BOOST_TEST(with("") == text);
  BOOST_TEST(with(whole.substr(0, 300)) == text);
  BOOST_TEST(with("{}" + std::string(5000, ' ')) == text);
  save_full(sample(9), run.base);  // a checkpoint, and another one
  BOOST_TEST(error_of(run.delta) == text);
  std::string damaged = whole;
  damaged[40] = static_cast<char>(damaged[40] ^ 1);
  BOOST_TEST(with(damaged) == text);
}

BOOST_AUTO_TEST_CASE(bases_may_be_kept_within_a_folder) {
  const Run run;
  const ChainOptions inside{.bases = within(run.folder / "run")};
  check_found(run.delta, inside);
  edit_base_path(run.delta, run.base.string());
  check_found(run.delta, inside);
  const fs::path outside = run.folder / "base.thalia";
  fs::rename(run.base, outside);
  edit_base_path(run.delta, "../base.thalia");
  check_found(run.delta);
  const auto is_refused = [&](const ChainOptions& options) {
    return error_of(run.delta, options).find("outside the folder") != std::string::npos;
  };
  BOOST_TEST(is_refused(inside));
  BOOST_TEST(is_refused({.search = {run.folder.path()}, .bases = inside.bases}));
  edit_base_path(run.delta, outside.string());
  BOOST_TEST(is_refused(inside));
  // Nor does a link lead out, to a file or over a folder.
  edit_base_path(run.delta, "base.thalia");
  fs::create_symlink(outside, run.base);
  check_found(run.delta);
  BOOST_TEST(is_refused(inside));
  fs::create_directory_symlink(run.folder.path(), run.folder / "run/up");
  edit_base_path(run.delta, "up/base.thalia");
  fs::remove(run.base);
  BOOST_TEST(is_refused(inside));
  check_found(run.delta, {.bases = within(run.folder.path())});
  // A folder that is not there holds nothing.
  BOOST_TEST(is_refused({.bases = within(run.folder / "gone")}));
}

BOOST_AUTO_TEST_CASE(verify_chain_finds_a_base_that_is_gone_another_or_damaged) {
  const Run run;
  BOOST_TEST(verify_chain(run.base).ok());
  BOOST_TEST(verify_chain(run.delta).ok());
  const std::string whole = read_file(run.base);
  const auto finds = [&](const std::string& part) {
    const VerifyReport report = verify_chain(run.delta);
    BOOST_TEST(verify(run.delta).ok());
    return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& one) {
      return one.severity == Severity::error && one.message.find(part) != std::string::npos;
    });
  };
  const std::uint64_t payload = Reader::open(run.base).region("cortex").at("w").stored_offset();
  std::string damaged = whole;
  damaged[payload] = static_cast<char>(damaged[payload] ^ 1);
  write_file(run.base, damaged);
  BOOST_TEST(finds("of '" + run.base.string() + "'"));
  save_full(sample(3), run.base);
  BOOST_TEST(finds("no checkpoint that the delta was taken against"));
  fs::create_directory(run.folder / "other");
  write_file(run.folder / "other/base.thalia", whole);
  fs::remove(run.base);
  BOOST_TEST(finds(run.base.string()));
  BOOST_TEST(verify_chain(run.delta, {}, {run.folder / "other"}).ok());
  BOOST_TEST(!verify_chain(run.delta, {}, {run.folder / "other"}, within(run.folder / "run")).ok());
}

BOOST_AUTO_TEST_CASE(a_file_without_a_checksum_is_no_base) {
  const TemporaryFolder folder;
  save_full(sample(1), folder / "base.thalia",
            {.checksum = ChecksumType::none, .output = {.durability = Durability::none}});
  BOOST_CHECK_EXCEPTION(save_delta(sample(2), folder / "base.thalia", folder / "d.delta.thalia"),
                        UsageError,
                        says(ErrorCode::bad_argument, "without a checksum", "base.thalia"));
  BOOST_TEST(!fs::exists(folder / "d.delta.thalia"));
}

BOOST_AUTO_TEST_SUITE_END()
