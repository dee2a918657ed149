import os
import signal

import pytest

from meshprep_cli import console
from meshprep_cli.stopping import stop_if_asked, stoppable


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
