// The model of the disk against what is known of disks: which folders a few calls may leave.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "crash/disk.h"
#include "crash/states.h"

using namespace thalia::crash;

BOOST_AUTO_TEST_SUITE(crash_model)

namespace {

// Calls in a folder, one after the other; node 1 is a file "f" that was there before.
class Calls {
 public:
  explicit Calls(std::string before) {
    log.before.nodes.push_back({Node::Kind::file, std::move(before), {}});
    log.before.nodes[0].names["f"] = 1;
  }

  /// A file without a name yet.
  std::size_t file() {
    log.before.nodes.emplace_back();
    return log.before.nodes.size() - 1;
  }
  std::size_t add(Call call) {
    call.begin = call.end = log.places++;
    log.calls.push_back(std::move(call));
    return log.calls.size() - 1;
  }
  std::size_t write(std::size_t node, std::uint64_t offset, std::string bytes) {
    return add({.kind = Kind::write, .node = node, .offset = offset, .bytes = std::move(bytes)});
  }
  void link(std::size_t node, std::string name) {
    add({.kind = Kind::link, .node = node, .folder = 0, .name = std::move(name)});
  }
  void rename(std::size_t node, std::string from, std::string to) {
    add({.kind = Kind::rename,
         .node = node,
         .folder = 0,
         .other_folder = 0,
         .name = std::move(from),
         .other_name = std::move(to)});
  }
  std::size_t sync(std::size_t node) { return add({.kind = Kind::sync, .node = node}); }

