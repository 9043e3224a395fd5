"""Tells the terminal how far a build is: pip keeps what a backend prints, unless -v is given or it fails."""

import contextlib
import threading
import time

SECONDS_BETWEEN_LINES = 10


def steps(build):
    """How many steps of a build folder are done, and how many there are; None before it is configured."""
    try:
        every = sum(line.startswith("build ") for line in (build / "build.ninja").open(encoding="utf-8"))
        done = {line.rsplit("\t", 2)[1] for line in (build / ".ninja_log").open(encoding="utf-8") if "\t" in line}
    except FileNotFoundError:
        return None
    return min(len(done), every), every


@contextlib.contextmanager
def told(what, build, terminal="/dev/tty", between=SECONDS_BETWEEN_LINES):
    """Tells the terminal that a build has begun, how far it is, and how it ended."""
    with contextlib.ExitStack() as stack:
        try:
            out = stack.enter_context(open(terminal, "w", encoding="utf-8"))
        except OSError:  # nobody sits there
            yield
            return
        begun = time.monotonic()

        def say(text):
            with contextlib.suppress(OSError):  # a terminal may go away; the build does not
                out.write(f"\r\n  {what}: {text}\r\n")
                out.flush()

        def tell():
            while not ended.wait(between):
                if (counts := steps(build)) is not None:
                    say(f"{counts[0]} of {counts[1]} steps after {time.monotonic() - begun:.0f} s")

        say("compiling the library and the module, which takes some minutes")
        ended = threading.Event()
        teller = threading.Thread(target=tell)
        teller.start()
        result = "failed"
        try:
            yield
            result = "built"
        finally:
            ended.set()
            teller.join()
            say(f"{result} after {time.monotonic() - begun:.0f} s")
