// Every kind of output takes any name that its folder takes, new and in place of an old file.
#include <cerrno>
#include <functional>
#include <string>

#include "boost_test.h"
#include "formats/v01/binary.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/mckp.h"
#include "thalia/formats/safetensors.h"
#include "thalia/side_file.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/state/quantization.h"
#include "thalia/storage.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;
using std::filesystem::path;

BOOST_AUTO_TEST_SUITE(long_names)

namespace {

constexpr std::size_t kLongest = 255;

struct Kind {
  const char* ending;
  std::function<void(const path& out, const path& sources)> write;
};

BrainState brain(float value) {
  BrainState state;
  state.regions.add("cortex", {.n_neurons = 4, .n_inputs = 4}).weights()["w_rec"] =
      Tensor::copy_of<float>({4, 4}, std::vector<float>(16, value));
  return state;
}

void save(const path& out, SaveOptions options = {}) {
  Writer writer(out, options);
  writer.add_region({.name = "r"});
  writer.commit();
}

const Kind kKinds[] = {
    {".thalia", [](const path& out, const path&) { save(out); }},
    {".thalia", [](const path& out, const path&) { BrainCheckpoint::save(brain(1), out); }},
    {".thalia.zst", [](const path& out, const path&) { BrainCheckpoint::save(brain(1), out); }},
    {".thalia.lz4", [](const path& out, const path&) { BrainCheckpoint::save(brain(1), out); }},
    {".thalia.delta",
     [](const path& out, const path& sources) {
       BrainCheckpoint::save_delta(brain(2), out, sources / "brain.thalia");
     }},
    {".delta.zst",
     [](const path& out, const path& sources) {
       BrainCheckpoint::save_delta(brain(2), out, sources / "brain.thalia");
     }},
    {".thalia", [](const path& out, const path& sources) { resolve(sources / "delta", out); }},
    {".thalia",
     [](const path& out, const path& sources) { compact(sources / "brain.thalia", out); }},
    {".safetensors",
     [](const path& out, const path& sources) { convert(sources / "brain.thalia", out); }},
    {".mckp",
     [](const path& out, const path&) {
       MckpWriter writer(out, {.work = {.memory_bytes = 0}});
       writer.add("t", Tensor::zeros(DType::f32, {100}));
       writer.commit();
     }},
    {".old",
     [](const path& out, const path&) {
       BinaryWriter writer(out);
       writer.write_header({});
       writer.finalize();
     }},
    {".thalia.meta",
     [](const path& out, const path& sources) {
       write_metadata_file(sources / "brain.thalia", out);
     }},
    {".zst", [](const path& out,
                const path& sources) { compress_checkpoint(sources / "brain.thalia", out); }},
    {".thalia",
     [](const path& out, const path& sources) {
       decompress_checkpoint(sources / "brain.thalia.zst", out);
     }},
    {".txt", [](const path& out, const path&) { OutputFile(out).commit(); }},
    {"", [](const path& out,
            const path&) { LocalStorage(out.parent_path()).put(out.filename().string(), {}); }},
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_output_takes_the_longest_name) {
  const TemporaryFolder sources;
  BrainCheckpoint::save(brain(1), sources / "brain.thalia");
  BrainCheckpoint::save(brain(1), sources / "brain.thalia.zst");
  BrainCheckpoint::save_delta(brain(2), sources / "delta", sources / "brain.thalia");
  for (const Kind& kind : kKinds) {
    for (const std::size_t length : {std::size_t{240}, kLongest}) {
      BOOST_TEST_CONTEXT(kind.ending << ", " << length << " bytes") {
        const TemporaryFolder folder;
        const std::string ending = kind.ending;
        const std::string name = std::string(length - ending.size(), 'n') + ending;
        for (int time = 0; time < 2; ++time) {
          BOOST_CHECK_NO_THROW(kind.write(folder / name, sources.path()));
          BOOST_TEST(list_folder(folder.path()) == std::vector<std::string>{name},
                     boost::test_tools::per_element());
        }
      }
    }
  }
}

// The name of the side file is the longer one: that shows before anything is saved.
BOOST_AUTO_TEST_CASE(a_name_too_long_for_its_side_file_is_refused_first) {
  const TemporaryFolder folder;
  const std::string ending = ".sha256";
  const std::string name(kLongest - ending.size(), 'n');
  save(folder / name, {.sha256 = true});
  BOOST_TEST((list_folder(folder.path()) == std::vector<std::string>{name, name + ending}));
  BOOST_CHECK_EXCEPTION(save(folder / (name + "n"), {.sha256 = true}), IoError,
                        [&](const IoError& error) {
                          return error.errno_value() == ENAMETOOLONG &&
                                 error.context().path == (folder / (name + "n" + ending)).string();
                        });
  BOOST_TEST(list_folder(folder.path()).size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
