"""The tree obeys tests/structure/rules.py, and each rule catches a tree that does not."""

import os
import tempfile
import unittest
from pathlib import Path

import rules

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisTree(unittest.TestCase):
    def test_includes_point_downwards(self):
        self.assertEqual(rules.include_violations(ROOT), [])

    def test_what_one_place_does_is_done_there(self):
        self.assertEqual(rules.call_violations(ROOT), [])

    def test_what_a_file_decides_the_size_of_is_counted(self):
        self.assertEqual(rules.uncounted_allocations(ROOT), [])
        self.assertEqual([path for path in rules.UNCOUNTED_PLACES if not (ROOT / path).is_file()], [])

    def test_no_file_is_longer_than_the_limit(self):
        long_files = rules.file_lengths(ROOT)
        for path, lines in long_files:
            print(f"{path}: {lines} lines; more than {rules.LONG_FILE} ask to be split by concept")
        self.assertEqual([f for f in long_files if f[1] > rules.LONGEST_FILE], [])

    def test_long_sources_begin_with_what_holds_in_them(self):
        self.assertEqual(rules.sources_without_head(ROOT), [])

    def test_every_public_header_is_installed_and_known(self):
        listed = (ROOT / "include/thalia/meson.build").read_text(encoding="utf-8")
        headers = sorted((ROOT / "include/thalia").rglob("*.h"))
        self.assertGreater(len(headers), 50)
        for header in headers:
            name = header.relative_to(ROOT / "include/thalia").as_posix()
            self.assertIn(f"'{name}'", listed)
            if "/" not in name:
                self.assertIn(name, rules.PUBLIC_PLACES)

    def test_every_module_of_the_package_is_installed(self):
        package = ROOT / "python/thalia_checkpoint"
        modules = sorted(module for module in package.rglob("*.py*") if "__pycache__" not in module.parts)
        self.assertGreater(len(modules), 50)
        folders = {module.parent for module in modules}
        listed = {folder: (folder / "meson.build").read_text(encoding="utf-8") for folder in folders}
        self.assertEqual([module for module in modules if f"'{module.name}'" not in listed[module.parent]], [])
        inner = sorted(folder.name for folder in folders - {package})
        self.assertEqual([name for name in inner if f"subdir('{name}')" not in listed[package]], [])

    def test_errors_of_readers_name_the_file(self):
        self.assertEqual(rules.calls_without_path(ROOT), [])

    def test_program_makes_no_call_that_cannot_be_stopped(self):
        self.assertEqual(rules.calls_that_cannot_be_stopped(ROOT), [])

    def test_commands_share_the_options_of_one_meaning(self):
        self.assertEqual(rules.options_declared_twice(ROOT), [])

    def test_no_loop_goes_over_what_is_gone(self):
        self.assertEqual(rules.loops_over_temporaries(ROOT), [])

    def test_every_dependency_has_a_wrap(self):
        self.assertEqual(rules.dependencies_without_wrap(ROOT), [])


