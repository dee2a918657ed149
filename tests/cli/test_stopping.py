import os
import signal
import subprocess
import sys
import time

import effort
import pytest

from meshprep_cli import console
from meshprep_cli.process import stop_if_asked, stoppable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_was_swallowed_ends_the_run_at_the_next_stage(number):
    with stoppable():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        with console.progress(quiet=True) as report, pytest.raises(KeyboardInterrupt):
            report(1, 3, "locality")
    with stoppable():
        stop_if_asked()


def test_handlers_are_as_before_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


# Ctrl-C while the program imports: raised there, swallowed by a callback, or turned into an error.
STOPPED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            {stop}
sys.meta_path.insert(0, Finder())
class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
from meshprep_cli.main import main
sys.exit(main(["info", "nowhere.msh"]))
"""
INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"


CAUGHT = f"""
            try: {INTERRUPT}
            except KeyboardInterrupt: raise ImportError("no numpy")"""
STOPS = [
    ("numpy", INTERRUPT),
    ("typer", INTERRUPT),
    ("numpy", "Dying()"),
    ("numpy", CAUGHT),
]


@pytest.mark.parametrize(("module", "stop"), effort.first(STOPS))
def test_ctrl_c_while_the_program_imports_is_one_line(module, stop):
    code = STOPPED.format(module=module, stop=stop)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "meshprep: error: interrupted: nothing was written\n"
    assert (done.returncode, done.stdout) == (130, "")


def test_a_compiler_keeps_its_lock_until_it_lets_go():
    """A signal inside of llvmlite is put off: its lock would stay taken."""
    scope = {"__name__": "llvmlite.binding.ffi", "signal": signal, "passed": []}
    exec(
        "def held():\n    signal.raise_signal(signal.SIGTERM)\n    passed.append(1)", scope
    )
    with stoppable():
        scope["held"]()
        assert scope["passed"] == [1]
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(120)
        # a sleep does not last until its end
        assert time.monotonic() - begin < 60