  CallLog log;
};

// What `look` says of each state after the last call.
std::set<std::string> seen(const CallLog& log, Mode mode,
                           const std::function<std::string(const Tree&)>& look) {
  std::set<std::string> all;
  std::set<std::uint64_t> known;
  visit_states(log, mode, 800, 1, [&](const Tree& tree, std::size_t place) {
    if (place < log.places || !known.insert(hash(tree)).second) return false;
    all.insert(look(tree));
    return true;
  });
  return all;
}

std::string bytes_of(const Tree& tree, const std::string& name) {
  const auto found = tree.nodes[0].names.find(name);
  return found == tree.nodes[0].names.end() ? "none" : tree.nodes[found->second].bytes;
}

std::string names_of(const Tree& tree) {
  std::string all;
  for (const auto& [name, node] : tree.nodes[0].names) all += name;
  return all;
}

using Set = std::set<std::string>;

// The bytes of "f", in runs: "4096 a, 4096 b".
std::string runs(const Tree& tree) {
  const std::string bytes = bytes_of(tree, "f");
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t end = std::min(bytes.find_first_not_of(bytes[i], i), bytes.size());
    text += (text.empty() ? "" : ", ") + std::to_string(end - i) + ' ' +
            (bytes[i] == 0 ? '0' : bytes[i]);
    i = end;
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_synced_is_there) {
  for (const Mode mode : kModes) {
    Calls calls("aaaa");
    calls.write(1, 1, "bb");
    calls.sync(1);
    BOOST_TEST((seen(calls.log, mode, runs) == Set{"1 a, 2 b, 1 a"}));
  }
}

BOOST_AUTO_TEST_CASE(a_sector_is_torn_in_one_mode_only) {
  Calls calls(std::string(256, 'a'));
  calls.write(1, 0, std::string(256, 'b'));
  for (const Mode mode : {Mode::ordered, Mode::writeback, Mode::bare})
    BOOST_TEST((seen(calls.log, mode, runs) == Set{"256 a", "256 b"}));
  const Set torn = seen(calls.log, Mode::torn, runs);
  BOOST_TEST(torn.count("16 b, 240 a") == 1u);
  BOOST_TEST(torn.count("240 a, 16 b") == 1u);
}

BOOST_AUTO_TEST_CASE(pages_and_sectors_reach_the_disk_each_by_itself) {
  Calls calls(std::string(8192, 'a'));
  calls.write(1, 0, std::string(8192, 'b'));
  for (const Mode mode : kModes) {
    const Set all = seen(calls.log, mode, runs);
    for (const char* wanted :
         {"8192 a", "8192 b", "4096 a, 4096 b", "4096 b, 4096 a", "512 b, 7680 a"})
      BOOST_TEST(all.count(wanted) == 1u, mode_name(mode) << ": " << wanted);
  }
}

BOOST_AUTO_TEST_CASE(a_sector_that_has_a_later_write_has_the_earlier_one_too) {
  Calls calls("aaaa");
  calls.write(1, 0, "b");
  calls.write(1, 3, "c");
  BOOST_TEST((seen(calls.log, Mode::bare, runs) == Set{"4 a", "1 b, 3 a", "1 b, 2 a, 1 c"}));
}

BOOST_AUTO_TEST_CASE(an_ordered_file_grows_over_bytes_that_are_there) {
  Calls calls("");
  calls.write(1, 0, std::string(8192, 'b'));
  const Set ordered = seen(calls.log, Mode::ordered, runs);
  for (const std::string& text : ordered) BOOST_TEST((text.empty() || text.back() == 'b'), text);
  BOOST_TEST(ordered.count("4096 0, 4096 b") == 1u);
  BOOST_TEST(ordered.count("8192 0") == 0u);
  BOOST_TEST(seen(calls.log, Mode::writeback, runs).count("8192 0") == 1u);
}

BOOST_AUTO_TEST_CASE(names_keep_the_order_of_a_journal) {
  Calls calls("");
  calls.link(1, "g");
  calls.link(1, "h");
  for (const Mode mode : {Mode::ordered, Mode::writeback})
    BOOST_TEST((seen(calls.log, mode, names_of) == Set{"f", "fg", "fgh"}));
  BOOST_TEST((seen(calls.log, Mode::bare, names_of) == Set{"f", "fg", "fgh", "fh"}));
}

BOOST_AUTO_TEST_CASE(a_rename_is_two_changes_without_a_journal) {
  Calls calls("old");
  const std::size_t file = calls.file();
  calls.link(file, "t");
  calls.sync(0);
  calls.rename(file, "t", "f");
  BOOST_TEST((seen(calls.log, Mode::ordered, names_of) == Set{"f", "ft"}));
  const auto both = [](const Tree& tree) {
    return names_of(tree) + (bytes_of(tree, "f") == "old" ? " old" : " new");
  };
  BOOST_TEST((seen(calls.log, Mode::ordered, both) == Set{"f new", "ft old"}));
  BOOST_TEST((seen(calls.log, Mode::bare, both) == Set{"f new", "f old", "ft new", "ft old"}));
}

BOOST_AUTO_TEST_CASE(a_sync_of_a_file_is_none_of_its_name_without_a_journal) {
  Calls calls("");
  const std::size_t file = calls.file();
  calls.link(file, "g");
  calls.write(file, 0, "b");
  calls.sync(file);
  const auto look = [](const Tree& tree) { return bytes_of(tree, "g"); };
  BOOST_TEST((seen(calls.log, Mode::bare, look) == Set{"b", "none"}));
  BOOST_TEST((seen(calls.log, Mode::ordered, look) == Set{"b"}));
}

BOOST_AUTO_TEST_CASE(a_sync_covers_what_had_ended_or_what_it_is_linked_behind) {
  for (const bool linked : {false, true}) {
    Calls calls("a");
    const std::size_t write = calls.write(1, 0, "b");
    const std::size_t sync = calls.sync(1);
    calls.log.calls[write].end = calls.log.places++;
    calls.log.calls[sync].end = calls.log.places++;
    if (linked) calls.log.calls[sync].behind = write;
    BOOST_TEST((seen(calls.log, Mode::bare, runs) == (linked ? Set{"1 b"} : Set{"1 a", "1 b"})));
  }
}

BOOST_AUTO_TEST_CASE(what_follows_a_truncation_that_is_lost_is_lost) {
  Calls calls("aaaa");
  calls.add({.kind = Kind::truncate, .node = 1, .length = 0});
  calls.write(1, 0, "bb");
  BOOST_TEST((seen(calls.log, Mode::ordered, runs) == Set{"", "2 b", "4 a"}));
}

BOOST_AUTO_TEST_SUITE_END()
