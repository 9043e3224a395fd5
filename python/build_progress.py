"""Tells the terminal how far a build is: pip keeps what a backend prints, unless -v is given or it fails.

Where it fails for what is missing, that is said last, in one line: pip shows all else that was printed before it.
"""

import contextlib
import re
import sys
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


def reason(build):
    """What meson.build said when it refused, as that a library is missing; "" where that is not why a build failed."""
    try:
        log = (build / "meson-logs/meson-log.txt").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    said = re.findall(r"ERROR: Problem encountered: (.*)", log)
    return said[-1] if said else ""


@contextlib.contextmanager
def explained(what, build):
    """Says last why a build failed."""
    try:
        yield
    except SystemExit:
        if said := reason(build):
            print(f"\n{what}: {said}", file=sys.stderr, flush=True)
        raise


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
            if result == "failed" and (said := reason(build)):
                result = f"failed: {said};"
            ended.set()
            teller.join()
            say(f"{result} after {time.monotonic() - begun:.0f} s")
