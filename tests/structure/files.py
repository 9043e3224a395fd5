"""What a file is for: headers that more than one file needs, sources that a header declares, types of one name.

A header with one user is a part of it; a source without a header of its own name defines what another
header declares, which is listed here; and a type is declared once in the tree.
"""

import re
from collections import defaultdict

import rules

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)

# A file of more lines than this should be two, so a header whose user would pass it stays apart.
LONGEST_TOGETHER = 360
# Shorter ones that stay apart all the same, and why.
LONE_HEADERS = {
    "src/codec/frame/lz4_decoder.h": "the headers of LZ4 are seen by files of its name alone",
    "src/formats/gguf/small_blocks.h": "with the other kind of blocks, dequantize.cc would have 456 lines",
    "src/formats/gguf/super_blocks.h": "with the other kind of blocks, dequantize.cc would have 456 lines",
}

# Folders in which one header declares what every source defines.
DECLARED_BY_ONE = {
    "src/cli/command/": "cli/command/command.h",
    "src/cli/store/": "cli/command/command.h",
    "src/python/store/": "python/store/store.h",
    "src/python/": "python/bindings.h",
}
# Sources of one header by their subjects, where a header of each would only say the same again.
PARTS = {
    "c/guard.h": ("c/error",),
    "c/saving_run.h": ("c/publish",),
    "cli/report/growth_chart.h": ("cli/report/growth_svg",),
    "cli/store/run_facts.h": ("cli/store/run_table",),
    # A file for each set of instructions, compiled with its flags.
    "codec/exponents/kernels.h": ("codec/exponents/avx2", "codec/exponents/avx512", "codec/exponents/portable"),
    "codec/float/portable.h": ("codec/float/avx512", "codec/float/f16c"),
    "codec/planes/split_kernels.h": (
        "codec/planes/split_avx2",
        "codec/planes/split_avx512",
        "codec/planes/split_portable",
    ),
    "codec/rans/kernels.h": ("codec/rans/avx2", "codec/rans/avx512", "codec/rans/portable"),
    "codec/step/avx512_elements.h": ("codec/step/avx512_count",),
    "codec/step/kernels.h": ("codec/step/avx512", "codec/step/portable"),
    "codec/step/step_tables.h": ("codec/step/step_rows",),
    "container/file/open_file.h": (
        "container/file/connection_lookup",
        "container/file/name_lookup",
        "container/file/verified_bytes",
        "container/read/quantized_reading",
    ),
    "container/pack/head.h": ("container/pack/lengths",),
    "container/wrap/packed.h": ("container/pack/unpack",),
    "container/verify/structure.h": ("container/verify/padding",),
    "convert/conversions.h": ("convert/copy_thalia", "convert/ensemble", "convert/weight_delta"),
    "convert/merge_plan.h": ("convert/merge_metadata",),
    "formats/gptrs/parse.h": ("formats/gptrs/version_1",),
    "formats/loom/document.h": ("formats/loom/paths",),
    "formats/loom/load.h": ("formats/loom/output",),
    "formats/loom/weights.h": ("formats/loom/geometry",),
    "formats/mckp/header.h": ("formats/mckp/header_text",),
    "formats/mckp/impl.h": ("formats/mckp/chain", "formats/mckp/file"),
    "formats/mckp/job.h": ("formats/mckp/writer",),
    "formats/weight_sync/opened_weights.h": ("formats/weight_sync/slime_chain", "formats/weight_sync/trl_chain"),
    "formats/weight_sync/weight_writers.h": (
        "formats/weight_sync/compare_models",
        "formats/weight_sync/lora_write",
        "formats/weight_sync/slime_write",
        "formats/weight_sync/trl_write",
    ),
    "formats/mithril_quantized/parts.h": ("formats/mithril_quantized/blob", "formats/mithril_quantized/numbers"),
    "formats/pickle/builder.h": ("formats/pickle/calls", "formats/pickle/numpy", "formats/pickle/rebuild"),
    "formats/pickle/machine_state.h": ("formats/pickle/machine_steps",),
    "formats/pt/contents.h": ("formats/pt/decode",),
    "formats/pt/tree_reader.h": ("formats/pt/tree_tensors",),
    "state/brain/stored_brain.h": ("state/brain/read",),
    "state/brain/stored_region.h": ("state/brain/load_region", "state/brain/store_region"),
    "state/delta/base_state.h": ("state/delta/file_base", "state/delta/memory_base"),
    "state/delta/change.h": ("state/delta/threshold",),
    "store/pool/examination.h": ("store/pool/examine_phase", "store/pool/examine_pool"),
    "store/save/delta_choice.h": ("store/save/read_factor",),
    "store/save/impl.h": (
        "store/save/background",
        "store/save/promote",
        "store/save/run_writer",
        "store/save/save_delta",
    ),
    "thalia/formats/safetensors.h": ("convert/detect",),
    "thalia/recover.h": ("state/brain/salvage",),
    "thalia/side_file.h": ("container/write/metadata",),
    "thalia/state/delta.h": ("state/rebase/rebase",),
    "thalia/store/retention.h": ("store/retention/plan",),
    "thalia/store/run.h": ("store/load/load",),
    "base/dtype_facts.h": ("base/dtype",),
    "thalia/types.h": ("codec/planes/byte_transforms", "state/tensor/element", "state/tensor/tensor_role"),
}
# What nobody calls by a header.
PROGRAMS = ("src/cli/main.cc",)

