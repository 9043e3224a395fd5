"""Runs a script that is one process of several: python run_rank.py SCRIPT ARGUMENT…

A thread of Gloo that lets go of a tensor while the interpreter ends kills the process (PyTorch issue
190489), and DeepSpeed and DistributedDataParallel keep Gloo's threads that long. So the process ends
after the functions of atexit: in these, this package does all that it has to.
"""

import atexit
import os
import runpy
import sys

status = 1


def end():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run():
    """What the arguments name."""
    global status
    atexit.register(end)  # first, so it is called last
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    status = 0


if __name__ == "__main__":
    import run_rank

    run_rank.run()
