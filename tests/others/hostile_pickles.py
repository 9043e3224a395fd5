"""The samples of scanners of pickles: each is refused, or opens with opaque objects. Nothing runs, nothing takes long.

The samples are the files beside the scanner's tests and the pickles that its tests make, which are run for
that in a process of their own, without a network where unshare may take it away. A pickle is also read from
an archive as torch.save() writes them.
"""

import contextlib
import io
import json
import os
import pathlib
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import pytest
import thalia_checkpoint as thalia

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = pathlib.Path(os.environ["THALIA_OTHERS_SOURCES"])
PROGRAM = os.environ.get("THALIA_PROGRAM") or shutil.which("thalia")
TRACE = shutil.which("strace")
ADDRESS_SPACE = 4 << 30
CPU_SECONDS = 10
SLOW_SECONDS = 2.0
#: What a pickle that runs would do, as Python tells its audit hooks.
EVENTS = (
    "import", "exec", "compile", "pickle.", "marshal.", "os.system", "os.exec", "os.posix_spawn", "os.fork",
    "os.remove", "os.mkdir", "os.rename", "shutil.", "subprocess.", "socket.", "urllib.", "http.", "ftplib.",
    "smtplib.", "ctypes.", "code.", "builtins.", "webbrowser.", "pty.", "sys.setprofile", "sys.settrace",
)  # fmt: skip
COMMANDS = (("info",), ("ls",), ("verify",), ("convert", "out.npz"))


def _recorded(folder):
    """Pickles that the scanner's own tests make, in a new folder."""
    folder.mkdir()
    tests = next(path for path in (SOURCES / "test", SOURCES / "tests") if path.is_dir())
    paths = [HERE, SOURCES, SOURCES / "src", *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "record_pickles", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", tests]
    if shutil.which("unshare") and subprocess.call(["unshare", "-rn", "true"], stderr=subprocess.DEVNULL) == 0:
        command = ["unshare", "-rn", *command]
    environment = os.environ | {
        "THALIA_OTHERS_RECORD": str(folder),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return sorted(folder.glob("*.pkl"))


def _samples():
    """Name and bytes of each, once."""
    found = {}
    for path in sorted(SOURCES.glob("test*/data*/*")) + sorted(SOURCES.glob("test*/fixtures/*.p*t*")):
        if path.is_file():
            found.setdefault(path.read_bytes(), path.name)
    with tempfile.TemporaryDirectory(prefix="thalia-pickles-") as folder:
        for path in _recorded(pathlib.Path(folder) / "recorded"):
            found.setdefault(path.read_bytes(), path.name)
    samples = []
    for data, name in found.items():
        samples.append(pytest.param(data, name, id=name))
        if not data.startswith((b"PK", b"7z", b"\x93NUMPY")):
            samples.append(pytest.param(_archive(data), "archive.pt", id=f"{name} in an archive"))
    return samples


def _archive(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/byteorder", b"little")
        archive.writestr("archive/data/0", bytes(64))
        archive.writestr("archive/version", b"3\n")
    return out.getvalue()


SAMPLES = _samples()


def test_there_are_samples():
    assert len(SAMPLES) > 100


class _Runs:
    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.usefixtures("warm")
def test_what_a_pickle_runs_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(CALLS, "pickle", lambda _: pickle.loads(pickle.dumps(_Runs())))
    assert any("os.system" in event for event in _in_a_process("pickle", tmp_path / "none")["ran"])


def _limits():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


@pytest.fixture
def sample(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data)
    yield path
    assert {inner.name for inner in tmp_path.iterdir()} <= {name, "out.npz", "trace"}, "a file was made"


def _cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(("data", "name"), SAMPLES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_program(sample, command):
    assert PROGRAM is not None, "THALIA_PROGRAM names no program"
    call = [PROGRAM, command[0], sample.name, *command[1:]]
    if TRACE:
        call = [TRACE, "-f", "-qq", "-o", "trace", "-e", "trace=execve,execveat,socket", *call]
    began = _cpu_of_children()
    ended = subprocess.run(
        call, cwd=sample.parent, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, preexec_fn=_limits
    )
    took = _cpu_of_children() - began
    errors = ended.stderr.decode(errors="replace")
    assert ended.returncode in (0, 1, 2, 3), (ended.returncode, errors)
    # verify tells what is wrong in its report.
    assert ended.returncode == 0 or command[0] == "verify" or errors.startswith("thalia: "), errors
    if TRACE:
        calls = (sample.parent / "trace").read_text().splitlines()
        assert len(calls) == 1 and "execve(" in calls[0], calls
    assert took < SLOW_SECONDS, f"{took:.1f} s"


CALLS = {
    "open": lambda path: [tensor.numpy() for tensor in _all(path) if tensor.size < 1 << 20],
    "info": lambda path: thalia.info(path),
    "verify": lambda path: thalia.verify(path),
    "convert": lambda path: thalia.convert(path, "out.npz", dense=True, replace=True),
    "load": lambda path: _torch_load(path),
}


def _all(path):
    with thalia.open(path) as file:
        return list(file.tensors.values())


def _torch_load(path):
    import thalia_checkpoint.torch

    return thalia_checkpoint.torch.load(path)


def _called(call, path):
    """In a process of its own: what came of it, and what ran."""
    _limits()
    os.chdir(path.parent)
    seen = []
    watching = True

    def hook(event, arguments):
        if watching and event.startswith(EVENTS):
            seen.append(f"{event}: {str(arguments)[:200]}")

    sys.addaudithook(hook)
    began = time.process_time()
    try:
        CALLS[call](path)
        outcome = "opened"
    except thalia.errors.ThaliaError as error:
        outcome = "refused" if str(error) else "an error without words"
    except BaseException as error:  # of which none is expected
        outcome = f"{type(error).__name__}: {error}"
    took = time.process_time() - began
    watching = False
    return {"outcome": outcome, "ran": seen, "took": took}


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """What the calls import of this package's own accord is in memory."""
    path = tmp_path_factory.mktemp("warm") / "warm.pt"
    thalia.convert(thalia_file(path.with_suffix(".thalia")), path)
    before = os.getcwd()
    os.chdir(path.parent)
    for call in CALLS.values():
        for inner in (path, thalia_file(path.with_name("text.pt"), b"no file")):
            with contextlib.suppress(thalia.errors.ThaliaError):
                call(inner)
    os.chdir(before)


def thalia_file(path, data=None):
    if data is not None:
        path.write_bytes(data)
    else:
        with thalia.Writer(path) as writer:
            writer.add("a/w", [1.0, 2.0])
    return path


@pytest.mark.parametrize(("data", "name"), SAMPLES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("warm")
def test_package(sample, call):
    if call == "load":
        pytest.importorskip("thalia_checkpoint.torch")
    result = _in_a_process(call, sample)
    assert result["outcome"] in ("opened", "refused")
    assert not result["ran"]
    assert result["took"] < SLOW_SECONDS


def _in_a_process(call, path):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(_called(call, path)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as end:
        told = end.read()
    _, status = os.waitpid(child, 0)
    assert status == 0 and told, f"ended with {status}"
    return json.loads(told)
