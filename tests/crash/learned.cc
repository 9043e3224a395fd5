#include "crash/learned.h"

#include <algorithm>
#include <utility>

#include "crash/child.h"
#include "support/files.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace {

// Notes what is found where something is promised: a file for each name, in a folder.
class Learner : public Teller {
 public:
  Learner(const Operation& operation, fs::path folder, fs::path notes)
      : operation_(operation), folder_(std::move(folder)), notes_(std::move(notes)) {}
  void attempt(std::string_view) override {}
  void promise(std::string_view name) override { learn(name); }
  void finish(std::string_view name) override { learn(name); }

 private:
  void learn(std::string_view name) {
    test::write_file(notes_ / "names" / name, operation_.observe(folder_));
    test::write_file(notes_ / "last", name);
  }

  const Operation& operation_;
  fs::path folder_;
  fs::path notes_;
};

}  // namespace

std::string Learned::name_of(const std::string& observed,
                             const std::vector<std::string>& first) const {
  for (const std::string& name : first)
    if (const auto found = contents.find(name);
        found != contents.end() && found->second == observed)
      return name;
  for (const auto& [name, content] : contents)
    if (content == observed) return name;
  return "";
}

std::string Learned::fault_of(const Operation& operation, const std::string& observed,
                              const std::vector<std::string>& allowed) const {
  std::vector<std::string> descriptions;
  for (const std::string& name : allowed) descriptions.push_back(contents.at(name));
  return operation.fault(observed, descriptions);
}

Learned learn(const Operation& operation) {
  const test::TemporaryFolder place;
  const fs::path names = place / "notes" / "names";
  fs::create_directories(names);
  fs::create_directory(place / "prepared");
  operation.prepare(place / "prepared");
  Learned learned{read_tree(place / "prepared"), {}, {}};
  write_tree(learned.before, place / "observed");
  learned.contents[kBefore] = operation.observe(place / "observed");
  // In a child, since an operation may change its process.
  check_ended(operation, in_child([&] {
                Learner learner(operation, place / "prepared", place / "notes");
                operation.run(place / "prepared", learner);
              }));
  for (const std::string& name : test::list_folder(names))
    learned.contents[name] = test::read_file(names / name);
  learned.last = test::read_file(place / "notes" / "last");
  return learned;
}

std::vector<std::string> allowed_at(const CallLog& log, std::size_t place) {
  std::vector<std::string> allowed{kBefore};
  for (const Call& call : log.calls) {
    if (call.begin >= place) break;
    if (call.kind == Kind::promise)
      allowed.erase(allowed.begin(), std::find(allowed.begin(), allowed.end(), call.name));
    if (call.kind == Kind::attempt) allowed.push_back(call.name);
  }
  return allowed;
}

}  // namespace thalia::crash
