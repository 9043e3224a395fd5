// Files that are damaged, or carry what appends left behind.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "thalia/append.h"
#include "thalia/recover.h"
#include "thalia/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

Members run_recover(const Path& path, bool wait, const std::string& access, unsigned threads) {
  RecoverOptions options{
      .input = {.access = access_of(access)}, .wait = wait, .work = {.threads = threads}};
  const RecoverResult result = interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return recover(path, options);
  });
  nb::dict out;
  out["restored"] = result.restored;
  out["fault"] = text_object(result.fault);
  out["record_offset"] = result.record_offset;
  out["records"] = result.records;
  out["damaged_blocks"] = result.damaged_blocks;
  out["generation"] = result.generation;
  out["file_bytes"] = result.file_bytes;
  out["debris_bytes"] = result.debris_bytes;
  out["closing_checksum"] = hex(result.closing_checksum.bytes);
  return out;
}

Members run_salvage(const Path& path, const Path& target, const Path& side_file,
                    const std::string& access, const Members& save) {
  SalvageOptions options{
      .save = save_options(save), .input = {.access = access_of(access)}, .side_file = side_file};
  const SalvageResult result = interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    return salvage(path, target, options);
  });
  nb::list lost;
  for (const LostTensor& tensor : result.lost) {
    nb::dict one;
    one["name"] = text_object(tensor.name);
    one["bytes"] = tensor.bytes;
    one["reason"] = text_object(tensor.reason);
    lost.append(one);
  }
  nb::dict out = rewritten_dict(result);
  out["source"] = salvage_source_name(result.source);
  out["fault"] = text_object(result.fault);
  out["tables_verified"] = result.tables_verified;
  out["generation"] = result.generation;
  out["lost"] = lost;
  out["lost_texts"] = text_list(result.lost_texts);
  return out;
}

Members run_compact(const Path& path, const Path& target, bool wait, const std::string& access,
                    const Members& save) {
  const SaveOptions saved = save_options(save);
  ChangeOptions options{.output = saved.output,
                        .wait = wait,
                        .input = {.access = access_of(access)},
                        .work = saved.work};
  const CompactResult result = interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return compact(path, target, options);
  });
  nb::dict out = rewritten_dict(result);
  out["closing_checksum"] = hex(result.closing_checksum.bytes);
  return out;
}

}  // namespace

void bind_repair(nb::module_& module) {
  module.def("recover", run_recover, nb::arg("path"), nb::arg("wait"), nb::arg("access"),
             nb::arg("threads"));
  module.def("salvage", run_salvage, nb::arg("path"), nb::arg("target"), nb::arg("side_file"),
             nb::arg("access"), nb::arg("save"));
  module.def("compact", run_compact, nb::arg("path"), nb::arg("target"), nb::arg("wait"),
             nb::arg("access"), nb::arg("save"));
}

}  // namespace thalia::python