# Types that two headers declare, and why.
TYPES_OF_ONE_NAME = {
    "Reader": "json::Reader reads texts; nobody says thalia::Reader where it is seen",
    "Value": "json::Value is a text's value while it is read, thalia::Value one of a tree",
}


def _sources(root):
    for folder in ("src", "include", "tests", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def lone_headers(root):
    """(header, its user, lines of the longer file that both would make) of each header that one file alone includes.

    Without those whose user is in another folder, which the folder's limits keep apart.
    """
    texts = dict(_sources(root))
    users = defaultdict(set)
    for path, text in texts.items():
        for name in INCLUDE.findall(text):
            users["src/" + name].add(path)
    found = []
    for header in sorted(texts):
        if not header.startswith("src/") or not header.endswith(".h"):
            continue
        source = header[:-2] + ".cc"
        others = users[header] - {source}
        if len(others) != 1:
            continue
        (user,) = others
        if user.rpartition("/")[0] != header.rpartition("/")[0]:
            continue
        lines = {part: texts.get(part, "").count("\n") for part in (header, source, user, user[:-2] + ".cc")}
        if user.endswith(".h"):  # header goes to header, source to source
            together = max(lines[header] + lines[user], lines[source] + lines[user[:-2] + ".cc"])
        else:
            together = lines[header] + lines[source] + lines[user]
        found.append((header, user, together))
    return found


def headers_to_merge(root, listed=None):
    """One sentence for each header that belongs into its only user."""
    listed = LONE_HEADERS if listed is None else listed
    lone = {header: (user, lines) for header, user, lines in lone_headers(root)}
    short = {header: user for header, (user, lines) in lone.items() if lines <= LONGEST_TOGETHER}
    found = [f"{header}: only {user} includes it: merge them" for header, user in short.items() if header not in listed]
    return found + [f"{header}: listed, but it has other users or is long" for header in listed if header not in short]


def _place(path):
    return path.removeprefix("src/").rpartition("/")[0]


def sources_without_header(root, public_places=None, parts=None):
    """One sentence for each source that no header is known to declare."""
    places = rules.PUBLIC_PLACES if public_places is None else public_places
    parts = PARTS if parts is None else parts
    listed = {f"src/{stem}.cc": header for header, stems in parts.items() for stem in stems}
    texts = {path: text for path, text in _sources(root) if path.startswith("src/")}
    found = [f"{path}: listed, but not there" for path in listed if path not in texts]
    for path, text in texts.items():
        if not path.endswith(".cc") or path in PROGRAMS:
            continue
        includes = INCLUDE.findall(text)
        if path in listed:
            if path[:-3] + ".h" in texts:
                found.append(f"{path}: listed, but has a header of its own")
            elif listed[path] not in includes:
                found.append(f"{path}: a part of {listed[path]}, which it does not include")
            continue
        by_folder = next((header for folder, header in DECLARED_BY_ONE.items() if path.startswith(folder)), None)
        here = (_place(path), _place(path).partition("/")[0])
        of_room = any(places.get(name.removeprefix("thalia/")) in here for name in includes)
        if path[:-3] + ".h" not in texts and not of_room and by_folder not in includes:
            found.append(f"{path}: has no header of its name, and is not listed as a part of another")
    return found


TYPE = re.compile(r"^(?:class|struct|union|enum(?: class)?) (\w+)(?: final)?(?: : [^;{]*)?\s*\{", re.MULTILINE)


def types_declared_twice(root, listed=None):
    """One sentence for each name that two headers declare as a type."""
    listed = TYPES_OF_ONE_NAME if listed is None else listed
    declared = defaultdict(list)
    for path, text in _sources(root):
        if path.startswith(("src/", "include/")) and path.endswith(".h"):
            for name in TYPE.findall(text):
                declared[name].append(path)
    twice = {name: paths for name, paths in declared.items() if len(paths) > 1}
    found = [f"{name}: in {', '.join(paths)}" for name, paths in sorted(twice.items()) if name not in listed]
    return found + [f"{name}: listed, but declared once" for name in listed if name not in twice]


def included_sources(root):
    """Sources that others include: their private names would have to be unique there."""
    return [
        f"{path}: {name}" for path, text in _sources(root) for name in INCLUDE.findall(text) if name.endswith(".cc")
    ]
