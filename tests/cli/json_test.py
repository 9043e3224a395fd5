"""What --json prints of files of every format, against the tables of docs/use/json.md.

    json_test.py THALIA MAKE_FILES INTERRUPTION SOURCE_ROOT

Each member has to be in the tables, with the type that it has there, and each member of the tables
has to be printed of some file.
"""

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import program

ROOT = pathlib.Path(sys.argv[4]).resolve()
DOCUMENT = (ROOT / "docs/use/json.md").read_text(encoding="utf-8")
# Members that no file here has a reason for.
RARE = {
    ("error", "tensor"),
    ("value_diff", "skipped"),
}


def bytes_of(path):
    """Of a file, or of all in a folder."""
    return sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())


def tables(document):
    """{object: {member: (type, whether it may be absent)}}"""
    objects = {}
    for part in re.split(r"^Object `", document, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("`:\n")
        lines = rest.lstrip("\n").splitlines()
        members = objects[name] = {}
        for line in lines[2:]:
            if not line.startswith("|"):
                break
            member, kind, absent, _ = [cell.strip() for cell in line.split("|")[1:-1]]
            members[member.strip("`")] = (kind, absent != "")
    return objects


OBJECTS = tables(DOCUMENT)


def parsed(text):
    """The value of a JSON text, whose objects have no member twice."""

    def members(pairs):
        names = [name for name, _ in pairs]
        assert len(set(names)) == len(names), names
        return dict(pairs)

    return json.loads(text, object_pairs_hook=members)


class Checker:
    """Finds what a value has that the tables do not say, and counts what they say and it has."""

    def __init__(self):
        self.seen = set()
        self.faults = []

    def fits(self, value, kind, place):
        if kind.startswith('"'):
            return value == kind.strip('"')
        if kind == "null":
            return value is None
        if kind == "json":
            return True
        if kind == "string":
            return isinstance(value, str)
        if kind == "boolean":
            return isinstance(value, bool)
        if kind == "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        if kind == "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind.startswith("array of "):
            kind = kind.removeprefix("array of ")
            return isinstance(value, list) and all(self.fits(one, kind, f"{place}[{i}]") for i, one in enumerate(value))
        if not isinstance(value, dict):
            return False
        self.check_object(value, kind, place)
        return True

    def check_object(self, value, name, place):
        members = OBJECTS[name]
        for member, (kinds, may_be_absent) in members.items():
            if member not in value:
                if not may_be_absent:
                    self.faults.append(f"{place}: {name} has no {member}")
                continue
            self.seen.add((name, member))
            one = value[member]
            if not any(self.fits(one, kind, f"{place}.{member}") for kind in kinds.split(" or ")):
                self.faults.append(f"{place}.{member}: {one!r} is no {kinds}")
        for member in value:
            if member not in members and "*" not in members:
                self.faults.append(f"{place}: {name} has {member}, which is not in docs/use/json.md")


CHECKER = Checker()


class Json(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        program.make_files(cls.folder)
        for command in (
            "quantize large.thalia small.thalia --bits 4",
            "delta large.thalia small.thalia small.delta.thalia",
            "convert basic.thalia basic.thalia.meta",
            "convert steps/step_2 steps.mckp",
            "migrate old.thalia old.thalia.zst --to 0.1",
        ):
            result = program.run(cls.folder, command)
            assert result.returncode == 0, (command, result.stderr)
        shutil.copy(ROOT / "tests/data/formats/mithril/small.mst", cls.folder)
        shutil.copy(ROOT / "tests/data/v01/delta_stage1.delta.thalia", cls.folder / "original.delta")
        with open(cls.folder / "longer.thalia", "wb") as longer:
            longer.write((cls.folder / "basic.thalia").read_bytes() + bytes(100))
        cls.files = sorted(path.relative_to(cls.folder).as_posix() for path in cls.folder.rglob("*") if path.is_file())

    def printed(self, command, statuses=(0,)):
        result = program.run(self.folder, command)
        self.assertIn(result.returncode, statuses, (command, result.stderr))
        self.assertEqual(result.stderr, b"", command)
        return parsed(result.stdout.decode("utf-8"))

    def check(self, command, name, statuses=(0,)):
        """The value that the command prints, which has to be that object."""
        value = self.printed(command, statuses)
        self.assertEqual(next(iter(value)), "schema", command)
        CHECKER.check_object(value, name, command)
        self.assertEqual(CHECKER.faults, [])
        return value

    def test_1_files_of_every_format(self):
        formats = set()
        for file in self.files:
            info = self.check(f"info {file} --json", "info")
            formats.add((info["format"], info["delta"]))
            if info["format"] == "thalia-0.1" and info["delta"]:
                self.assertIsNone(info["tensor_count"])
                continue
            self.check(f"ls {file} --json", "ls")
            self.check(f"verify {file} --json", "verify")
            for way in "", "--sort size", "--sort name":
                listed = self.check(f"ls {file} -r {way} --json", "ls")["tensors"]
                self.assertEqual(len(listed), info["tensor_count"], (file, way))
            for member in "logical_bytes", "stored_bytes":
                known = [tensor[member] for tensor in listed]
                self.assertEqual(sum(known) if None not in known else None, info[member], file)
            if not info["side_file"]:
                measured = self.check(f"stats {file} --json", "stats")["tensors"]
                self.assertEqual(len(measured), info["tensor_count"], file)
            if info["format"] in ("thalia", "mckp") and not info["side_file"]:
                self.check(f"log {file} --json", "log")
        self.assertEqual(
            formats,
            {("thalia", False), ("thalia", True), ("safetensors", False), ("mckp", False),
             ("mckp", True), ("mst", False), ("thalia-0.1", False), ("thalia-0.1", True)},
        )  # fmt: skip

    def test_2_one_file_has_the_same_facts_in_every_format(self):
        facts = ("region", "name", "dtype", "shape", "logical_bytes", "nnz", "encoding")
        tensors = {}
        for file in "model.safetensors", "model.mckp":
            listed = self.printed(f"ls {file} --json")["tensors"]
            tensors[file] = [{fact: tensor[fact] for fact in facts} for tensor in listed]
        self.assertEqual(tensors["model.safetensors"], tensors["model.mckp"])
        named = {tensor["name"]: tensor for tensor in tensors["model.mckp"]}
        for tensor in self.printed("ls model.thalia -r --json")["tensors"]:
            self.assertEqual(tensor["shape"], named[tensor["name"]]["shape"])
            self.assertEqual(tensor["dtype"], named[tensor["name"]]["dtype"])
        counts = {file: self.printed(f"info {file} --json")["parameters"]
                  for file in ("model.safetensors", "model.mckp", "model.thalia", "old.thalia")}  # fmt: skip
        self.assertEqual(set(counts.values()), {16}, counts)

    def test_3_differences_findings_and_elements(self):
        damaged = bytearray((self.folder / "basic.thalia").read_bytes())
        tensors = self.printed("ls basic.thalia w_in --json")["tensors"]
        damaged[tensors[0]["offset"]] ^= 1
        (self.folder / "damaged.thalia").write_bytes(damaged)
        found = self.check("verify damaged.thalia --json", "verify", (1,))["files"][0]
        self.assertEqual((found["ok"], found["findings"][0]["tensor"]), (False, "w_in"))
        (self.folder / "damaged.thalia").unlink()
        for pair in "basic.thalia half.thalia", "basic.thalia large.thalia", "grown.thalia later.thalia":
            if "half" in pair:
                program.run(self.folder, "convert basic.thalia half.thalia --precision fp16")
            for values in "", "--values":
                self.check(f"diff {pair} {values} --json", "diff", (1,))
        some = self.check("diff basic.thalia half.thalia cortex/w_* --values --json", "diff", (1,))
        self.assertEqual((some["header"], some["same_regions"], len(some["regions"])), ([], 0, 1))
        self.assertEqual({one["name"] for one in some["regions"][0]["tensors"]}, {"w_in", "w_rec"})
        self.check("diff basic.thalia later.delta.thalia --values --json", "diff", (1,))
        pairs = ("large.thalia large.safetensors", "model.safetensors steps.mckp", "old.thalia basic.thalia",
                 "small.mst model.safetensors", "old.thalia old.thalia.zst", "steps/step_2 steps/step_1",
                 "large.safetensors small.delta.thalia")  # fmt: skip
        program.run(self.folder, "convert large.thalia large.safetensors --dense")
        for pair in pairs:
            for way in "", "--stat", "--atol 0.5 --rtol 0.1":
                self.check(f"diff {pair} {way} --json", "diff", (0, 1))
        converted = self.check("diff large.thalia large.safetensors --json", "diff")
        self.assertEqual((converted["same"], converted["same_tensors"]), (True, 4))
        self.assertFalse(converted["metadata_compared"])
        small = self.check("diff large.safetensors small.delta.thalia --json", "diff", (1,))
        self.assertGreater(small["tensors"][0]["values"]["cosine"], 0.99)
        self.assertTrue(self.check("diff basic.thalia basic.thalia --json", "diff")["same"])
        (self.folder / "hurt.thalia").write_bytes(damaged)
        saved = self.check("salvage hurt.thalia saved.thalia --json", "salvage", (1,))
        self.assertEqual([lost["name"] for lost in saved["lost"]], ["cortex/w_in"])
        self.assertTrue(self.check("salvage basic.thalia whole.thalia --json", "salvage")["whole"])
        for name in "hurt.thalia", "saved.thalia", "whole.thalia":
            (self.folder / name).unlink()
        for tensor in "w_in", "w_rec", "phase", "cortex->hippocampus/delays":
            self.check(f"cat basic.thalia {tensor} --format json", "cat")

    def test_3b_what_files_are_made_of_and_changed_by(self):
        for command, name in (
            ("convert basic.thalia made1.thalia --precision fp16", "converted"),
            ("convert model.safetensors made1.mckp", "converted"),
            ("extract basic.thalia made2.thalia --regions cortex", "converted"),
            ("merge basic.thalia other.thalia -o made3.thalia", "converted"),
            ("migrate old.thalia made4.thalia --to 1.0", "migrate"),
            ("compress basic.thalia made5.thalia.zst", "compress"),
            ("decompress made5.thalia.zst made5.thalia", "compress"),
            ("delta grown.thalia later.thalia made6.delta.thalia", "delta"),
            ("resolve made6.delta.thalia made6.thalia", "resolve"),
            ("convert grown.thalia made20.thalia", "converted"),
            ("delta made20.thalia later.thalia made21.delta.thalia", "delta"),
            ("rebase made21.delta.thalia", "rebase"),
            ("delta low.thalia changed.thalia made7.delta.thalia --low-rank --bits-per-element 4", "delta"),
            ("delta low.thalia changed.thalia weight_v000001 --as slime", "weight_delta"),
            ("delta low.thalia changed.thalia made22 --low-rank --as peft --leave-out", "lora_adapter"),
            ("quantize large.thalia made8.thalia --bits 4", "quantize"),
            ("prune prunable.thalia made10.thalia", "prune"),
            ("prune prunable.thalia made11.thalia --region cortex --neurons 1", "prune"),
            ("compact basic.thalia made9.thalia", "compact"),
            ("compact made9.thalia", "compact"),
            ("set made9.thalia a=1", "edit"),
            ("set model.safetensors a=1", "edit"),
            ("rename made9.thalia w_in w_other", "edit"),
            ("rm made9.thalia phase", "edit"),
            ("append made9.thalia made6.thalia --regions pfc", "append"),
            ("grow made9.thalia cortex --neurons 1 --axes weights.w_other=source:eye,neurons", "grow"),
            ("recover made9.thalia", "recover"),
            ("bench --dir . --size 1MiB --rounds 1", "bench"),
            ("version", "version"),
            ("help", "help"),
            ("help ls", "help"),
        ):
            if "low.thalia" in command and not (self.folder / "low.thalia").exists():
                self.write_low_rank_pair()
            value = self.check(command + " --json", name)
            words = command.split()
            self.assertEqual(value["schema"], f"thalia.{name if '--as' in words else words[0]}.1")
            if "output" in value:
                self.assertIn(value["output"], words)
                self.assertEqual(value["output_bytes"], bytes_of(self.folder / value["output"]), command)
            if "input_bytes" in value and words[0] not in ("rebase", "resolve") and "inputs" not in value:
                if value["input"] != value["output"]:
                    self.assertEqual(value["input_bytes"], (self.folder / value["input"]).stat().st_size, command)
            if "path" in value:
                self.assertEqual(value["file_bytes"], (self.folder / value["path"]).stat().st_size, command)
        spared = self.check("prune basic.thalia made12.thalia --json", "prune", (1,))
        self.assertEqual((spared["written"], spared["tracked"], spared["output_bytes"]), (False, False, 0))
        self.assertFalse((self.folder / "made12.thalia").exists())
        torn = bytearray((self.folder / "made9.thalia").read_bytes())
        torn[:8] = bytes(8)
        (self.folder / "torn.thalia").write_bytes(torn)
        self.assertTrue(self.check("recover torn.thalia --json", "recover")["restored"])
        for made in self.folder.glob("made*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()

    def write_low_rank_pair(self):
        """Two files of a matrix whose change is a product of two vectors."""
        rows = 64
        before = [math.sin(i) for i in range(rows * rows)]
        after = [one + (1 + i // rows) * (1 + i % rows) / 4096 for i, one in enumerate(before)]
        for name, values in ("low", before), ("changed", after):
            tensors = {"w.weight": values, "embed_tokens.weight": values}
            program.write_safetensors(self.folder / f"{name}.safetensors", tensors, [rows, rows])
            result = program.run(self.folder, f"convert {name}.safetensors {name}.thalia")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_3c_stores(self):
        keys = (
            "optimizer_record scheduler_record rng_state global_step phase config metrics timestamp "
            "checkpoint_version teacher_state_dict opponent_pool_metadata"
        ).split()
        tensors = {f"{name}.w.weight": [1, 2, 3] for name in ("model_record", "optimizer_record")}
        program.write_safetensors(self.folder / "record.safetensors", tensors)
        for command in (
            "convert record.safetensors record.thalia --regions 1",
            f"set record.thalia {' '.join(key + '=1' for key in keys)}",
            "convert large.thalia delta1.thalia", "convert large.thalia delta2.thalia",
        ):  # fmt: skip
            self.assertEqual(program.run(self.folder, command).returncode, 0, command)
        for command, name, statuses in (
            ("store init runs/a --phases a,b --metric loss:min", "store_init", (0,)),
            ("store init runs/h --preset hydra", "store_init", (0,)),
            ("store save runs/a delta1.thalia --phase a --step 1 --metric 0.5", "store_save", (0,)),
            ("store save runs/a delta2.thalia --step 2", "store_save", (0,)),
            ("store promote runs/a", "store_promote", (0,)),
            ("store follow runs/a --once --into followed.thalia", "store_follow", (0,)),
            ("store init served --phases a", "store_init", (0,)),
            ("store publish served delta1.thalia --step 3", "store_publish", (0,)),
            ("store list runs/a", "store_list", (0,)),
            ("store list runs", "store_list", (0,)),
            ("store latest runs/a", "store_latest", (0,)),
            ("store restore runs/a restored.thalia", "store_restore", (0,)),
            ("store verify runs/a", "store_check", (0,)),
            ("store repair runs/a", "store_check", (0,)),
            ("store prune runs/a --keep 1 --dry-run", "store_prune", (0,)),
            ("store save runs/h record.thalia --phase phase1 --step 10000 --metric 0.5", "store_save", (0,)),
            ("store promote runs/h", "store_promote", (0,)),
            ("store transition runs/h phase1 phase2", "store_transition", (0,)),
            ("store save runs/h record.thalia --phase phase3 --step 500 --metric 0.5", "store_save", (0,)),
            ("store rebase runs/h --phase phase1", "store_rebase", (0,)),
            ("store pool runs/h add --step 500 --mu 25 --sigma 1", "store_pool", (0,)),
            ("store pool runs/h rate 1 --mu 25 --sigma 1 --games 3 --win-rate 0.5", "store_pool", (0,)),
            ("store pool runs/h draw --seed 1 --index 1", "store_pool", (0,)),
            ("store pool runs/h", "store_pool", (0,)),
            ("store list runs/h", "store_list", (0,)),
            ("store", "help", (0,)),
            ("help store save", "help", (0,)),
        ):  # fmt: skip
            value = self.check(command + " --json", name, statuses)
            words = command.split()
            schema = f"thalia.store.{words[1]}.1" if name.startswith("store_") else "thalia.help.1"
            self.assertEqual(value["schema"], schema)
        newest = self.folder / "runs/a/a/checkpoints/ckpt_a_step00000002.thalia"
        newest.write_bytes(newest.read_bytes()[:-100])
        self.check("store verify runs/a --json", "store_check", (1,))
        found = self.check("store latest runs/a --json", "store_latest")
        self.assertEqual((len(found["attempts"]), len(found["warnings"])), (2, 1))
        (self.folder / "runs/h/run.toml").write_text("version = 7\n")
        self.assertEqual([one["run"] is None for one in self.check("store list runs --json", "store_list")["runs"]],
                         [False, True])  # fmt: skip
        with subprocess.Popen(
            [program.THALIA, "store", "watch", "runs/a", "--json"], cwd=self.folder, stdout=subprocess.PIPE
        ) as process:
            CHECKER.check_object(parsed(process.stdout.readline().decode()), "store_watch", "store watch")
            process.terminate()
        self.assertEqual(CHECKER.faults, [])

    def test_every_command_prints_json_or_says_why_not(self):
        tree = self.printed("help --json")["commands"]
        titles = re.findall(r"^## (.*)$", DOCUMENT, flags=re.MULTILINE)
        described = {name for title in titles for name in title.split(", ")}
        self.assertGreater(len(tree), 30)
        for command in tree:
            if any("--json" in option["names"] for option in command["options"]):
                self.assertIn(command["name"], described)
                continue
            result = program.run(self.folder, f"{command['name']} --json x y")
            self.assertEqual((result.returncode, result.stdout), (2, b""), command["name"])
            message = parsed(result.stderr.decode())["error"]["message"]
            why = "--format json prints JSON" if command["name"] == "cat" else "it has no result to print"
            self.assertEqual(message, f"--json: {command['name']} does not take it: {why}")

    def test_4_errors(self):
        (self.folder / "short.thalia").write_bytes((self.folder / "basic.thalia").read_bytes()[:300])
        for command, code in (
            ("info missing.thalia", "io"),
            ("info short.thalia", "truncated"),
            ("ls basic.thalia cortx", "not_found"),
            ("ls basic.thalia w_q*", "not_found"),
            ("ls basic.thalia --sort colour", "bad_argument"),
            ("stats basic.thalia nothing", "not_found"),
            ("diff basic.thalia", "bad_argument"),
            ("diff basic.thalia missing.thalia", "io"),
            ("verify", "bad_argument"),
            ("verify --qick basic.thalia", "bad_argument"),
            ("lss basic.thalia", "not_found"),
            ("convert basic.thalia large.thalia", "exists"),
            ("salvage short.thalia new.thalia", "checksum_mismatch"),
            ("extract basic.thalia --regions nowhere new.thalia", "not_found"),
            ("prune prunable.thalia new.thalia --region cortx", "not_found"),
            ("grow basic.thalia cortex --neurons 0", "bad_argument"),
        ):
            as_text = program.run(self.folder, command)
            result = program.run(self.folder, command + " --json")
            self.assertEqual((result.stdout, result.returncode), (b"", as_text.returncode), command)
            self.assertEqual(result.stderr.count(b"\n"), 1, command)
            value = parsed(result.stderr.decode("utf-8"))
            CHECKER.check_object(value, "error_line", command)
            self.assertEqual(CHECKER.faults, [])
            self.assertEqual(value["error"]["code"], code, command)
            self.assertEqual(as_text.stderr.decode("utf-8"), f"thalia: {value['error']['message']}\n", command)
        (self.folder / "short.thalia").unlink()

    def test_5_verify_tells_of_every_file(self):
        result = program.run(self.folder, "verify missing.thalia basic.thalia --json")
        self.assertEqual(result.returncode, 3)
        value = parsed(result.stdout.decode("utf-8"))
        CHECKER.check_object(value, "verify", "verify")
        CHECKER.check_object(parsed(result.stderr.decode("utf-8")), "error_line", "verify")
        self.assertEqual(CHECKER.faults, [])
        self.assertEqual([file["ok"] for file in value["files"]], [False, True])

    def test_6_every_member_of_the_document_was_seen(self):
        documented = {(name, member) for name, members in OBJECTS.items() for member in members}
        known = {pair for pair in documented if pair[1] != "*"}
        self.assertEqual(sorted(known - CHECKER.seen - RARE), [])

    def test_checks_can_fail(self):
        checker = Checker()
        checker.check_object({"schema": "thalia.log.2", "format": 1, "more": []}, "log", "it")
        self.assertEqual(
            checker.faults,
            ["it.schema: 'thalia.log.2' is no \"thalia.log.1\"", "it.format: 1 is no string",
             "it: log has no files", "it: log has more, which is not in docs/use/json.md"],
        )  # fmt: skip


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
