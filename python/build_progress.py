"""Tells the terminal how far a build is: pip keeps what a backend prints, unless -v is given or it fails."""

import contextlib
import re
import threading
import time

SECONDS_BETWEEN_LINES = 10


COMPILED = re.compile(r"build ([^:]+): \w+_COMPILER ")


def compiled(build):
    """How many objects of a build folder are compiled, and how many there will be; None before it is configured."""
    try:
        every = set(COMPILED.findall((build / "build.ninja").read_text(encoding="utf-8")))
        log = (build / ".ninja_log").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    ended = {fields[3] for line in log.splitlines() if len(fields := line.split("\t")) > 3}
    return len(every & ended), len(every)


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
                if (counts := compiled(build)) is not None:
                    say(f"{counts[0]} of {counts[1]} objects compiled after {time.monotonic() - begun:.0f} s")

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
