"""The shape of the source tree as rules over its #include lines and file lengths.

docs/contribute/architecture.md draws the picture that LAYERS and the other tables hold. A new layer, public
header or library is added here first.
"""

import configparser
import re

# A layer may include itself and the layers named. io, codec, integrity and json are siblings.
_FOUNDATION = {"base", "format"}
_SIBLINGS = {"io", "codec", "integrity", "json"}
LAYERS = {
    "base": set(),
    "format": {"base"},
    "io": _FOUNDATION,
    "codec": _FOUNDATION,
    "integrity": _FOUNDATION,
    "json": _FOUNDATION,
    "container": _FOUNDATION | _SIBLINGS,
    "state": _FOUNDATION | _SIBLINGS | {"container"},
    "formats": _FOUNDATION | _SIBLINGS | {"container", "state"},
    "checkpoint": _FOUNDATION | _SIBLINGS | {"container", "state", "formats"},
    "convert": _FOUNDATION | _SIBLINGS | {"container", "state", "formats", "checkpoint"},
    "store": _FOUNDATION | _SIBLINGS | {"container", "state", "formats", "checkpoint", "convert"},
    "c": _FOUNDATION | {"container", "store"},
}

# Where a public header belongs: a layer, or a room of one (tests/structure/rooms.py).
PUBLIC_PLACES = {
    "append.h": "container/append",
    "async_save.h": "container/background",
    "c.h": "c",
    "compress.h": "container/wrap",
    "error.h": "base",
    "formats.h": "convert",
    "options.h": "format",
    "files.h": "io",
    "reader.h": "container/read",
    "recover.h": "container/file",
    "region.h": "container/read",
    "result.h": "base",
    "side_file.h": "container/file",
    "state.h": "convert",
    "storage.h": "io",
    "store.h": "store",
    "stream.h": "container/stream",
    "tensor.h": "container/read",
    "text.h": "base",
    "thalia.h": "convert",
    "types.h": "base",
    "verify.h": "container/verify",
    "version.h": "format",
    "writer.h": "container/write",
    "c/codes.h": "c",
    "c/follow.h": "c",
    "c/reader.h": "c",
    "c/run.h": "c",
    "c/writer.h": "c",
    "detail/held.h": "base",
    "detail/once.h": "io/system",
    "formats/any_file.h": "convert",
    "formats/compressor.h": "formats/mckp",
    "formats/convert.h": "convert",
    "formats/file_facts.h": "formats/source",
    "formats/gguf.h": "formats/gguf",
    "formats/gptrs.h": "formats/gptrs",
    "formats/loom.h": "formats/loom",
    "formats/loom_network.h": "formats/loom",
    "formats/lora_adapter.h": "formats/weight_sync",
    "formats/mckp.h": "formats/mckp",
    "formats/mithril.h": "formats",
    "formats/npz.h": "formats/npz",
    "formats/onnx.h": "formats/onnx",
    "formats/param_source.h": "formats/params",
    "formats/pt.h": "formats/pt",
    "formats/safetensors.h": "formats/safetensors",
    "formats/v01.h": "formats/v01",
    "formats/weight_delta.h": "formats/weight_sync",
    "state/brain.h": "state/brain",
    "state/checkpoint.h": "checkpoint",
    "state/delta.h": "state/delta",
    "state/low_rank.h": "state/low_rank",
    "state/diff.h": "state/diff",
    "state/edit.h": "state/brain",
    "state/growth.h": "state/growth",
    "state/metadata.h": "state/brain",
    "state/precision.h": "state/precision",
    "state/quantization.h": "state/quantize",
    "state/tensor_value.h": "state/tensor",
    "state/value.h": "state/value",
    "store/config.h": "store/run",
    "store/repair.h": "store/pool",
    "store/follow.h": "store/follow",
    "store/retention.h": "store/run",
    "store/pool.h": "store/pool",
    "store/publish.h": "store/save",
    "store/run.h": "store/run",
    "store/transition.h": "store/pool",
    "store/writer.h": "store/save",
}

