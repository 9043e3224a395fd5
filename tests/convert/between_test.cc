// What is needed only on the way to an output has no name: a process that is killed leaves none.
#include <set>
#include <string>

#include "boost_test.h"
#include "io/output/temporary_file.h"
#include "state/brain/brain_sample.h"
#include "support/files.h"
#include "thalia/formats/convert.h"
#include "thalia/state/checkpoint.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(between)

namespace {

// All names that a folder had while a save reported its progress.
struct Watched {
  std::set<std::string> names{};
  int looks = 0;

  Work work(const TemporaryFolder& folder) {
    return {.progress = [this, &folder](std::uint64_t, std::uint64_t) {
      ++looks;
      for (std::string& name : list_folder(folder.path())) names.insert(std::move(name));
    }};
  }
};

bool has_unnamed_files(const TemporaryFolder& folder) {
  return io::is_descriptor_path(io::TemporaryFile(folder / "x").path());
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_stands_between_two_formats_or_waits_for_its_frames_has_no_name) {
  const TemporaryFolder in, out;
  if (!has_unnamed_files(out)) return;
  BrainState plain;
  plain.regions.add("cortex").weights()["w_ff"] = floats({10, 11});
  BrainCheckpoint::save(plain, in / "a.thalia");
  convert(in / "a.thalia", in / "old.thalia", {.to = FileFormat::thalia_0_1});
  Watched converted;
  convert(in / "old.thalia", out / "a.safetensors", {.save = {.work = converted.work(out)}});
  BOOST_TEST(converted.looks > 0);
  BOOST_TEST(converted.names.empty());
  BOOST_TEST((list_folder(out.path()) == std::vector<std::string>{"a.safetensors"}));

  Watched wrapped;
  BrainCheckpoint::save(sample_brain(), out / "b.thalia.zst",
                        {.save = {.work = wrapped.work(out)}});
  BOOST_TEST(wrapped.looks > 0);
  BOOST_TEST((wrapped.names == std::set<std::string>{"a.safetensors"}));
  BOOST_TEST((BrainCheckpoint::load(out / "b.thalia.zst").regions.names() ==
              sample_brain().regions.names()));
}

// Its base is named as from where the delta will be, and not from where it waits.
BOOST_AUTO_TEST_CASE(a_delta_in_frames_finds_its_base) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "deltas");
  BrainState brain = sample_brain();
  BrainCheckpoint::save(brain, folder / "a.thalia");
  brain.metadata["step"] = 2;
  BrainCheckpoint::save_delta(brain, folder / "deltas/b.thalia.zst", folder / "a.thalia");
  BOOST_TEST(
      BrainCheckpoint::load(folder / "deltas/b.thalia.zst").metadata.at("step").as_uint64() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
