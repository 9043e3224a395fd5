"""This library's side: the program peer_side of the build folder."""

import subprocess

from .rounds import Unable


class Ours:
    """Answers each command of peer_side.cc with its number."""

    def __init__(self, build):
        program = build / "bench/peer_side"
        if not program.exists():
            raise Unable(f"{program}: not built; meson setup {build} -Dbenchmarks=enabled")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([program], **pipes)

    def __call__(self, *words):
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise Unable(f"peer_side: {answer.removeprefix('error: ') or 'ended'}")
        return float(answer)

    def close(self):
        self._process.stdin.close()
        self._process.wait()
