// A trained model there and back. Exits with 77 where the model is not to be had.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "formats/samples.h"
#include "support/files.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

void there_and_back(const std::filesystem::path& model, const SaveOptions& save) {
  const TemporaryFolder folder;
  const auto middle = folder / "model.thalia";
  const auto back = folder / "back.safetensors";
  const auto again = folder / "again.safetensors";
  require(convert(model, middle, {.save = save}).losses.empty(), "nothing is lost on the way");
  require(verify(middle).ok(), "the .thalia file verifies");
  require(
      Reader::open(middle).region("lstm_cell").at("lstm_cell.weight_hh").shape() == Shape{512, 128},
      "a layer is a region");
  require(convert(middle, back).losses.empty(), "nothing is lost on the way back");
  require(same_content(SafetensorsFile::open(model), SafetensorsFile::open(back)),
          "every tensor and the metadata come back");
  // What comes back is in the reference's order and stays as it is from here on.
  convert(back, middle, {.save = save});
  convert(middle, again);
  require(read_file(back) == read_file(again), "a second round changes no byte");
}

}  // namespace

int main() {
  const auto model = real_model();
  if (!model) {
    std::puts("no trained model: set THALIA_VECTORS to the folder of vectors");
    return 77;
  }
  there_and_back(*model, {});
  there_and_back(*model, {.compression = {.codec = Codec::zstd}});
}
