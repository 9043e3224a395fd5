// Reads any bytes as a pickle of PyTorch. What is read is written as a sink writes it, and is the
// same object when it is read again.

#include <span>

#include "formats/pickle/machine.h"
#include "formats/pickle/pickler.h"
#include "formats/pt/listing.h"
#include "formats/pt/plan.h"
#include "formats/pt/tree.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace pt_pickle_target {

using namespace thalia::formats;

void run(const std::uint8_t* data, std::size_t size) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 22;
  limits.max_json_bytes = 1 << 20;
  try {
    pt::Graph graph = pt::read_pickle(std::as_bytes(std::span(data, size)), {}, limits);
    const pt::PtTree tree = pt::make_tree(graph, limits);
    const pt::ListingOptions shared{.shared_memory = true};
    const pt::PtListing listing = pt::list_stored(graph, tree, shared, limits);
    static_cast<void>(pt::list_stored(graph, tree, {.dequantize = true}, limits));
    static_cast<void>(pt::list_stored(graph, tree, {}, limits));
    SinkInput input{.metadata =
                        R"({"thalia_checkpoint":{"version":1,"tree":)" + listing.tree + "}}"};
    for (const pt::Stored& stored : listing.stored)
      input.tensors.push_back({.name = stored.name, .layout = stored.layout});
    const pt::PtPlan plan = pt::make_plan(input, limits);
    const pt::Pickled pickled = pt::write_pickle(plan.graph);
    pt::Graph again = pt::read_pickle(as_byte_span(pickled.bytes), {}, limits);
    const pt::PtTree tree_again = pt::make_tree(again, limits);
    if (plan.losses.empty())
      FUZZ_REQUIRE(pt::list_stored(again, tree_again, shared, limits).tree == listing.tree);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace pt_pickle_target
}  // namespace

FUZZ_TARGET(pt_pickle)