# Folders that see the public headers and their own files only, beside what is lent to them. What the
# program and bench/ measure with, src/measure, is open to both; what the program and the Python module
# tell of files, src/inspect, to these two.
USERS_OF_THE_LIBRARY = ("src/cli", "src/inspect", "src/measure", "src/python", "examples")
SEEN_BY_USERS = {
    "src/cli": {"cli", "inspect", "measure"},
    "src/inspect": {"inspect"},
    "src/measure": {"measure"},
    "src/python": {"inspect", "python"},
    "examples": set(),
}
LENT = {
    "src/cli": (
        "base/dtype_facts.h",
        "base/stopwatch.h",
        "base/suggestion.h",
        "formats/source/npy_header.h",
        "io/memory/allocation_limit.h",
        "json/copy.h",
        "json/reader.h",
        "json/writer.h",
        "state/precision/glob.h",
        "state/tensor/slice.h",
    ),
    "src/inspect": (
        "base/fail.h",
        "json/writer.h",
        "state/precision/glob.h",
        "state/tensor/slice.h",
        "state/tensor/sparse_entries.h",
    ),
    "src/measure": ("base/parallel.h",),
    "src/python": (
        "base/busy.h",
        "base/hex.h",
        "base/inside.h",
        "base/stop_question.h",
        "base/suggestion.h",
        "checkpoint/validate.h",
        "container/file/short_name.h",
        "container/plan/check_options.h",
        "container/wrap/unwrap.h",
        "convert/formats.h",
        "formats/loom/spec_fields.h",
        "formats/safetensors/place.h",
        "formats/source/dtype_names.h",
        "io/folder/lock.h",
        "io/folder/replaced_folder.h",
        "io/memory/allocation_limit.h",
        "io/system/process.h",
        "state/brain/axes.h",
        "state/brain/region_shapes.h",
    ),
}
EXAMPLE_FOLDERS = ("spiking", "demo")

# Where a library's headers may appear: the beginnings of paths. No other library is known.
THIRD_PARTY = {
    r"fmt/": ("src/", "tests/crash/"),
    r"CLI/": ("src/cli/",),
    r"nanobind/": ("src/python/",),
    r"simdjson\.h$": ("src/json/",),
    r"zstd(_errors)?\.h$": ("src/codec/frame/zstd_",),
    r"lz4(hc|frame)?\.h$": ("src/codec/frame/lz4_",),
    r"(xx(hash|h3)|xxh_x86dispatch)\.h$": ("src/integrity/content_hash.", "src/integrity/xxh64."),
    r"zlib\.h$": ("src/formats/zip/deflate.",),
    r"openssl/": ("src/integrity/sha1.", "src/integrity/sha256."),
    r"isa-l/": ("src/integrity/crc32.",),
    r"liburing": ("src/io/direct/uring", "tests/support/ring_fault.", "tests/crash/"),
    r"emmintrin\.h$": ("src/base/stream_copy.",),
    r"immintrin\.h$": ("src/codec/float/", "src/codec/cpu/intrinsics."),
    r"cpuid\.h$": ("src/codec/cpu/processor.",),
    r"google/protobuf/": ("src/formats/onnx/",),
    r"Eigen/": ("src/state/low_rank/truncated_svd.",),
    r"toml\+\+/": ("src/store/run/toml.",),
    r"boost/": ("tests/",),
    r"benchmark/": ("bench/",),
    # C's own; C++ has these names from its own headers.
    r"std(def|int)\.h$": ("include/thalia/c/", "tests/c/", "tests/install/"),
    r"(stdio|string)\.h$": ("tests/c/", "tests/install/"),
}

# The operating system's headers: the library asks it for things in io alone.
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|asm)/\w+\.h"
    r"|(dirent|dlfcn|errno|fcntl|malloc|poll|pthread|sched|signal|spawn|stdlib|termios|unistd)\.h"
)
OPERATING_SYSTEM_PLACES = ("src/io/", "src/cli/", "src/measure/", "examples/", "tests/", "bench/")

