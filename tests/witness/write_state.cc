// write_state FILE: the sample brain, saved as a user would.
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "model/brain/brain_sample.h"
#include "thalia/brain_checkpoint.h"

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::invalid_argument("usage: write_state FILE");
    // The digests of this kind need nothing but Python's standard library.
    thalia::BrainCheckpoint::save(thalia::test::sample_brain(), argv[1],
                                  {.save = {.leaves = thalia::LeafAlgorithm::sha256}});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_state: %s\n", error.what());
    return 1;
  }
}
