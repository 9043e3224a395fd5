#include "container/file/edit_check.h"

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "support/sample.h"

namespace thalia::test {
namespace {

SaveOptions in_chunks() {
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  return options;
}

}  // namespace

void check_edits(const std::string& bytes, Readers readers, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    EditableFile editable(bytes);
    edit.apply(editable);
    BOOST_TEST(bool(editable.bytes() != bytes), edit.name << " changed nothing");
    editable.reseal();
    const DamagedFile file(editable.bytes());
    const VerifyReport report = verify_damaged(file.path());
    if (report.ok()) {
      BOOST_ERROR(edit.name << " was not reported");
    } else if (describe(report).find(edit.says) == std::string::npos) {
      BOOST_ERROR(edit.name << ", not a word of " << edit.says << ":\n" << describe(report));
    }
    const Walk walk = walk_file(file.path(), Verification::off);
    if (readers == Readers::refuse && walk.errors == 0) BOOST_ERROR(edit.name << " was handed out");
    if (readers == Readers::need_not && walk.errors != 0)
      BOOST_ERROR(edit.name << " was refused, which the table does not know: " << walk.first_error);
    // The edit is sealed: with verification a reader finds neither more nor less.
    BOOST_TEST(
        (walk_file(file.path(), Verification::on_first_touch).errors == 0) == (walk.errors == 0),
        edit.name);
    const Walk copied = walk_file(file.path(), Verification::off, Access::copied);
    BOOST_TEST(copied.errors == walk.errors, edit.name);
    BOOST_TEST(copied.first_error == walk.first_error, edit.name);
    BOOST_TEST(describe(verify_damaged(file.path(), Access::copied)) == describe(report),
               edit.name);
  }
}

const std::string& varied_bytes() {
  static const std::string bytes = saved(varied_sample());
  return bytes;
}

const std::string& chunked_bytes() {
  static const std::string bytes = saved(varied_sample(), in_chunks());
  return bytes;
}

}  // namespace thalia::test
