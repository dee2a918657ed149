"""A headless Chromium, spoken to over a pipe (DevTools protocol) with the standard library."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0
CONNECT = (
    "import os, sys; _, a, b, *words = sys.argv;"
    "os.dup2(int(a), 3); os.dup2(int(b), 4); os.execv(words[0], words)"
)


def find_browser():
    """The program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page; commands are sent and answered in turn, events are kept."""

    def __init__(self, program):
        to_read, self._write = _high(os.pipe())
        self._read, to_write = _high(os.pipe())
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # the browser reads commands from file 3 and answers on file 4
        words = [sys.executable, "-S", "-c", CONNECT, str(to_read), str(to_write)]
        words += [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        words += ["--disable-dev-shm-usage", "--remote-debugging-pipe"]
        words += [f"--user-data-dir={self._home.name}"]

        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(words, pass_fds=(to_read, to_write), **quiet)
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self.events, self._session = b"", 0, [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)
        self._home.cleanup()

    def send(self, method, **params):
        """Call a method; returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path, width, *, dark=False):
        """Load a file in a window of this width; returns the events until it was loaded."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        shape = {
            "width": width,
            "height": 800,
            "deviceScaleFactor": 1,
            "mobile": width < 600,
        }
        self.send("Emulation.setDeviceMetricsOverride", **shape)
        self.events = []
        self.send("Page.navigate", url=path.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())
        return self.events

    def evaluate(self, expression):
        """The value of JavaScript; it must be JSON."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _next(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)


def _high(pair):
    """The two ends as numbers that do not collide with 3 and 4."""
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pair)
    for end in pair:
        os.close(end)
    return moved
