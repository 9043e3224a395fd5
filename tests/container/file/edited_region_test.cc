// Region headers, state headers and connections that break a rule under checksums that hold.
// docs/format/format.md, "Region" and "Connectivity".
#include <cstring>

#include "boost_test.h"
#include "container/file/edit_check.h"
#include "format/connectivity.h"
#include "format/region.h"
#include "format/state.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(edited_region)

namespace {

constexpr std::uint64_t kAll = ~0ull;
constexpr std::uint32_t kAll32 = ~0u;

// Region 0 is "cortex", which has all pieces.
template <typename Struct>
auto of_cortex(Struct& (EditableFile::*find)(std::uint32_t)) {
  return [find](EditableFile& file) -> Struct& { return (file.*find)(0); };
}

}  // namespace

BOOST_AUTO_TEST_CASE(broken_index_entries_are_refused) {
  using I = format::RegionIndexEntry;
  check_edits(varied_bytes(), Readers::refuse,
              edits_of<I>(of_cortex(&EditableFile::region_index),
                          {{"data_offset", [](I& i) { i.data_offset = i.data_offset + 1; }},
                           {"data_offset", [](I& i) { i.data_offset = 0; }},
                           {"data_offset", [](I& i) { i.data_offset = kAll - 63; }},
                           {"data_offset", [](I& i) { i.data_length = kAll; }},
                           {"data_length", [](I& i) { i.data_length = 0; }},
                           {"data_length", [](I& i) { i.data_length = 191; }},
                           {"stored_offset", [](I& i) { i.data_length = 1024; }},
                           {"region", [](I& i) { i.data_offset = i.data_offset + 64; }},
                           {"region_name", [](I& i) { i.region_name[31] = 'x'; }},
                           {"region_name", [](I& i) { i.region_name[8] = 'x'; }}}));
}

BOOST_AUTO_TEST_CASE(inconsistent_index_entries_are_reported) {
  using I = format::RegionIndexEntry;
  check_edits(varied_bytes(), Readers::need_not,
              edits_of<I>(of_cortex(&EditableFile::region_index),
                          {{"data_length", [](I& i) { i.data_length = i.data_length + 64; }},
                           {"region_name", [](I& i) { i.region_name[0] = 'C'; }}}));
  // Both index entries claim the extent of the first region, which has no such tensors.
  check_edits(
      varied_bytes(), Readers::need_not,
      {{"a region in another", "overlaps", [](EditableFile& file) {
          file.region_index(1).data_offset = std::uint64_t{file.region_index(0).data_offset};
          file.region_index(1).data_length = std::uint64_t{file.region_index(0).data_length};
        }}});
}

BOOST_AUTO_TEST_CASE(broken_region_headers_are_refused) {
  using R = format::RegionHeader;
  check_edits(
      varied_bytes(), Readers::refuse,
      edits_of<R>(of_cortex(&EditableFile::region_header),
                  {{"neuron_type", [](R& r) { r.neuron_type = NeuronType{3}; }},
                   {"neuron_type", [](R& r) { r.neuron_type = NeuronType{kAll32}; }},
                   {"encoding_type", [](R& r) { r.encoding_type = 2; }},
                   {"config_offset", [](R& r) { r.config_offset = 191; }},
                   {"config_offset", [](R& r) { r.config_offset = 0; }},
                   {"config_offset", [](R& r) { r.config_length = 1 << 20; }},
                   {"config_offset", [](R& r) { r.config_offset = r.config_length = kAll; }},
                   {"weights_offset", [](R& r) { r.weights_offset = kAll - 7; }},
                   {"weights_offset", [](R& r) { r.weights_length = kAll; }},
                   {"homeostatic_offset", [](R& r) { r.homeostatic_offset = 192; }},
                   {"homeostatic_length", [](R& r) { r.homeostatic_length = 15; }}}));
}

BOOST_AUTO_TEST_CASE(broken_region_extensions_are_refused) {
  using E = format::RegionExtension;
  check_edits(
      varied_bytes(), Readers::refuse,
      edits_of<E>(of_cortex(&EditableFile::region_extension),
                  {{"extension_length", [](E& e) { e.extension_length = 64; }},
                   {"zero_04", [](E& e) { e.zero_04 = 1; }},
                   {"zero_48", [](E& e) { e.zero_48[55] = 1; }},
                   {"dynamic_state_offset", [](E& e) { e.dynamic_state_offset = kAll; }},
                   {"dynamic_state_length", [](E& e) { e.dynamic_state_length = 31; }},
                   {"oscillator_offset", [](E& e) { e.oscillator_offset = 192; }},
                   {"neuromodulator_offset", [](E& e) { e.neuromodulator_offset = kAll; }},
                   {"other_offset", [](E& e) { e.other_offset = kAll; }},
                   {"other_offset", [](E& e) { e.other_length = kAll; }},
                   {"region_metadata_offset", [](E& e) { e.region_metadata_offset = 256; }},
                   {"region_metadata_offset", [](E& e) { e.region_metadata_length = 1 << 20; }}}));
}

