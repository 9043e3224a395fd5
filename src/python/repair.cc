// Files that are damaged, or carry what appends left behind.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/append.h"
#include "thalia/recover.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

RecoverResult run_recover(const Path& path, bool wait, const std::string& access,
                          unsigned threads) {
  RecoverOptions options{
      .input = {.access = access_of(access)}, .wait = wait, .work = {.threads = threads}};
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return recover(path, options);
  });
}

SalvageResult run_salvage(const Path& path, const Path& target, const Path& side_file,
                          const std::string& access, const Members& save) {
  SalvageOptions options{
      .save = save_options(save), .input = {.access = access_of(access)}, .side_file = side_file};
  return interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    return salvage(path, target, options);
  });
}

CompactResult run_compact(const Path& path, const Path& target, bool wait,
                          const std::string& access, const Members& save) {
  const SaveOptions saved = save_options(save);
  ChangeOptions options{.output = saved.output,
                        .wait = wait,
                        .input = {.access = access_of(access)},
                        .work = saved.work};
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return compact(path, target, options);
  });
}

void bind_repair_results(nb::module_& module) {
  constexpr const char* kIdentity = "The file's identity, in hexadecimal.";
  bind_result<RecoverResult>(
      module, "RecoverResult", "What recover() found and did.",
      field("restored", &RecoverResult::restored,
            "A copy of the header was written over it; False if it holds, and nothing was "
            "changed."),
      field("fault", &RecoverResult::fault, "What was wrong with the header; empty if it holds."),
      field("record_offset", &RecoverResult::record_offset,
            "The place of the copy that was taken, in bytes from the start of the file."),
      field("records", &RecoverResult::records,
            "Copies that hold as a header, of all generations."),
      field("damaged_blocks", &RecoverResult::damaged_blocks,
            "Damaged blocks of the state that was restored; verify() says what is in them."),
      field("generation", &RecoverResult::generation,
            "The generation of the file now: 1 after a save, one more with each append."),
      field("file_bytes", &RecoverResult::file_bytes, "The size of the file now."),
      field("debris_bytes", &RecoverResult::debris_bytes,
            "Bytes after `file_bytes`; readers ignore them."),
      field("closing_checksum", &RecoverResult::closing_checksum, kIdentity));
  bind_result<LostTensor>(
      module, "LostTensor", "A tensor whose bytes are not those that were written.",
      field("name", &LostTensor::name,
            "REGION/NAME, SOURCE->TARGET.weights; a number where names are lost."),
      field("bytes", &LostTensor::bytes, "Bytes of its elements; 0 if that is not known."),
      field("reason", &LostTensor::reason));
  bind_result<SalvageResult>(
      module, "SalvageResult", "What salvage() got out of a file.",
      field("tables", &SalvageResult::tables, "Where names and places of tensors were taken from."),
      field("fault", &SalvageResult::fault,
            "What was wrong with the file's own header and tables; empty if they hold."),
      field("tables_verified", &SalvageResult::tables_verified,
            "Names hold by the file's checksums; else they are well formed, and no more is known."),
      field("generation", &SalvageResult::generation,
            "The generation of the state that was saved."),
      field("input_bytes", &SalvageResult::input_bytes),
      field("output_bytes", &SalvageResult::output_bytes),
      field("regions", &SalvageResult::regions), field("tensors", &SalvageResult::tensors),
      field("lost", &SalvageResult::lost),
      field("lost_texts", &SalvageResult::lost_texts, "Metadata, and texts of regions."),
      field("seconds", &SalvageResult::seconds))
      .def_prop_ro("whole", &SalvageResult::whole, "Nothing is lost.");
  bind_result<CompactResult>(module, "CompactResult", "What compact() wrote.",
                             field("input_bytes", &CompactResult::input_bytes),
                             field("output_bytes", &CompactResult::output_bytes),
                             field("regions", &CompactResult::regions),
                             field("tensors", &CompactResult::tensors),
                             field("closing_checksum", &CompactResult::closing_checksum, kIdentity),
                             field("seconds", &CompactResult::seconds));
}

}  // namespace

void bind_repair(nb::module_& module) {
  bind_repair_results(module);
  module.def("recover", run_recover, nb::arg("path"), nb::arg("wait"), nb::arg("access"),
             nb::arg("threads"));
  module.def("salvage", run_salvage, nb::arg("path"), nb::arg("target"), nb::arg("side_file"),
             nb::arg("access"), nb::arg("save"));
  module.def("compact", run_compact, nb::arg("path"), nb::arg("target"), nb::arg("wait"),
             nb::arg("access"), nb::arg("save"));
}

}  // namespace thalia::python
