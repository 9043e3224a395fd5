// Pickles that somebody made up, and archives that do not hold what they say.
#include <string>

#include "boost_test.h"
#include "formats/pickle/machine.h"
#include "formats/pt/archive.h"
#include "formats/pt/archives.h"
#include "formats/pt/tree.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(pt_hostile)

namespace {

using formats::pt::Graph;

Graph graph_of(const std::string& pickle, const ReadLimits& limits = {}) {
  return formats::pt::read_pickle(bytes_of(pickle), {}, limits);
}

void refuse_pickle(const std::string& body, ErrorCode code, const char* part = "") {
  BOOST_CHECK_EXCEPTION(graph_of(pickle_of(body)), Error, says(code, "data.pkl", part));
}

void refuse_tree(const std::string& body, ErrorCode code, const char* part = "") {
  // The machine takes it: the graph outlives the call, and so must the pickle.
  const std::string pickle = pickle_of(body);
  Graph graph = graph_of(pickle);
  BOOST_CHECK_EXCEPTION(formats::pt::make_tree(graph, {}), Error, says(code, "data.pkl", part));
}

void refuse_file(const std::string& bytes, ErrorCode code, const char* part = "") {
  BOOST_CHECK_EXCEPTION(pt_from(bytes), Error, says(code, "test.pt", part));
}

const std::string kFloats = op_storage("FloatStorage", "0", 6);

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(objects_that_run_code_are_refused_by_name) {
  for (const auto& [module, name] : {std::pair{"os", "system"},
                                     {"posix", "system"},
                                     {"builtins", "eval"},
                                     {"__builtin__", "getattr"},
                                     {"subprocess", "Popen"},
                                     {"torch", "load"},
                                     {"torch.storage", "_load_from_bytes"},
                                     {"functools", "partial"},
                                     {"numpy", "load"},
                                     {"torch.hub", "load"}}) {
    const std::string full = std::string("'") + module + "." + name + "', which is not loaded";
    refuse_pickle(op_global(module, name) + op_text("echo") + "\x85R",
                  ErrorCode::unsupported_feature, full.c_str());
    // In the way of protocol 4 too, and where nothing calls it.
    refuse_pickle(op_text(module) + op_text(name) + "\x93", ErrorCode::unsupported_feature,
                  full.c_str());
  }
}

BOOST_AUTO_TEST_CASE(names_in_messages_are_printable) {
  refuse_pickle(op_global("a\x1b[31m", "b"), ErrorCode::unsupported_feature, "\\x1b[31m.b");
}

BOOST_AUTO_TEST_CASE(opcodes_of_no_file_of_tensors_are_refused) {
  for (const char* const body : {"I1\n", "L1\n", "F1.0\n", "V1\n", "S'a'\n", "i__main__\nA\n", "(o",
                                 "\x82\x01", "P1\n", "\x97", "\x98", "\x92"})
    refuse_pickle(body, ErrorCode::unsupported_feature, "opcode");
  BOOST_CHECK_EXCEPTION(graph_of("N."), FormatError, has_code(ErrorCode::bad_magic));
  BOOST_CHECK_EXCEPTION(graph_of("\x80\x06N."), UnsupportedError,
                        has_code(ErrorCode::unsupported_version));
  BOOST_CHECK_EXCEPTION(graph_of(""), FormatError, has_code(ErrorCode::truncated));
}

BOOST_AUTO_TEST_CASE(stacks_and_memos_are_kept_to) {
  for (const char* const body : {"", "0", "R", "e", "t", "\x85", "u", "NN", "(N", "]N", "(a",
                                 "h\x05", "j\x05\x00\x00\x00", "]NNa", "N(u", "}(Nu", "N(Ne"})
    BOOST_CHECK_THROW(graph_of(pickle_of(body)), FormatError);
  BOOST_CHECK_EXCEPTION(graph_of(pickle_of("N") + "N"), FormatError,
                        says(ErrorCode::inconsistent, "after the end"));
}

BOOST_AUTO_TEST_CASE(lengths_past_the_end_are_refused) {
  const std::string four("\xff\xff\xff\x7f", 4), eight("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  for (const std::string& op : {"\x8b" + four, "X" + four, "B" + four, "T" + four, "\x8d" + eight,
                                "\x8e" + eight, "\x96" + eight, "\x95" + eight})
    refuse_pickle(op, ErrorCode::truncated);
  refuse_pickle("\x8b\xff\xff\xff\xff", ErrorCode::truncated);
}