BOOST_AUTO_TEST_CASE(pieces_that_are_not_the_tensors_are_reported) {
  using R = format::RegionHeader;
  check_edits(
      varied_bytes(), Readers::need_not,
      edits_of<R>(
          of_cortex(&EditableFile::region_header),
          {{"encoding_type", [](R& r) { r.encoding_type = 1; }},
           {"weights_offset", [](R& r) { r.weights_offset = r.weights_offset + 1; }},
           {"weights_length", [](R& r) { r.weights_length = r.weights_length - 1; }},
           {"weights", [](R& r) { r.weights_offset = r.weights_length = 0; }},
           {"homeostatic_length", [](R& r) { r.homeostatic_length = r.homeostatic_length - 1; }},
           {"n_neurons", [](R& r) { r.n_neurons = 41; }}}));
  using E = format::RegionExtension;
  check_edits(
      varied_bytes(), Readers::need_not,
      edits_of<E>(of_cortex(&EditableFile::region_extension),
                  {{"dynamic_state_length",
                    [](E& e) { e.dynamic_state_length = e.dynamic_state_length - 1; }},
                   {"oscillator_offset", [](E& e) { e.oscillator_offset = 0; }},
                   {"neuromodulator_offset",
                    [](E& e) { e.neuromodulator_offset = e.neuromodulator_offset - 64; }},
                   {"other_offset", [](E& e) { e.other_offset = e.other_offset + 1; }},
                   {"other_length", [](E& e) { e.other_length = e.other_length - 1; }},
                   {"region_metadata_offset", [](E& e) { e.region_metadata_length = 0; }}}));
}

BOOST_AUTO_TEST_CASE(wrong_state_headers_are_reported) {
  using H = format::HomeostaticHeader;
  check_edits(varied_bytes(), Readers::need_not,
              edits_of<H>(of_cortex(&EditableFile::homeostatic_header),
                          {{"n_neurons", [](H& h) { h.n_neurons = 1; }},
                           {"flags", [](H& h) { h.flags = 1; }}}));
  using D = format::DynamicStateHeader;
  check_edits(
      varied_bytes(), Readers::need_not,
      edits_of<D>(of_cortex(&EditableFile::dynamic_state_header),
                  {{"has_region_state", [](D& d) { d.has_region_state = 0; }},
                   {"has_learning_state", [](D& d) { d.has_learning_state = 2; }},
                   {"has_oscillators", [](D& d) { d.has_oscillators = kAll32; }},
                   {"has_neuromodulators", [](D& d) { d.has_neuromodulators = 0; }},
                   {"region_state_offset", [](D& d) { d.region_state_offset = 0; }},
                   {"learning_state_offset", [](D& d) { d.learning_state_offset = kAll; }}}));
}

BOOST_AUTO_TEST_CASE(broken_connections_are_refused_or_reported) {
  using H = format::ConnectivityHeader;
  const auto header = [](EditableFile& file) -> H& { return file.connectivity(); };
  check_edits(varied_bytes(), Readers::refuse,
              edits_of<H>(header, {{"num_connections", [](H& h) { h.num_connections = kAll32; }},
                                   {"source_region", [](H& h) { h.num_connections = 3; }}}));
  check_edits(varied_bytes(), Readers::need_not,
              edits_of<H>(header, {{"num_connections", [](H& h) { h.num_connections = 0; }},
                                   {"", [](H& h) { h.num_connections = 1; }},
                                   {"zero_04", [](H& h) { h.zero_04 = 1; }},
                                   {"zero_08", [](H& h) { h.zero_08[23] = 1; }}}));
  using C = format::ConnectionEntry;
  check_edits(
      varied_bytes(), Readers::refuse,
      edits_of<C>([](EditableFile& file) -> C& { return file.connection(0); },
                  {{"source_region", [](C& c) { c.source_region[31] = 'x'; }},
                   {"source_region", [](C& c) { c.source_region[30] = 'x'; }},
                   {"target_region", [](C& c) { c.target_region[31] = 'x'; }},
                   {"target_region", [](C& c) { std::memset(c.target_region, 'x', 32); }}}));
  check_edits(varied_bytes(), Readers::need_not,
              edits_of<C>([](EditableFile& file) -> C& { return file.connection(0); },
                          {{"source_region", [](C& c) { c.source_region[0] = 'C'; }},
                           // The name is long: the short name takes all bytes but the last.
                           {"target_region", [](C& c) { c.target_region[30] = 'x'; }},
                           {"target_region", [](C& c) { std::memset(c.target_region, 'x', 31); }},
                           {"weight_offset", [](C& c) { c.weight_offset = c.weight_offset + 64; }},
                           {"weight_offset", [](C& c) { c.weight_length = kAll; }},
                           {"delay_offset", [](C& c) { c.delay_offset = 0; }},
                           {"delay_offset", [](C& c) { c.delay_offset = c.delay_length = 0; }},
                           {"one connection", [](C& c) {
                              std::uint8_t source[32];
                              std::memcpy(source, c.source_region, 32);
                              std::memcpy(c.source_region, c.target_region, 32);
                              std::memcpy(c.target_region, source, 32);
                            }}}));
}

BOOST_AUTO_TEST_CASE(what_stands_beside_the_connections_is_reported) {
  check_edits(varied_bytes(), Readers::need_not,
              {{"a section that goes on", "connectivity_length",
                [](EditableFile& file) {
                  file.header().connectivity_length = file.header().connectivity_length + 8;
                }},
               {"weights of another role", "role",
                [](EditableFile& file) { file.tensor("0.weights").role = Role{8}; }},
               {"delays of another role", "role",
                [](EditableFile& file) { file.tensor("0.delays").role = Role{0}; }}});
}

BOOST_AUTO_TEST_SUITE_END()
