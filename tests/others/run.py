"""Runs the tests of other packages on this one, with the import or the storage swapped.

    run.py SUITE [--sources FOLDER] [--keep FOLDER]

Suites and where their tests come from are in SUITES below. Where `sources` is set, the tests are not
part of an installed package: --sources names a checkout of the repository, at the version given. It is
read and never changed, and nothing of it is kept here.

A test that fails because this package differs on purpose is listed in differs/SUITE.txt, a line each:
its name, " | ", and why. A pattern with "*" may stand for several. Any other failure fails the run,
and so does a line that no failing test needs any more. The last line counts: "N passed, N failed, N
skipped", where differences on purpose count as neither.
"""

import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Suite:
    tests: tuple[str, ...]
    """Files of the sources, or modules of an installed package, or files beside this one."""
    plugin: str = ""
    """What swaps the import: a pytest plugin beside this file."""
    sources: str = ""
    """The repository and version that --sources is a checkout of."""
    options: tuple[str, ...] = ()
    folder: str = ""
    """Of the sources, that the tests run in."""
    alone: bool = False
    """The package of the sources lies around its tests, and would be imported with them."""


LIGHTNING = (
    "tests/tests_pytorch/checkpointing/test_model_checkpoint.py",
    "tests/tests_pytorch/checkpointing/test_trainer_checkpoint.py",
    "tests/tests_pytorch/checkpointing/test_checkpoint_callback_frequency.py",
    "tests/tests_pytorch/callbacks/test_model_checkpoint_edge_cases.py",
    "tests/tests_pytorch/callbacks/test_model_checkpoint_additional_cases.py",
)

SUITES = {
    "numpy": Suite(tests=("numpy.lib.tests.test_format",), plugin="swap_numpy"),
    "onnx": Suite(tests=("onnx_data.py",)),
    "json": Suite(tests=("json_texts.py",), sources="nst/JSONTestSuite"),
    "picklescan": Suite(tests=("hostile_pickles.py",), sources="mmaitre314/picklescan 1.0.5"),
    "fickling": Suite(tests=("hostile_pickles.py",), sources="trailofbits/fickling 0.1.12"),
    "safetensors": Suite(
        tests=(
            "bindings/python/tests/test_simple.py",
            "bindings/python/tests/test_pt_comparison.py",
            "bindings/python/tests/test_pt_model.py",
            "bindings/python/tests/test_flax_comparison.py",
            "bindings/python/tests/test_handle.py",
            "bindings/python/tests/test_multithreaded.py",
            "bindings/python/tests/test_threadable.py",
            "bindings/python/tests/test_pread_backend.py",
        ),
        plugin="swap_safetensors",
        folder="bindings/python",
        sources="huggingface/safetensors 0.8.0",
    ),
    "accelerate": Suite(
        tests=("tests/test_state_checkpointing.py",),
        plugin="swap_accelerate",
        sources="huggingface/accelerate 1.15.0",
    ),
    "torch": Suite(
        tests=(
            "test/distributed/checkpoint/test_file_system_checkpoint_cpu.py",
            "test/distributed/checkpoint/test_file_system_checkpoint.py",
            "test/distributed/checkpoint/test_planner.py",
            "test/distributed/checkpoint/test_compatibility.py",
            "test/distributed/checkpoint/test_format_utils.py",
            "test/distributed/checkpoint/test_save_load_api.py",
            "test/distributed/checkpoint/test_dtensor_checkpoint.py",
            "test/distributed/checkpoint/test_dtensor_resharding.py",
            "test/distributed/checkpoint/test_tp_checkpoint.py",
            "test/distributed/checkpoint/test_fsdp_model_state.py",
            "test/distributed/checkpoint/test_fsdp_tp_checkpoint_conversion.py",
            "test/distributed/checkpoint/test_hsdp_checkpoint.py",
            "test/distributed/checkpoint/e2e/test_e2e_save_and_load.py",
            "test/distributed/checkpoint/e2e/test_fine_tuning.py",
            "test/distributed/checkpoint/e2e/test_pipeline.py",
        ),
        plugin="swap_torch",
        sources="pytorch/pytorch 2.6",
        # Two need a GPU whatever the storage is: NCCL, and pinned memory of staging.
        options=("--noconftest", "-p", "no:warnings", "-k", "not test_no_cpu and not staged_state_dict_True"),
    ),
    "orbax": Suite(
        tests=("checkpoint/orbax/checkpoint/_src/handlers/standard_checkpoint_handler_test.py",),
        plugin="swap_orbax",
        sources="google/orbax, checkpoint 0.12",
        options=("-p", "no:warnings"),
        alone=True,
    ),
    "orbax_pytree": Suite(
        tests=("checkpoint/orbax/checkpoint/_src/handlers/pytree_checkpoint_handler_test.py",),
        plugin="swap_orbax",
        sources="google/orbax, checkpoint 0.12",
        options=("-p", "no:warnings"),
        alone=True,
    ),
    "lightning": Suite(
        tests=LIGHTNING,
        plugin="swap_lightning",
        sources="Lightning-AI/pytorch-lightning 2.6",
        options=("-p", "no:warnings"),
    ),
    "lightning_async": Suite(
        tests=LIGHTNING,
        plugin="swap_lightning_async",
        sources="Lightning-AI/pytorch-lightning 2.6",
        options=("-p", "no:warnings"),
    ),
}