BOOST_AUTO_TEST_CASE(long_integers_have_a_bound) {
  std::string number(1750, '\xff');
  number.back() = '\x7f';
  const std::string length("\xd6\x06\x00\x00", 4);
  const std::string pickle = pickle_of("\x8b" + length + number);
  const Graph graph = graph_of(pickle);
  BOOST_TEST(graph.at(graph.root).text.size() == 4215u);
  const std::string longer("\xd7\x06\x00\x00", 4);
  refuse_pickle("\x8b" + longer + number + '\0', ErrorCode::unsupported_feature, "14,000 bits");
}

BOOST_AUTO_TEST_CASE(deep_nests_and_circles_end) {
  refuse_tree(repeated("]", 100) + repeated("a", 99), ErrorCode::unsupported_feature, "80");
  const std::string deep = pickle_of(repeated("N\x85", 1).substr(0, 1) + repeated("\x85", 100000));
  Graph graph = graph_of(deep);
  BOOST_CHECK_THROW(formats::pt::make_tree(graph, {}), UnsupportedError);
  // A list in itself, and a dictionary in itself.
  refuse_tree(
      "]q\x01h\x01"
      "a",
      ErrorCode::unsupported_feature, "holds itself");
  refuse_tree(std::string("}q\x01") + op_text("a") + "h\x01s", ErrorCode::unsupported_feature);
}

BOOST_AUTO_TEST_CASE(what_stands_in_many_places_does_not_grow_without_end) {
  // Each list has the one before ten times: 10^30 at the last.
  std::string body = "]q" + std::string(1, '\0');
  for (char i = 1; i <= 30; ++i) {
    body += "](";
    for (int k = 0; k < 10; ++k) body += std::string("h") + static_cast<char>(i - 1);
    body += std::string("eq") + i;
  }
  const std::string pickle = pickle_of("(" + body + "t");
  Graph graph = graph_of(pickle);
  BOOST_CHECK_EXCEPTION(formats::pt::make_tree(graph, {}), FormatError,
                        has_code(ErrorCode::limit_exceeded));
  // The same in tuples that are a key.
  std::string key = "N\x85q" + std::string(1, '\0');
  for (char i = 1; i <= 60; ++i)
    key +=
        std::string("h") + static_cast<char>(i - 1) + "h" + static_cast<char>(i - 1) + "\x86q" + i;
  const std::string keyed = pickle_of("}" + key.substr(0, key.size() - 2) + "Ns");
  BOOST_CHECK_THROW(([&] {
                      Graph keyed_graph = graph_of(keyed);
                      formats::pt::make_tree(keyed_graph, {});
                    }()),
                    Error);
}

BOOST_AUTO_TEST_CASE(names_and_texts_that_stand_in_many_places_take_no_memory_without_end) {
  // A key of 1 MB above 4,000 places of one tensor; the same key beside them; a text in so many
  // attributes.
  const std::string key = "X" + std::string("\x40\x42\x0f\x00", 4) + std::string(1'000'000, 'k');
  const std::string one = op_tensor(kFloats, 0, {6}, {1}) + "q\x05" + "0";
  const std::string many = "](" + repeated("h\x05", 4000) + "e";
  const std::string dictionary = op_global("collections", "OrderedDict") + ")R";
  const std::string state = "}" + op_text("_metadata") + key + "sq\x06" + "0";
  for (const std::string& body :
       {one + "}" + key + many + "s", one + "}(" + key + "h\x05" + op_text("a") + many + "u",
        state + "](" + repeated(dictionary + "h\x06" + "b", 4000) + "e"}) {
    BOOST_CHECK_EXCEPTION(pt_from(pt_of(body, std::string(24, '\0')), {}, true), FormatError,
                          says(ErrorCode::limit_exceeded, "max_allocation_bytes", "data.pkl"));
  }
}

BOOST_AUTO_TEST_CASE(what_many_tensors_share_is_not_read_for_each_without_a_bound) {
  const std::string flags = "}(" + repeated(op_text("conj") + "\x89", 3) + "u";
  refuse_pickle(op_global("torch._utils", "_rebuild_tensor_v2") + '(' + kFloats + op_int(0) +
                    op_tuple({6}) + op_tuple({1}) + '\x89' +
                    op_global("collections", "OrderedDict") + ")R" + flags + "tR",
                ErrorCode::bad_value, "got 3 members, expected at most 2");
  refuse_pickle(op_storage("FloatStorage", std::string(254, '1'), 6) + "0" + "(" +
                    op_text("storage") + op_global("torch", "FloatStorage") + "X" +
                    std::string("\x00\x01\x00\x00", 4) + std::string(256, '1') + op_text("cpu") +
                    op_int(6) + "tQ",
                ErrorCode::out_of_bounds, "got 256 bytes, expected at most 255");
}