class BrokenTrees(unittest.TestCase):
    def violations(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
            return rules.include_violations(Path(folder))

    def refuses(self, path, include):
        found = self.violations(path, f"// comment\n#include {include}\n")
        self.assertEqual(len(found), 1, f"{include} in {path}: {found}")
        self.assertTrue(found[0].startswith(f"{path}:2: "), found[0])

    def accepts(self, path, include):
        self.assertEqual(self.violations(path, f"#include {include}\n"), [])

    def test_siblings_do_not_see_each_other(self):
        siblings = ("io", "codec", "integrity", "json")
        for one in siblings:
            for other in siblings:
                if one != other:
                    self.refuses(f"src/{one}/a.cc", f'"{other}/b.h"')

    def test_lower_layers_do_not_see_upper_ones(self):
        order = ("base", "format", "io", "container", "formats")
        for i, lower in enumerate(order):
            for upper in order[i + 1 :]:
                self.refuses(f"src/{lower}/a.cc", f'"{upper}/b.h"')
                self.accepts(f"src/{upper}/a.cc", f'"{lower}/b.h"')

    def test_public_headers_belong_to_layers(self):
        self.refuses("src/io/a.cc", '"thalia/reader.h"')
        self.refuses("src/base/a.cc", '"format/header.h"')
        self.refuses("include/thalia/error.h", '"thalia/tensor.h"')
        self.refuses("src/container/a.cc", '"thalia/surprise.h"')
        self.accepts("src/container/a.cc", '"thalia/reader.h"')
        self.accepts("src/c/a.cc", '"thalia/reader.h"')
        self.refuses("src/formats/a.cc", '"thalia/c.h"')
        self.refuses("include/thalia/thalia.h", '"thalia/c.h"')

    def test_public_headers_are_self_contained(self):
        self.refuses("include/thalia/reader.h", "<fmt/format.h>")
        self.refuses("include/thalia/reader.h", "<zstd.h>")
        self.refuses("include/thalia/reader.h", '"io/file/mapped_file.h"')
        self.refuses("include/thalia/reader.h", '"format/header.h"')
        self.refuses("include/thalia/reader.h", "<sys/mman.h>")
        self.refuses("include/thalia/reader.h", "<thalia/tensor.h>")

    def test_program_and_examples_see_public_headers_only(self):
        for user in ("src/cli/ls.cc", "examples/spiking/main.cc"):
            self.refuses(user, '"container/layout.h"')
            self.refuses(user, '"format/header.h"')
            self.refuses(user, '"base/fail.h"')
            self.accepts(user, '"thalia/thalia.h"')
        self.accepts("src/cli/ls.cc", '"cli/print.h"')
        self.accepts("src/cli/bench.cc", '"measure/disk.h"')
        self.accepts("src/python/diff.cc", '"inspect/diff_files.h"')
        self.refuses("src/inspect/diff_files.cc", '"cli/print/print.h"')
        self.refuses("src/state/diff/diff.cc", '"inspect/diff_files.h"')
        self.refuses("src/cli/bench.cc", '"base/parallel.h"')
        self.accepts("src/measure/memory.cc", '"base/parallel.h"')
        self.refuses("src/measure/memory.cc", '"cli/print.h"')
        self.refuses("src/io/file.cc", '"measure/disk.h"')
        self.refuses("examples/spiking/main.cc", '"measure/disk.h"')
        self.accepts("examples/demo/main.cc", '"spiking/network.h"')
        self.refuses("examples/demo/main.cc", '"cli/print.h"')

    def test_sizes_that_a_file_decides_are_counted(self):
        def found(text, path="src/formats/new/source.cc"):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, path)
                file.parent.mkdir(parents=True)
                file.write_text(f"// comment\n{text}\n", encoding="utf-8")
                return rules.uncounted_allocations(Path(folder))

        for text in (
            "return Tensor::filled(layout, fill);",
            "Tensor wide = Tensor::zeros(dtype, shape);",
            "return source.read(i).to_dense();",
            "add(tensor.dequantized(), {});",
            "std::vector<std::byte> raw(member.raw_bytes);",
            "std::vector<float> weights(\n    count.value_or(there));",
            "auto words = std::make_shared<std::uint64_t[]>(bytes / 8 + 1);",
        ):
            self.assertEqual(len(found(text)), 1, text)
            self.assertIn("source.cc:2: ", found(text)[0])
            self.assertEqual(len(found(text, "src/container/read/source.cc")), 1, text)
            self.assertEqual(found(text, "src/state/growth/source.cc"), [])
        for text in (
            "auto raw = budget.vector<std::byte>(section, count);",
            "std::vector<std::size_t> order(tensors.size());",
            "std::vector<std::byte> piece(std::min(bytes, kPiece));",
            "std::vector<float> weights_of(const Layer& layer);",
            "std::vector<std::byte> bytes();",
        ):
            self.assertEqual(found(text), [], text)

    def test_libraries_appear_in_one_place(self):
        for include, place, elsewhere in (
            ("<xxhash.h>", "src/integrity/content_hash.cc", "src/integrity/block_tree.cc"),
            ("<openssl/evp.h>", "src/integrity/sha256.cc", "src/container/writer.cc"),
            ("<isa-l/crc.h>", "src/integrity/crc32.cc", "src/codec/store.cc"),
            ("<simdjson.h>", "src/json/reader.cc", "src/formats/safetensors.cc"),
            ("<zstd.h>", "src/codec/frame/zstd_frame.cc", "src/codec/chunk/codec.cc"),
            ("<lz4frame.h>", "src/codec/frame/lz4_frame.cc", "src/codec/frame/zstd_frame.cc"),
            ("<CLI/CLI.hpp>", "src/cli/main.cc", "examples/spiking/main.cc"),
            ("<liburing.h>", "src/io/direct/uring.cc", "src/io/file/posix_file.cc"),
            ("<boost/test/unit_test.hpp>", "tests/boost_test.h", "src/base/error.cc"),
            ("<benchmark/benchmark.h>", "bench/open_bench.cc", "tests/io/a_test.cc"),
            ("<fmt/format.h>", "src/base/error.cc", "examples/spiking/main.cc"),
            ("<sys/mman.h>", "src/io/file/mapped_file.cc", "src/container/reader.cc"),
            ("<stdint.h>", "include/thalia/c/reader.h", "include/thalia/reader.h"),
        ):
            self.accepts(place, include)
            self.refuses(elsewhere, include)
            self.refuses(elsewhere, include.replace("<", '"').replace(">", '"'))

    def test_unknown_libraries_and_layers_are_refused(self):
        self.refuses("src/io/a.cc", "<nlohmann/json.hpp>")
        self.refuses("src/io/a.cc", "<surprise.h>")
        self.assertEqual(len(self.violations("src/utils/a.cc", "")), 1)

    def test_calls_out_of_place_are_found(self):
        for line, place in (
            ("std::filesystem::file_size(path)", "src/io/path/paths.cc"),
            ("fs::weakly_canonical(path)", "src/io/path/paths.cc"),
            ('name + ".tmp"', "src/io/output/temporary_file.cc"),
            ("::open(path, O_CREAT)", "src/io/output/atomic_file.cc"),
            ("std::ofstream out(path)", "src/io/output/atomic_file.cc"),
            ("std::thread::hardware_concurrency()", "src/base/parallel.cc"),
            ("std::once_flag once;", "src/io/system/process.h"),
            ("mutable std::mutex mutex_;", "src/store/save/impl.h"),
            ('fmt::format("{:02x}", byte)', "src/base/utf8.cc"),
            ("std::chrono::duration<double>(taken).count()", "src/base/stopwatch.h"),
            ("Tensor::from(reader.region(0).at(name))", "include/thalia/a.h"),
            ("spec.wide_indices = layout.wide_indices;", "include/thalia/tensor.h"),
            ("e == Encoding::csr || e == Encoding::coo", "include/thalia/types.h"),
            ('throw UsageError(ErrorCode::exists, "there")', "src/io/output/atomic_file.cc"),
        ):
            for path, count in ((place, 0), ("src/cli/a.cc", 1), ("src/state/a.cc", 1)):
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder, path)
                    file.parent.mkdir(parents=True)
                    file.write_text(f"std::filesystem::path p;\n{line}\n", encoding="utf-8")
                    found = rules.call_violations(Path(folder))
                    self.assertEqual(len(found), count, f"{line} in {path}: {found}")
                    self.assertTrue(all(f.startswith(f"{path}:2: ") for f in found))

    def test_one_place_asks_where_a_path_leads(self):
        for path, count in (("src/io/path/real_path.cc", 0), ("src/io/path/base_file.cc", 1)):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, path)
                file.parent.mkdir(parents=True)
                file.write_text("fs::canonical(path, error);\n", encoding="utf-8")
                self.assertEqual(len(rules.call_violations(Path(folder))), count)

    def test_ways_past_the_files_of_a_run_are_found_in_the_store(self):
        for line in (
            "const io::Folder folder(run.path());",
            "return io::Folder::find(path);",
            "const auto file = io::FileBytes::open(path, access);",
            "const Reader reader = Reader::open(path);",
            "const ChainReader chain = ChainReader::open(path);",
            "if (is_file(path)) return;",
            "remove_file(path);",
            "io::make_folders(path, Durability::full);",
            "const io::UniqueFd fd = io::open_for_reading(path);",
            "OutputFile out(path, output);",
            "state::save_state(state, path, {.output = {.durability = durability}});",
        ):
            for path, count in (("src/store/save/a.cc", 1), ("src/store/run/run_files.cc", 0), ("src/state/a.cc", 0)):
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder, path)
                    file.parent.mkdir(parents=True)
                    file.write_text(f"{line}\n", encoding="utf-8")
                    self.assertEqual(len(rules.call_violations(Path(folder))), count, f"{line} in {path}")

    def test_references_to_what_dies_are_found_everywhere(self):
        for line, count in (
            ("const File& file = *std::make_shared<const File>(bytes);", 1),
            ("auto& file =\n    *std::make_unique<File>();", 1),
            ("const auto file = std::make_shared<const File>(bytes);", 0),
        ):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "src/io/a.cc")
                file.parent.mkdir(parents=True)
                file.write_text(line + "\n", encoding="utf-8")
                self.assertEqual(len(rules.call_violations(Path(folder))), count, line)

    def test_long_files_are_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in (("short", 350), ("long", 351), ("too_long", 501)):
                file = Path(folder, "src/io", name + ".cc")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("\n" * lines, encoding="utf-8")
            found = rules.file_lengths(Path(folder))
            self.assertEqual(found, [("src/io/long.cc", 351), ("src/io/too_long.cc", 501)])

    def test_calls_of_readers_without_the_path_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "src/container/read").mkdir(parents=True)
            (root / "src/container/read/reader.cc").write_text(
                "int Reader::good() const {\n  return file_->named([&] { return 1; });\n}\n"
                "int Reader::safe() const noexcept {\n  return 1;\n}\n"
                "int Reader::bad(std::uint32_t i) const {\n  return file_->count(i);\n}\n",
                encoding="utf-8",
            )
            self.assertEqual(len(rules.calls_without_path(root)), 1)
            self.assertIn("Reader::bad()", rules.calls_without_path(root)[0])

    def test_calls_that_cannot_be_stopped_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in (
                ("include/thalia/a.h", "struct ReadOptions {\n  Work work{};\n};\n"),
                ("include/thalia/b.h", "struct ChainOptions {\n  ReadOptions read{};\n};\n"),
                ("include/thalia/d.h", "struct FileOptions {\n  std::stop_token cancel{};\n};\n"),
                ("include/thalia/c.h", "struct PureOptions {\n  int most = 0;\n};\n"),
                (
                    "src/cli/a.cc",
                    "ReadOptions read;\n"
                    "ChainOptions chain{.read = read};\n"
                    "Reader::open(name(file));\n"
                    "Reader::open(file, {.threads = 1});\n"
                    "FileOptions file;\n"
                    "PureOptions pure;\n"
                    "auto right = session.options<ReadOptions>();\n"
                    "Reader::open(name(file), right);\n"
                    "void run(const ReadOptions& read);\n",
                ),
            ):
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            found = rules.calls_that_cannot_be_stopped(Path(folder))
        places = sorted(line.split(": ")[0] for line in found)
        self.assertEqual(places, [f"src/cli/a.cc:{line}" for line in (1, 2, 3, 4, 5)])

    def test_options_that_stand_twice_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a", "b"):
                file = Path(folder, f"src/cli/{name}.cc")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(
                    'app.add_flag("--json", json, "As JSON");\n'
                    'add_option(app, "-o,--output OUT", output, "To a file");\n'
                    'app.add_option_function<std::string>("--shade", shade, "To draw");\n'
                    'add_choice(app, "--to FORMAT", to, kFormats, "This or that");\n'
                    f'add_option(app, "--{name} X", x, "Its own");\n',
                    encoding="utf-8",
                )
            found = rules.options_declared_twice(Path(folder))
        places = [line.split(" stands")[0] for line in found]
        self.assertEqual(places, ["src/cli/b.cc:1: --json", "src/cli/b.cc:2: --output", "src/cli/b.cc:3: --shade"])

    def test_loops_over_what_is_gone_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "src/io/a.cc")
            file.parent.mkdir(parents=True)
            file.write_text(
                "for (const T& one : File::open(path).tensors()) use(one);\n"
                "for (const T& one :\n     open_any(path, {.read = read}).tensors()) use(one);\n"
                "for (const T& one : file.tensors()) use(one);\n"
                "for (int i = 0; i < 3; ++i) open(path).tensors();\n",
                encoding="utf-8",
            )
            found = rules.loops_over_temporaries(Path(folder))
        self.assertEqual([line.split(": ")[0] for line in found], ["src/io/a.cc:1", "src/io/a.cc:2"])

    def test_long_sources_without_a_head_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, lines in (
                ("bare.cc", '#include "a.h"\n', rules.LINES_WITH_HEAD),
                ("headed.cc", "// Why.\n", rules.LINES_WITH_HEAD),
                ("short.cc", '#include "a.h"\n', rules.LINES_WITH_HEAD - 1),
                ("bare.h", "#pragma once\n", rules.LINES_WITH_HEAD),
            ):
                file = Path(folder, "src/io", name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text + "\n" * (lines - 1), encoding="utf-8")
            self.assertEqual(rules.sources_without_head(Path(folder)), ["src/io/bare.cc"])

    def test_dependencies_without_a_wrap_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "subprojects").mkdir()
            Path(folder, "subprojects/one.wrap").write_text("[provide]\nlibone = one\n")
            Path(folder, "meson.build").write_text("dependency('libone')\nx = dependency('two')\n")
            self.assertEqual(rules.dependencies_without_wrap(Path(folder)), ["two"])


if __name__ == "__main__":
    unittest.main()