# What one place does for all: (pattern, beginnings of the paths that may, what others do instead).
CALLS = (
    (
        r"\bTensor::from\((?:[^(),]|\((?:[^()]|\([^()]*\))*\))+\)",
        ("include/",),
        "what a file's tensor allocates has the caller's limits: Tensor::from(view, limits)",
    ),
    (
        r"\b(?:detect|input)_format\((?:[^(),]|\([^()]*\))+\)",
        ("include/", "src/python/rules.cc"),
        "who reads a file says whether it may be mapped: pass the access",
    ),
    (
        r"(?:FileBytes::open|open_descriptor)\([^;]*\bAccess::mapped\b",
        (),
        "who reads a file says whether it may be mapped: the access comes from the options",
    ),
    (
        r"(?:std::filesystem|\bfs)::(?!path\b)\w+",
        ("src/io/", "src/measure/"),
        "thalia/files.h asks the file system, and its errors are IoErrors",
    ),
    (
        r"\b(?:fs|filesystem)::canonical\(",
        ("src/io/path/real_path.cc",),
        "io/path/real_path.h tells a path that is not there from memory that is out",
    ),
    (
        r"thalia-tmp|\.tmp\b|mkstemp|tmpfile|tempnam",
        ("src/io/output/temporary_file.", "src/io/output/atomic_file.h"),
        "io/output/temporary_file.h makes temporary names",
    ),
    (
        r"\bO_CREAT\b|std::ofstream|\bfopen\(|::rename(?:at2?)?\(|std::rename",
        ("src/io/", "src/measure/"),
        "thalia/files.h writes files",
    ),
    (
        r"& \w+ =\s+\*std::make_(?:shared|unique)",
        (),
        "what is made there is gone at the end of the line: keep the pointer",
    ),
    (
        r"gil_scoped_\w+|PyGILState_\w+|PyEval_(?:Save|Restore)Thread",
        ("src/python/gil.",),
        "python/gil.h lets go of the GIL and takes it, also while the process ends",
    ),
    (
        r"hardware_concurrency",
        ("src/base/parallel.", "src/cli/command/bench."),
        "resolve_threads() says how many threads there are",
    ),
    (
        r"std::(?:call_once|once_flag)\b",
        ("src/io/system/process.h",),
        "io/system/process.h does work once, also where it throws",
    ),
    (
        r"\{:02x\}|0123456789abcdef",
        ("src/base/utf8.cc", "src/json/writer.cc"),
        "thalia/text.h writes hexadecimal digits",
    ),
    (
        r"duration<double>",
        (
            "src/base/stopwatch.h",
            "src/cli/command/bench.",
            "src/cli/print/progress.",
        ),
        "base/stopwatch.h tells how long something took",
    ),
    (
        r"\bwide_indices = [\w.>-]*\bwide_indices(?:\(\))?[,;}]",
        ("include/thalia/tensor.h",),
        "a TensorLayout is copied whole",
    ),
    (
        r"Encoding::csr (?:\|\||&&) .*[!=]= Encoding::coo",
        ("include/thalia/types.h",),
        "is_sparse() tells of an encoding",
    ),
    (
        r"\badd_path\(.*\);\n\s+throw;",
        ("src/base/fail.h", "src/cli/", "src/state/delta/file_chain.cc"),
        "with_path() names the file in errors that name none",
    ),
    (
        r"UsageError\(ErrorCode::exists",
        ("src/io/output/atomic_file.cc", "src/io/folder/atomic_folder.cc"),
        "io/output/atomic_file.h refuses a file that is there, and io/folder/atomic_folder.h a folder",
    ),
    (
        r"std::(?:shared|unique)_ptr<[^;()]*> \w+_;",
        ("src/", "include/thalia/detail/", "include/thalia/state/brain.h", "include/thalia/state/tensor_value.h"),
        "thalia/detail/held.h: what was moved from must not be followed",
    ),
    (
        r"\bstd::(?:array<std::)?(?:timed_|shared_|recursive_)*mutex(?:, \w+>)? \w+(?:;|\{)",
        (
            "src/io/system/process.",
            # Of one call, whose threads are its own:
            "src/base/ordered_pool.h",
            "src/base/parallel.cc",
            "src/container/verify/",
            "src/container/write/progress.h",
            "src/formats/mckp/job.h",
            "src/formats/params/param_source.cc",
            "src/io/direct/direct_reader.h",
            "src/state/delta/change_list.cc",
            "src/state/diff/diff.cc",
            "src/state/tensor/",
            # Taken where OwnProcess has been asked before:
            "src/container/background/state.h",
            "src/container/stream/",
            "src/store/save/impl.h",
            "src/store/save/publish_outcome.h",
            # Held over forks:
            "src/container/background/exit_guard.cc",
            "src/io/file/copied_file.cc",
            "src/io/folder/lock.cc",
            "src/python/gil.cc",
            # Only tried:
            "src/io/file/read_ahead.h",
            # Forks nothing meanwhile:
            "src/cli/store/watch.cc",
        ),
        "a forked child may find it locked for good: io/system/process.h has locks that it never waits for",
    ),
)

