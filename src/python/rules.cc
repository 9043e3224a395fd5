// What the library's rules say of names, types and shapes, for what Python puts together; how names
// are shown; and the hold on a folder that one writer at a time changes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/suggestion.h"
#include "container/wrap/unwrap.h"
#include "formats/safetensors/place.h"
#include "formats/source/dtype_names.h"
#include "io/folder/lock.h"
#include "io/folder/replaced_folder.h"
#include "python/bindings.h"
#include "python/calls.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "state/brain/axes.h"
#include "state/brain/region_shapes.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"
#include "thalia/options.h"
#include "thalia/tensor.h"
#include "thalia/text.h"
#include "thalia/types.h"
#include "thalia/version.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

std::optional<std::string> format_of(const std::filesystem::path& path) {
  if (const auto format = detect_format(path)) return std::string(file_format_name(*format));
  return std::nullopt;
}

// None where the path names no folder, as most do.
std::optional<Path> model_in(const Path& path) {
  Path found = find_model(path);
  if (found.native() == path.native()) return std::nullopt;
  return found;
}

void set_limit(std::optional<std::int64_t> bytes) {
  if (bytes && *bytes < 1) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "bytes", .value = std::to_string(*bytes), .bound = "1 or more"});
  }
  set_default_allocation_limit(static_cast<std::uint64_t>(bytes.value_or(0)));
}

std::optional<std::string> frames_of_name(const std::filesystem::path& name) {
  if (const auto codec = container::wrapper_codec(name)) return std::string(codec_name(*codec));
  return std::nullopt;
}

// Whether a region of so many neurons may have tensors of these shapes, by their paths with dots.
bool shapes_fit(std::uint64_t n_neurons,
                const std::map<std::string, std::vector<std::uint64_t>>& shapes) {
  try {
    state::ShapesByPath by_path;
    for (const auto& [path, extents] : shapes)
      by_path.emplace(path, Shape(std::span<const std::uint64_t>(extents)));
    state::check_shapes({}, n_neurons, by_path);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// Kind, name, and neurons that one index stands for.
std::tuple<std::string_view, std::string, std::uint64_t> parsed_axis(const std::string& text) {
  constexpr std::array<std::string_view, 4> kKinds{"other", "neurons", "population", "source"};
  const state::AxisName axis = state::parse_axis(text);
  return {kKinds[static_cast<std::size_t>(axis.kind)], std::string(axis.name),
          axis.neurons_per_element};
}

void write_text(const Path& path, const std::string& text) {
  interruptible([&](const std::stop_token& stop) {
    OutputFile file(path, {.link = OutputLink::replaced}, stop);
    file.write(as_byte_span(text));
    file.commit();
  });
}

// describe(dtype) by the names of all dtypes; without those that it has nothing for.
template <typename Describe>
nb::dict by_dtype(const Describe& describe) {
  nb::dict out;
  for (unsigned i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (const nb::object reported = describe(dtype); !reported.is_none())
      out[text_object(dtype_name(dtype))] = reported;
  }
  return out;
}

nb::typed<nb::dict, std::string, std::uint64_t> bits_of_dtypes() {
  return by_dtype([](DType dtype) -> nb::object { return nb::int_(dtype_bits(dtype)); });
}

nb::typed<nb::dict, std::string, std::string> safetensors_dtypes() {
  return by_dtype([](DType dtype) -> nb::object {
    const std::string_view name = formats::safetensors_dtype_name(dtype);
    return name.empty() ? nb::none() : text_object(name);
  });
}

bool is_model_index(const std::string& name) {
  using namespace formats::safetensors;
  return std::ranges::any_of(kShardKinds,
                             [&](ShardKind kind) { return index_prefix(name, kind).has_value(); });
}

bool is_model_shard(const std::string& name) {
  using namespace formats::safetensors;
  return std::ranges::any_of(kShardKinds,
                             [&](ShardKind kind) { return is_shard_name(name, kind); });
}

// Held from its making to the end of a `with`.
struct HeldFolder {
  std::unique_ptr<io::HeldFolder> folder;

  static HeldFolder hold(const Path& path, const Members& options) {
    const Durability durability = save_options(options).output.durability;
    return {interruptible([&](const std::stop_token& stop) {
      return std::make_unique<io::HeldFolder>(path, durability, stop);
    })};
  }
  void let_go(bool keep) {
    const Unlocked unlocked;
    if (folder && keep) folder->keep();
    folder.reset();
  }
};

io::FolderContent content_of(nb::callable is_own, std::string whole, std::string failed) {
  return {.is_own =
              [held = held_object(std::move(is_own))](const std::string& name) {
                bool own = false;
                with_gil([&] { own = nb::cast<bool>((*held)(text_object(name))); });
                return own;
              },
          .whole = std::move(whole),
          .failed = std::move(failed)};
}

void bind_folders(nb::module_& module) {
  nb::class_<io::FolderUse>(module, "FolderUse",
                            "Tells other processes that a folder is in use, until it is gone.")
      // Another process makes its own.
      .def(
          "__reduce__",
          [](const io::FolderUse&) {
            return nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(Py_None))),
                                  nb::tuple());
          },
          nb::sig("def __reduce__(self) -> tuple[type[None], tuple[()]]"));
  nb::class_<io::FolderContent>(module, "FolderContent", "What a folder of saves holds.")
      .def(
          "__init__",
          [](io::FolderContent* content, nb::callable is_own, std::string whole,
             std::string failed) {
            new (content) io::FolderContent(
                content_of(std::move(is_own), std::move(whole), std::move(failed)));
          },
          nb::sig("def __init__(self, is_own: collections.abc.Callable[[str], bool], whole: str, "
                  "failed: str, /) -> None"));
  module.def("saving_folder", io::saving_folder);
  module.def("readable_folder", io::readable_folder);
  module.def(
      "begin_folder",
      [](const Path& folder, bool replace,
         const io::FolderContent& content) -> std::shared_ptr<io::FolderUse> {
        const Unlocked unlocked;
        return io::begin_folder(folder, replace, content);
      },
      nb::sig("def begin_folder(folder: str | os.PathLike, replace: bool, content: FolderContent, "
              "/) -> FolderUse | None"));
  module.def("give_up_folder", [](const Path& folder, const io::FolderContent& content) {
    io::give_up_folder(folder, content);
  });
  module.def("publish_folder",
             [](const Path& folder, bool durable, const io::FolderContent& content) {
               const Unlocked unlocked;
               io::publish_folder(folder, durable ? Durability::full : Durability::none, content);
             });
  module.def("publish_file", [](const Path& folder, const std::string& from, const std::string& to,
                                const std::vector<std::string>& gone) {
    const Unlocked unlocked;
    io::publish_file(io::Folder(folder), from, to, gone);
  });
  module.def("clear_folder", [](const Path& folder, const io::FolderContent& content,
                                const std::set<std::string>& stays) {
    const Unlocked unlocked;
    io::clear_folder(folder, content,
                     [&](const std::string& name) { return stays.contains(name); });
  });
}

}  // namespace