BOOST_AUTO_TEST_CASE(memos_are_numbered_within_the_length_of_the_pickle) {
  refuse_pickle("Nr" + std::string("\x00\x00\x00\x10", 4), ErrorCode::out_of_bounds,
                "less than the pickle's 9 bytes");
  // A number twice is one, of those that MEMOIZE counts.
  const std::string pickle = pickle_of(
      "Nq\x02"
      "0K\x07q\x02\x94"
      "0h\x01");
  const Graph graph = graph_of(pickle);
  BOOST_TEST(graph.at(graph.root).integer == 7);
}

BOOST_AUTO_TEST_CASE(memory_is_that_of_the_pickle_times_a_bound) {
  const std::string pickle = pickle_of("](" + repeated("K\x01", 100000) + "e");
  BOOST_CHECK_EXCEPTION(graph_of(pickle, {.max_allocation_bytes = 1 << 20}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  BOOST_TEST(graph_of(pickle).nodes.size() == 100001u);
}

BOOST_AUTO_TEST_CASE(keys_are_those_that_python_can_hash_and_stand_once) {
  refuse_tree("}]Ns", ErrorCode::unsupported_feature, "a key");
  refuse_tree(std::string("}(") + op_text("a") + "N" + op_text("a") + "Nu", ErrorCode::inconsistent,
              "twice");
  refuse_tree("}(K\x01N\x88Nu", ErrorCode::inconsistent, "twice");
  refuse_tree("}(K\x01NG\x3f\xf0" + std::string(6, '\0') + "Nu", ErrorCode::inconsistent);
  refuse_tree(op_global("torch", "FloatStorage"), ErrorCode::unsupported_feature, "'FloatStorage'");
}

BOOST_AUTO_TEST_CASE(tensors_stay_in_their_storages) {
  const auto refuse = [](std::int64_t offset, const std::vector<std::int64_t>& shape,
                         const std::vector<std::int64_t>& stride, ErrorCode code) {
    refuse_pickle(op_tensor(kFloats, offset, shape, stride), code);
  };
  BOOST_TEST(graph_of(pickle_of(op_tensor(kFloats, 0, {2, 3}, {3, 1}))).tensors.size() == 1u);
  refuse(1, {2, 3}, {3, 1}, ErrorCode::out_of_bounds);
  refuse(0, {2, 3}, {4, 1}, ErrorCode::out_of_bounds);
  refuse(-1, {2}, {1}, ErrorCode::out_of_bounds);
  refuse(0, {-2}, {1}, ErrorCode::out_of_bounds);
  refuse(5, {2}, {-1}, ErrorCode::out_of_bounds);
  refuse(6, {}, {}, ErrorCode::out_of_bounds);
  refuse(0, {2}, {INT64_MAX}, ErrorCode::out_of_bounds);
  refuse(INT64_MAX, {2}, {INT64_MAX}, ErrorCode::out_of_bounds);
  refuse(0, {3, 3}, {INT64_MAX, INT64_MAX}, ErrorCode::out_of_bounds);
  refuse(0, {INT64_MAX, INT64_MAX}, {0, 0}, ErrorCode::out_of_bounds);
  refuse(0, {2, 3}, {3}, ErrorCode::bad_value);
  refuse(0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1},
         ErrorCode::unsupported_feature);
  refuse_pickle(op_storage("FloatStorage", "0", INT64_MAX), ErrorCode::out_of_bounds);
  refuse_pickle(op_storage("FloatStorage", "0", -1), ErrorCode::out_of_bounds);
}

BOOST_AUTO_TEST_CASE(storages_are_as_long_as_their_records) {
  const std::string body = op_tensor(kFloats, 0, {2, 3}, {3, 1});
  const std::string data(24, '\0');
  BOOST_TEST((pt_from(pt_of(body, data)).read("tensor").shape() == Shape({2, 3})));
  refuse_file(pt_of(body, data + "abcd"), ErrorCode::inconsistent, "data/0");
  refuse_file(pt_of(body, data.substr(4)), ErrorCode::inconsistent, "data/0");
  refuse_file(pt_of(op_tensor(op_storage("FloatStorage", "1", 6), 0, {6}, {1}), data),
              ErrorCode::out_of_bounds, "no record");
  refuse_file(pt_of(op_tensor(op_storage("FloatStorage", "../version", 6), 0, {6}, {1}), data),
              ErrorCode::out_of_bounds, "no record");
}

BOOST_AUTO_TEST_CASE(few_elements_that_stand_for_many_are_not_made) {
  // 2^40 floats of one.
  const std::string bytes =
      pt_of(op_tensor(op_storage("FloatStorage", "0", 1), 0, {1 << 20, 1 << 20}, {0, 0}), "abcd");
  const PtTensors file = pt_from(bytes);
  BOOST_CHECK_EXCEPTION(file.read("tensor"), FormatError, has_code(ErrorCode::limit_exceeded));
  BOOST_TEST(pt_from(bytes, {}, true).tree().find("\"stride\":[0,0]") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(compressed_records_that_hold_much_are_not_made) {
  const std::string zeros(8 << 20, '\0');
  const std::string bytes = pt_archive(
      {{"data.pkl",
        pickle_of(op_tensor(op_storage("ByteStorage", "0", 8 << 20), 0, {8 << 20}, {1}))},
       {"data/0:z", zeros},
       {"version", "3"}});
  BOOST_TEST(bytes.size() < 20000u);
  BOOST_TEST(pt_from(bytes).read("tensor").bytes().size() == zeros.size());
  const PtTensors file = pt_from(bytes, {.max_allocation_bytes = 1 << 20});
  BOOST_CHECK_EXCEPTION(file.read("tensor"), FormatError, has_code(ErrorCode::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(compressed_records_of_several_tensors_are_inflated_once) {
  // Four bytes of each record, at its start and at 4.
  const std::string zeros(8 << 20, '\0');
  std::string body = "](";
  for (const char* const key : {"0", "1"}) {
    for (const int offset : {0, 4})
      body += op_tensor(op_storage("ByteStorage", key, 8 << 20), offset, {4}, {1});
  }
  const std::string bytes = pt_archive({{"data.pkl", pickle_of(body + "e")},
                                        {"data/0:z", zeros},
                                        {"data/1:z", zeros},
                                        {"version", "3"}});
  BOOST_TEST(pt_from(bytes, {.max_allocation_bytes = 17 << 20}).tensors().size() == 4u);
  BOOST_CHECK_EXCEPTION(pt_from(bytes, {.max_allocation_bytes = 12 << 20}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes", "data/1"));
  formats::pt::PtArchive archive({.bytes = bytes_of(bytes)}, {});
  io::MemoryBudget budget({}, bytes.size());
  const auto record_dies = [&](std::string_view record) {
    const std::weak_ptr<const void> owner = archive.bytes_of(*archive.find(record), budget).owner;
    return owner.expired();
  };
  archive.keep(*archive.find("data/1"), budget);
  BOOST_TEST(record_dies("data/0"));
  BOOST_TEST(!record_dies("data/1"));
}

// All parts have one budget: parts that would fit one by one do not fit together.
BOOST_AUTO_TEST_CASE(all_parts_of_a_tensor_count_together) {
  // Each of the two parts of the first takes less than the limit, and of the second the codes do.
  for (const auto& [name, most] : {std::pair{"coo_expand.pt", std::uint64_t{1} << 30},
                                   {"dequant_bomb_2e27.pt", std::uint64_t{1} << 28}}) {
    const ReadOptions reading{.input = {.limits = {.max_allocation_bytes = most}}};
    const AnyFile file =
        open_any(std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/hostile" / name,
                 {.chain = {.read = reading}, .dequantize = true});
    BOOST_TEST_REQUIRE(file.tensors().size() == 1u);
    BOOST_CHECK_EXCEPTION(file.read(0), FormatError,
                          says(ErrorCode::limit_exceeded, name, "max_allocation_bytes"));
  }
}

BOOST_AUTO_TEST_CASE(views_of_little_do_not_claim_work_without_end) {
  const auto file_of = [](const TemporaryFolder& folder, std::size_t views) {
    const std::string view = op_tensor(op_storage("ByteStorage", "0", 1), 0, {1 << 20}, {0});
    write_file(folder / "x.pt",
               pt_archive({{"data.pkl", pickle_of("](" + repeated(view, views) + "e")},
                           {"data/0", "x"},
                           {"version", "3"}}));
    return open_any(folder / "x.pt");
  };
  const TemporaryFolder folder;
  const AnyFile few = file_of(folder, 1024);
  few.check(1023);
  BOOST_TEST(few.read(1023).bytes().size() == std::size_t{1} << 20);
  const AnyFile many = file_of(folder, 1025);
  BOOST_TEST(many.tensors().size() == 1025u);
  for (const auto& call : {+[](const AnyFile& file) { file.check(0); },
                           +[](const AnyFile& file) { static_cast<void>(file.read(0)); }}) {
    BOOST_CHECK_EXCEPTION(call(many), FormatError,
                          says(ErrorCode::limit_exceeded, "data", "max_allocation_bytes"));
  }
}

BOOST_AUTO_TEST_CASE(archives_are_those_of_torch) {
  const std::string pickle = pickle_of("N");
  refuse_file(pt_archive({{"data.pkl", pickle}}), ErrorCode::bad_value, "version");
  refuse_file(pt_archive({{"data.pkl", pickle}, {"version", "11\n"}}),
              ErrorCode::unsupported_version, "version");
  refuse_file(pt_archive({{"data.pkl", pickle}, {"version", "three"}}),
              ErrorCode::unsupported_version);
  refuse_file(pt_archive({{"data.pkl", pickle}, {"version", "3"}, {"byteorder", "middle"}}),
              ErrorCode::bad_value, "byteorder");
  refuse_file(pt_archive({{"version", "3"}}), ErrorCode::bad_value, "data.pkl");
  BOOST_TEST(pt_from(pt_archive({{"data.pkl", pickle}, {"version", "3"}})).tensors().empty());
  const PtTensors file =
      pt_from(pt_archive({{"data.pkl", pickle}, {"version", "3"}, {"extra/x", "y"}}));
  BOOST_TEST(file.losses() == std::vector<std::string>{"the records 'extra/x'"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sparse_tensors_with_bad_indices_are_refused) {
  const auto sparse = [](const std::string& layout, const std::string& data) {
    return op_global("torch._utils", "_rebuild_sparse_tensor") +
           op_global("torch.serialization", "_get_layout") + op_text(layout) + "\x85R(" + data +
           "t\x86R";
  };
  const std::string size = op_global("torch", "Size") + op_tuple({2, 2}) + "\x85R";
  const auto file = [&](const std::vector<std::int64_t>& indices, bool coalesced) {
    std::string data;
    for (const std::int64_t index : indices)
      data.append(reinterpret_cast<const char*>(&index), sizeof index);
    const std::string body =
        sparse("torch.sparse_coo", op_tensor(op_storage("LongStorage", "0", 4), 0, {2, 2}, {2, 1}) +
                                       op_tensor(op_storage("FloatStorage", "1", 2), 0, {2}, {1}) +
                                       size + (coalesced ? '\x88' : '\x89'));
    return pt_archive({{"data.pkl", pickle_of(body)},
                       {"data/0", data},
                       {"data/1", "abcdefgh"},
                       {"version", "3"}});
  };
  BOOST_TEST(pt_from(file({0, 1, 1, 0}, true)).read("tensor").nnz() == 2u);
  BOOST_TEST(text_of(pt_from(file({1, 0, 0, 1}, false)).read("tensor").values()) == "efghabcd");
  const auto refuse = [&](const std::vector<std::int64_t>& indices, bool coalesced,
                          ErrorCode code) {
    const PtTensors pt = pt_from(file(indices, coalesced));
    BOOST_CHECK_EXCEPTION(pt.read("tensor"), Error, has_code(code));
  };
  refuse({0, 2, 1, 0}, true, ErrorCode::out_of_bounds);
  refuse({0, -1, 1, 0}, false, ErrorCode::out_of_bounds);
  refuse({1, 0, 0, 1}, true, ErrorCode::out_of_bounds);
  refuse({1, 1, 0, 0}, true, ErrorCode::out_of_bounds);
  refuse({1, 1, 0, 0}, false, ErrorCode::unsupported_feature);
  refuse_pickle(sparse("torch.sparse_bsr", "NNN"), ErrorCode::unsupported_feature,
                "torch.sparse_bsr");
}

BOOST_AUTO_TEST_SUITE_END()
