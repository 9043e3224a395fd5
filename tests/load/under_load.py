"""Runs programs at once, again and again, beside busy loops, as on a machine that others use too.

usage: under_load.py TIMES LOOPS PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...

A test that counts on when a thread runs passes on an idle machine. The first run that fails ends
it, with that run's output and status.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile


def spin(parent):
    """A loop ends by itself where its parent was killed and could not end it."""
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass


def parted(words):
    """The commands between the words "--"."""
    commands = [[]]
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def run(times, commands):
    for number in range(1, times + 1):
        started = []
        for command in commands:
            output = tempfile.TemporaryFile()  # a pipe that nobody reads would stop it
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            started.append((command, process, output))
        for command, process, output in started:
            if process.wait() != 0:
                output.seek(0)
                sys.stdout.buffer.write(output.read())
                status = process.returncode
                print(f"run {number} of {times} under load ended with status {status}: {' '.join(command)}")
                return 1
            output.close()
    print(f"{times} runs under load passed")
    return 0


def end_children():
    """The loops, and the programs, which SIGTERM may have found started and not yet in any variable."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        for child in file.read().split():
            os.kill(int(child), signal.SIGKILL)


def main():
    times, loops, commands = int(sys.argv[1]), int(sys.argv[2]), parted(sys.argv[3:])
    if times < 1 or loops < 1 or not all(commands):
        raise SystemExit(__doc__)
    # Meson ends a test that takes too long by SIGTERM: as any other end, it goes through `finally`.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    context = multiprocessing.get_context("fork")
    busy = [context.Process(target=spin, args=(os.getpid(),), daemon=True) for _ in range(loops)]
    try:
        for process in busy:
            process.start()
        return run(times, commands)
    finally:
        end_children()
        for process in busy:
            if process.pid is not None:
                process.join()


if __name__ == "__main__":
    sys.exit(main())