void bind_rules(nb::module_& module) {
  module.attr("__version__") = library_version();
  module.def("region_for_name",
             [](const std::string& name) { return region_for_name(name, RegionGrouping{}); });
  module.def("role_of_name", [](const std::string& name, unsigned rank) {
    return role_name(role_of_name(name, rank));
  });
  module.def("detect_format", format_of);
  module.def("model_in", model_in);
  module.def("is_model_index", is_model_index);
  module.def("is_model_shard", is_model_shard);
  module.def("set_default_allocation_limit", set_limit, nb::arg().none(),
             "What one call may allocate, in bytes, for what a file says that it holds; None: what "
             "fits the file and the machine (docs/contribute/security.md, Limits). The limit holds "
             "for all threads of this process from now on. Raises UsageError for 0 and less.");
  module.def("suggestion", [](const std::string& mistyped, const std::vector<std::string>& names) {
    return suggestion_among(mistyped, names);
  });
  module.def("printable",
             [](const std::string& text) { return printable(text, std::string_view::npos); });
  module.def("human_bytes", human_bytes);
  nb::class_<HeldFolder>(module, "HeldFolder",
                         "A folder that nobody else writes a model into meanwhile. One that was "
                         "missing goes again where the block ends with an exception.")
      .def_static("hold", HeldFolder::hold, nb::arg("path"), nb::arg("options"))
      .def("__enter__", [](HeldFolder&) {})
      .def(
          "__exit__",
          [](HeldFolder& held, const nb::args& error) { held.let_go(error[0].is_none()); },
          nb::sig("def __exit__(self, *error: object) -> None"));
  bind_folders(module);
  module.def("frames_of_name", frames_of_name, nb::arg("name"));
  module.def("parse_axis", parsed_axis, nb::arg("text"));
  module.def("write_text", write_text, nb::arg("path"), nb::arg("text"),
             "In place of what is there, a link itself too, at once and durably. Raises IoError.");
  module.def("shapes_fit", shapes_fit, nb::arg("n_neurons"), nb::arg("shapes"));
  module.def("bits_of_dtypes", bits_of_dtypes);
  module.def("safetensors_dtypes", safetensors_dtypes);
}

}  // namespace thalia::python