# The same of one folder: (its beginning, pattern, beginnings of the paths that may, what others do instead).
CALLS_IN = (
    (
        "src/store/",
        r"\bio::Folder(?:::find\(| \w+\(|\()|\bFileBytes::open\(|\b(?:Chain)?Reader::open\((?!\))"
        r"|\b(?:is_file|remove_file|file_bytes|verify)\(|\bio::(?:make_folders?|open_for_\w+)\("
        r"|\bOutputFile \w+\(|\bOutputOptions\{|\.output = \{",
        (
            "src/store/run/run_files.",
            "src/store/run/run.cc",  # lists folders of runs, and makes that of a new one
            "src/store/save/run_writer.cc",  # a file that the caller names becomes a checkpoint
            "src/store/save/promote.cc",  # a temporary file by its path
            "src/store/follow/into_file.cc",  # a file that the caller names holds the newest state
        ),
        "store/run/run_files.h reaches what lies in a run, through no link",
    ),
)

# What makes a tensor, or room for elements. In the readers and converters of formats a file decides how
# large these are, so each is counted first, all of a call together: io/memory/allocation_limit.h,
# state/tensor/counted_tensor.h. Sizes of what is in memory already are free: X.size(), and std::min().
COUNTED_FOLDERS = (
    "src/container/",
    "src/state/brain/",
    "src/state/delta/",
    "src/formats/",
    "src/checkpoint/",
    "src/convert/",
    "src/inspect/",
    "src/cli/command/cat.",
    "src/python/reader.",
)
_ELEMENTS = r"(?:std::byte|char|bool|float|double|std::u?int(?:8|16|32|64)_t|std::size_t|Index|T)"
UNCOUNTED = (
    re.compile(r"\bTensor::(?:filled|zeros|copy_of|csr|coo)\b"),
    re.compile(r"\.to_(?:dense|csr|coo)\(\)"),
    re.compile(r"\.dequantized\("),
    re.compile(r"std::make_(?:shared|unique)(?:_for_overwrite)?<[^;()]*\[\]>\("),
    re.compile(
        rf"std::vector<{_ELEMENTS}> \w+\(\s*+"
        r"(?!\)|std::min|\(?[\w.>()-]*\.(?:size|r?begin|region_count)\(\)|[^;]*(?:const |& ))"
        r"[^;{]*\);"
    ),
)
# Where nothing of a file decides, or where something else counts.
UNCOUNTED_PLACES = {
    "src/container/append/commit.cc": "of the block tree, which lies in the file",
    "src/container/file/bad_blocks.cc": "of blocks of 64 KiB of the file",
    "src/container/file/connection_lookup.cc": "of entries that lie in the file",
    "src/container/file/delta_prefix.cc": "of the prefix, which lies in the file",
    "src/container/file/verified_bytes.cc": "a byte for each block of the file",
    "src/container/file/wrapped.cc": "a byte for each frame of the file; pieces of one size",
    "src/container/wrap/decompress.cc": "pieces of one size",
    "src/container/wrap/seek_table.cc": "the budget was asked before",
    "src/container/wrap/unwrap.cc": "as much as the caller asks for",
    "src/container/wrap/unwrap.h": "declares a function",
    "src/container/write/file_digest.cc": "of what the caller saves",
    "src/container/write/extent_scheduler.cc": "of what the caller saves",
    "src/container/write/payload_digest.cc": "of what the caller saves",
    "src/state/brain/damaged_file.cc": "pieces of 1 MiB",
    "src/state/brain/edit_file.cc": "of entries that lie in the file",
    "src/state/brain/store_region.cc": "of what the caller saves",
    "src/state/brain/stored_tensor.cc": "the budget was asked before; or what the caller saves",
    "src/state/delta/chain_stage.cc": "of checked pointers, no more than the elements that are asked for",
    "src/state/low_rank/low_rank_change.cc": "of what the caller saves",
    "src/state/low_rank/matrix_change.cc": "of matrices that are in memory",
    "src/state/delta/tensor_chain.cc": "chunks of steps, for which the stages asked the budget",
    "src/checkpoint/brain_checkpoint.cc": "the budget was asked before",
    "src/formats/loom/blocks.cc": "encodes weights that the caller has in memory",
    "src/formats/loom/morph.cc": "converts weights that the caller has in memory",
    "src/formats/loom/load.cc": "grid_cells() has counted the grid",
    "src/formats/mckp/block.cc": "pieces of 4 MiB at most",
    "src/formats/mckp/checkpoint_compressor.cc": "copies what the caller saves",
    "src/formats/mithril_quantized/blob.cc": "extents, of which there are 8 at most",
    "src/formats/npz/array.cc": "the budget was asked before",
    "src/formats/npz/sink.cc": "the plan has asked for twice the array",
    "src/formats/v01/encode.cc": "a copy of the state that the caller saves",
    "src/formats/v01/tensor.cc": "of a tensor in memory, no more than its own bytes a few times",
    "src/formats/v01/tensor_reader.cc": "copies_left_ counts",
    "src/formats/v01/widen.cc": "the budget was asked before",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCE_SUFFIXES = {".c", ".cc", ".h"}
LONGEST_FILE = 500
LONG_FILE = 350
# A source of so many lines begins with what has to hold in it, or why it is as it is.
LINES_WITH_HEAD = 150
MEASURED_FOLDERS = ("include", "src", "tests", "examples", "bench")


def _layer_of(path):
    """The layer of a file under src/ or include/thalia/, or None for a user of the library."""
    parts = path.split("/")
    if path.startswith("include/thalia/"):
        return PUBLIC_PLACES.get(path[len("include/thalia/") :], "unknown public header").split("/")[0]
    if parts[0] == "src" and not path.startswith(USERS_OF_THE_LIBRARY):
        return parts[1] if len(parts) > 2 else None
    return None


def _may_include(layer, other):
    return layer == other or other in LAYERS.get(layer, set())


def _check_quoted(path, name):
    """What is wrong with `#include "name"` in the file at path, or None."""
    if name == "boost_test.h" or path.startswith(("tests/", "bench/")):
        return None
    is_public = name.startswith("thalia/")
    if path.startswith("include/") and not is_public:
        return "a public header includes public headers only, as thalia/NAME.h"
    if path.startswith(USERS_OF_THE_LIBRARY):
        user = next(user for user in USERS_OF_THE_LIBRARY if path.startswith(user))
        private = (set(LAYERS) | {"cli", "inspect", "measure", "python"}) - SEEN_BY_USERS[user]
        if is_public or name in LENT.get(user, ()) or name.split("/")[0] not in private:
            return None
        return "the program and the examples include public headers and their own files only"
    layer = _layer_of(path)
    if is_public:
        other = _layer_of("include/" + name)
        if other == "unknown public header":
            return "this public header has no layer in PUBLIC_PLACES"
    elif "/" in name:
        other = name.split("/")[0]
    else:
        return None  # generated beside the source
    if not _may_include(layer, other):
        return f"{layer} must not include {other}"
    return None


def _check_angled(path, name):
    """What is wrong with `#include <name>` in the file at path, or None."""
    if name.startswith("thalia/"):
        is_outsider = path.startswith("tests/install/")
        return None if is_outsider else "this project's headers are included with quotes"
    if OPERATING_SYSTEM.fullmatch(name):
        if not path.startswith(OPERATING_SYSTEM_PLACES):
            return "the operating system's headers belong to " + ", ".join(OPERATING_SYSTEM_PLACES)
    elif "/" in name or "." in name:
        return "this library is not in the table THIRD_PARTY"
    return None


def _check_include(path, quote, name):
    for pattern, places in THIRD_PARTY.items():
        if re.match(pattern, name):
            return None if path.startswith(places) else "belongs to " + ", ".join(places)
    return _check_quoted(path, name) if quote == '"' else _check_angled(path, name)


def source_files(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def include_violations(root):
    """One sentence for each #include line under root that breaks the picture."""
    found = []
    for path, text in source_files(root, ("include", "src", "examples", "tests", "bench")):
        layer = _layer_of(path)
        if layer is not None and layer not in LAYERS:
            found.append(f"{path}: {layer}: not in the tables of tests/structure/rules.py")
            continue
        for match in INCLUDE.finditer(text):
            wrong = _check_include(path, match[1], match[2])
            if wrong:
                line = text.count("\n", 0, match.start(2)) + 1
                found.append(f"{path}:{line}: {match[2]}: {wrong}")
    return found


def call_violations(root):
    """One sentence for each use under src/ and include/ of what CALLS leaves to another place."""
    found = []
    for path, text in source_files(root, ("include", "src")):
        for pattern, places, instead in CALLS:
            if path.startswith(places):
                continue
            for match in re.finditer(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: {match[0]}: {instead}")
        for folder, pattern, places, instead in CALLS_IN:
            if not path.startswith(folder) or path.startswith(places):
                continue
            for match in re.finditer(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: {match[0]}: {instead}")
    return found


def uncounted_allocations(root):
    """One sentence for each place in the readers of formats that allocates past the budget of its call."""
    found = []
    for path, text in source_files(root, ("src",)):
        if not path.startswith(COUNTED_FOLDERS) or path in UNCOUNTED_PLACES:
            continue
        for pattern in UNCOUNTED:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(
                    f"{path}:{line}: {match[0]}: io/memory/allocation_limit.h counts what a file decides the size of"
                )
    return found


STRUCT = re.compile(r"^struct (\w+Options) \{$(.*?)^\};$", re.MULTILINE | re.DOTALL)
HELD = "ReadOptions read|ChainOptions chain|SaveOptions save|ChangeOptions change"
STOP = re.compile(rf"std::stop_token cancel|Work work\b|({HELD})\b")
# A run is opened by its configuration alone, a small text: there is nothing to stop. Options that are handed on whole
# have the caller's stop.
OPENED_BY_DEFAULT = re.compile(r"\b(?!Run::)\w+::open\((?:(?:[^,()]|\([^()]*\))*\)|[^;]*?\{\.(?!chain = \w+\}))")


def calls_that_cannot_be_stopped(root):
    """Where the program makes options that lead to a stop token past Session::options().

    Such a call would not hear of a signal, nor of --safe and its like.
    """
    stoppable = set()
    for _, text in source_files(root, ("include",)):
        stoppable.update(name for name, body in STRUCT.findall(text) if STOP.search(body))
    own = re.compile(rf"\b(?:{'|'.join(sorted(stoppable))}) \w+(?:;|\{{| = \{{)")
    found = []
    for path, text in source_files(root, ("src/cli",)):
        for match in [*own.finditer(text), *OPENED_BY_DEFAULT.finditer(text)]:
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: {match[0]}: options come from Session::options()")
    return found


OPTION = re.compile(r"\b(?:add_flag|add_choice|add_option\w*(?:<[\w:]+>)?)\(\s*(?:app,\s*)?\"(?:-\w,)?(--[\w-]+)")
# One name in several commands, but each means something of its own.
OPTIONS_OF_SEVERAL_MEANINGS = {
    "--all", "--exclude", "--format", "--metric", "--neurons", "--quick", "--regions", "--seed", "--step",
    "--threshold", "--to",
}  # fmt: skip


def options_declared_twice(root):
    """Where a command declares an option that another one declares, too."""
    first, found = {}, []
    for path, text in source_files(root, ("src/cli",)):
        for match in OPTION.finditer(text):
            place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
            other = first.setdefault(match[1], place)
            if other != place and match[1] not in OPTIONS_OF_SEVERAL_MEANINGS:
                found.append(f"{place}: {match[1]} stands in {other}, too: declare it once")
    return found


# What a loop goes over lives as long as the loop, but not what a call on the way to it has made.
LOOP = re.compile(r"\bfor \(")
OF_A_TEMPORARY = re.compile(r" :\s.*\b(?:open\w*|from_bytes|\w+_from)\(.*\)\s*\.\w+\(\)$", re.DOTALL)


def _in_brackets(text, begin):
    """What stands from there to the bracket that closes the one in front."""
    depth = 1
    for i in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin:i]
    return text[begin:]


def loops_over_temporaries(root):
    """Where a loop goes over what belongs to a file that was opened for it: it is closed by then."""
    found = []
    for path, text in source_files(root, MEASURED_FOLDERS):
        for match in LOOP.finditer(text):
            if OF_A_TEMPORARY.search(_in_brackets(text, match.end())):
                found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: name the file first")
    return found


def file_lengths(root):
    """(path, lines) of each source file that is long enough to be looked at."""
    lengths = ((path, text.count("\n")) for path, text in source_files(root, MEASURED_FOLDERS))
    return [(path, lines) for path, lines in lengths if lines > LONG_FILE]


def sources_without_head(root):
    """Sources of the library and the program that are long and do not begin with a comment."""
    return [
        path
        for path, text in source_files(root, ("src",))
        if path.endswith(".cc") and text.count("\n") >= LINES_WITH_HEAD
        if not text.startswith("// ")
    ]


def dependencies_without_wrap(root):
    """Names that a meson.build asks for and no wrap of subprojects/ provides."""
    asked = set()
    build_files = [root / "meson.build"]
    for folder in MEASURED_FOLDERS:
        build_files += (root / folder).rglob("meson.build")
    for build_file in build_files:
        text = build_file.read_text(encoding="utf-8")
        asked.update(re.findall(r"^[^#\n]*\bdependency\('([^']+)'", text, re.MULTILINE))
    provided = {"threads"}
    for wrap in (root / "subprojects").glob("*.wrap"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str
        parser.read(wrap, encoding="utf-8")
        for name, value in parser["provide"].items():
            provided.update(value.split(", ") if name == "dependency_names" else [name])
    return sorted(asked - provided)


# What readers and their views do goes through a call that puts the file's path into its errors.
VIEW_FILES = ("reader", "region_view", "tensor_view", "tensor_slice", "sparse_view")
VIEW_CALL = re.compile(
    r"^\S[^\n]*\b(Reader|RegionView|TensorView)::(\w+)\([^{;]*\) const \{\n(.*?)^\}",
    re.MULTILINE | re.DOTALL,
)
NAMING = re.compile(r"\b(named|with_names)\(")
CALLS_THAT_THROW_NOTHING_OF_THEIR_OWN = {"prefetch", "release", "populate", "dense_bytes"}


def calls_without_path(root):
    """Const calls of readers and views whose errors would not name the file."""
    found = []
    for name in VIEW_FILES:
        path = root / "src/container/read" / f"{name}.cc"
        if not path.exists():
            continue
        for call in VIEW_CALL.finditer(path.read_text(encoding="utf-8")):
            if call[2] in CALLS_THAT_THROW_NOTHING_OF_THEIR_OWN or NAMING.search(call[3]):
                continue
            found.append(f"{path.name}: {call[1]}::{call[2]}() has no named() or with_names()")
    return found