def read_differences(name: str) -> dict[str, str]:
    path = HERE / "differs" / f"{name}.txt"
    differences = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        pattern, separator, reason = line.partition(" | ")
        if not separator or not reason.strip():
            sys.exit(f"{path}: no reason: {line}")
        differences[pattern.strip()] = reason.strip()
    return differences


def test_files(suite: Suite, sources: pathlib.Path | None, work: pathlib.Path) -> list[str]:
    if suite.plugin and not suite.sources:
        return ["--pyargs", *suite.tests]
    if not suite.plugin:
        return [str(HERE / name) for name in suite.tests]
    assert sources is not None
    # A copy: tests write beside themselves, and the package of the sources is not to be imported.
    files = []
    for name in suite.tests:
        if suite.alone:
            files.append(shutil.copy(sources / name, work))
            continue
        top = sources / pathlib.Path(name).parts[0]
        copied = work / top.name
        if not copied.exists():
            shutil.copytree(top, copied, ignore=shutil.ignore_patterns("*.so", "target", "__pycache__"))
        files.append(str(work / name))
    return files


def run(suite: Suite, sources: pathlib.Path | None, work: pathlib.Path) -> list[tuple[str, str, str]]:
    """Name, outcome and the last line of what failed, of each test."""
    report = work / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    if suite.plugin:
        command += ["-p", suite.plugin]
    # The tests run in a folder of their own.
    paths = [HERE, *map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    if sources is not None:
        environment["THALIA_OTHERS_SOURCES"] = str(sources.resolve())
    command += ["--continue-on-collection-errors", *suite.options, *test_files(suite, sources, work)]
    ended = subprocess.run(command, cwd=work / suite.folder, env=environment, stdin=subprocess.DEVNULL, check=False)
    if not report.exists():
        sys.exit(f"pytest ended with {ended.returncode} and reported no test")
    outcomes = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
        failed = [*case.iter("failure"), *case.iter("error")]
        if failed:
            outcomes.append((name, "failed", (failed[0].get("message") or "").splitlines()[0][:200]))
        else:
            outcomes.append((name, "skipped" if case.find("skipped") is not None else "passed", ""))
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--sources", type=pathlib.Path, help="checkout of the tests' repository")
    parser.add_argument("--keep", type=pathlib.Path, help="work in this folder, and leave it")
    arguments = parser.parse_args()
    suite = SUITES[arguments.suite]
    if suite.sources and arguments.sources is None:
        print(f"skipped: --sources, a checkout of {suite.sources}, is not given")
        return 77
    differences = read_differences(arguments.suite)
    with tempfile.TemporaryDirectory(prefix="thalia-others-") as folder:
        work = arguments.keep or pathlib.Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        outcomes = run(suite, arguments.sources, work)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    used, differing = set(), 0
    for name, outcome, why in outcomes:
        pattern = next((p for p in differences if outcome == "failed" and fnmatch.fnmatchcase(name, p)), None)
        if pattern is not None:
            used.add(pattern)
            differing += 1
            continue
        counts[outcome] += 1
        if outcome == "failed":
            print(f"FAILED {name}: {why}")
    stale = [pattern for pattern in differences if pattern not in used]
    for pattern in stale:
        print(f"FAILED: differs/{arguments.suite}.txt lists {pattern}, which no failing test needs")
    counts["failed"] += len(stale)
    print(f"{len(outcomes)} ran; {differing} differ on purpose")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
