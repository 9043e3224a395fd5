// thalia __complete KIND FILE PREFIX: what the completion of shells offers of a file. Not in the
// table of commands, as nobody types it. It answers while somebody waits with a finger on a key: it
// reads tables and no payloads, verifies nothing, and says nothing of what goes wrong.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/tensor_table.h"
#include "cli/terminal/escape.h"
#include "inspect/file_tensors.h"
#include "thalia/files.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/delta.h"
#include "thalia/store/run.h"

namespace thalia::cli {
namespace {

constexpr std::uint64_t kMostBytesToParse = 64 << 20;

// One that begins with a dash would be taken for an option: who means it writes -- before it.
void offer(const std::string& name, std::string_view begun, Output& out,
           const std::string& in_front = {}) {
  if (!name.starts_with(begun) || (in_front + name).starts_with('-')) return;
  out.write(in_front + name + "\n");
}

// Names as the program shows them, so that one is a line, and every command takes it.
void offer_tensors(const AnyFile& file, std::string_view begun, Output& out) {
  inspect::Selection everything("", {});
  inspect::visit_tensors(file, everything, [&](const inspect::ShownTensor& tensor) {
    offer(shown_name(tensor.names().region, tensor.names().name), begun, out);
  });
}

std::string region_in_list(std::string_view name) {
  std::string text;
  for (const char c : escape_name(name)) {
    if (c == ',') {
      text += "\\x2c";
    } else {
      text += c;
    }
  }
  return text;
}

// In a list, what follows its last comma is completed; names before it are not offered again.
void offer_regions(const AnyFile& file, std::string_view begun, bool as_list, Output& out) {
  const std::size_t comma = as_list ? begun.rfind(',') : std::string_view::npos;
  const std::string_view named = begun.substr(0, comma + 1);
  begun.remove_prefix(named.size());
  for (std::size_t i = 0; i < file.region_count(); ++i) {
    const std::string_view region = file.region_name(i);
    const std::string name = as_list ? region_in_list(region) : escape_name(region);
    const bool is_named =
        ("," + std::string(named)).find("," + name + ",") != std::string_view::npos;
    if (!is_named) offer(name, begun, out, std::string(named));
  }
}

// Offers the names of a run, which is a folder.
bool offer_names_of_run(std::string_view kind, const std::string& folder, std::string_view begun,
                        Output& out) {
  if (kind != "phase" && kind != "gate") return false;
  const auto offer_names = [&](const auto& named) {
    for (const auto& one : named) offer(one.name, begun, out);
  };
  const auto run = thalia::Run::open(folder);
  kind == "phase" ? offer_names(run.config().phases) : offer_names(run.gates());
  return true;
}

}  // namespace

int complete_names(const std::vector<std::string>& words, const Session& session) {
  if (words.size() != 3) return kWrongUsage;
  const std::string &kind = words[0], &named = words[1], &begun = words[2];
  try {
    if (offer_names_of_run(kind, named, begun, session.out)) return kDone;
    const std::string path = find_model(named).string();
    auto options = session.options<ChainOptions>();
    options.read.verification = Verification::off;
    options.read.input.legacy = true;
    const FileFormat format = input_format(path, options.read.input.access);
    // Its names are known only once all of it is read.
    if (format == FileFormat::thalia_0_1 && file_bytes(path) > kMostBytesToParse) return kDone;
    const AnyFile file = inspect::open_stored(path, options);
    if (kind == "tensor") {
      offer_tensors(file, begun, session.out);
    } else {
      offer_regions(file, begun, kind == "regions", session.out);
    }
  } catch (const std::exception&) {
    // A name that is mistyped, a file that is no checkpoint: there is nothing to offer.
  }
  return kDone;
}

}  // namespace thalia::cli
