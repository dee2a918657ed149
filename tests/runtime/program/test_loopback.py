"""Ranks in one process: messages, sums, order, and what goes wrong."""

import subprocess
import sys
import time

import numpy as np
import pytest

from meshprep_runtime.errors import DistributedError
from meshprep_runtime.program import loopback
from meshprep_runtime.program.loopback import LoopbackRequest, run_ranks


def ring(comm):
    """Each rank tells its neighbours what it is."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    found = np.zeros((2, 3), "i8")
    requests = [comm.Irecv(found[i], p, 5) for i, p in enumerate((left, right))]
    mine = np.full(3, comm.rank)
    requests += [comm.Isend(mine, p, 5) for p in (left, right)]
    while not LoopbackRequest.Testall(requests[:2]):
        pass
    LoopbackRequest.Waitall(requests)
    return found[:, 2].tolist()


@pytest.mark.parametrize("ranks", [3, 4, 64])
@pytest.mark.parametrize("seed", [0, 1])
def test_messages(ranks, seed):
    expected = [[(r - 1) % ranks, (r + 1) % ranks] for r in range(ranks)]
    assert run_ranks(ranks, ring, seed=seed) == expected


def test_collective_calls():
    def main(comm):
        every = np.zeros(3, "u1")
        comm.Iallgather(np.array([comm.rank], "u1"), every).Wait()
        comm.Barrier()
        said = comm.bcast(f"from {comm.rank}", root=2)
        return every.tolist(), said, comm.gather(comm.rank, root=1)

    found = run_ranks(3, main)
    assert [f[:2] for f in found] == [([0, 1, 2], "from 2")] * 3
    assert [f[2] for f in found] == [None, [0, 1, 2], None]


class SteppedClock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_message_that_arrives_while_ranks_are_looked_at(monkeypatch):
    """It is neither there at the first look nor to come at the second one."""

    def main(comm):
        values = np.zeros(1)
        if comm.rank == 0:
            comm.Isend(np.ones(1), 1).Wait()
        else:
            comm.Irecv(values, 0).Wait()
        comm.Barrier()
        return values[0]

    for delay in range(1, 9):
        monkeypatch.setattr(loopback, "time", SteppedClock())
        assert run_ranks(2, main, delay=delay) == [0, 1]


def test_a_seed_repeats_a_run():
    def order(seed):
        seen = []

        def main(comm):
            for _ in range(5):
                seen.append(comm.rank)
                comm.Barrier()

        run_ranks(4, main, seed=seed)
        return seen

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_messages_of_one_sender_arrive_in_their_order():
    def main(comm):
        if comm.rank == 0:
            sent = [np.array([i]) for i in range(8)]
            LoopbackRequest.Waitall([comm.Isend(s, 1) for s in sent])
            return None
        found = np.zeros((8, 1), int)
        LoopbackRequest.Waitall([comm.Irecv(f, 0) for f in found])
        return found[:, 0].tolist()

    assert run_ranks(2, main, seed=3)[1] == list(range(8))


def test_a_buffer_is_read_as_late_as_mpi_may():
    """What a rank changes before it has waited for its message may arrive changed."""

    def main(comm):
        values = np.array([1])
        if comm.rank == 0:
            request = comm.Isend(values, 1)
            values[0] = 2
            comm.Barrier()
            request.Wait()
            return None
        comm.Barrier()
        comm.Irecv(values, 0).Wait()
        return int(values[0])

    assert run_ranks(2, main)[1] == 2


def test_messages_take_their_time():
    begin = time.perf_counter()
    run_ranks(3, ring, delay=0.05)
    assert time.perf_counter() - begin > 0.05


def test_ranks_that_all_wait():
    def main(comm):
        comm.Irecv(np.zeros(1), 1 - comm.rank).Wait()

    said = "every rank waits: rank 0 waits for a message of rank 1, rank 1 waits for a"
    with pytest.raises(DistributedError, match=said):
        run_ranks(2, main)
    with pytest.raises(DistributedError, match="every rank waits: rank 0 waits in Barrier"):
        run_ranks(2, lambda comm: comm.Barrier() if comm.rank == 0 else None)


def test_collective_calls_that_differ():
    def main(comm):
        if comm.rank:
            comm.Barrier()
        else:
            comm.bcast(1)

    with pytest.raises(DistributedError, match="but another rank in"):
        run_ranks(3, main)


def test_messages_that_are_too_long():
    def main(comm):
        if comm.rank:
            comm.Isend(np.zeros(3), 0).Wait()
        else:
            comm.Irecv(np.zeros(2), 1).Wait()

    with pytest.raises(
        DistributedError, match="a message of 24 bytes came where 16 were awaited"
    ):
        run_ranks(2, main)


def test_a_rank_that_fails_stops_the_others():
    stopped = []

    def main(comm):
        if comm.rank == 1:
            raise ValueError("no such cell")
        try:
            comm.Barrier()
        finally:
            stopped.append(comm.rank)

    with pytest.raises(ValueError, match="no such cell"):
        run_ranks(4, main)
    assert set(stopped) <= {0, 2, 3}
    with pytest.raises(DistributedError, match="rank 2 has ended all with code 3"):
        run_ranks(3, lambda comm: comm.Abort(3) if comm.rank == 2 else comm.Barrier())


INTERRUPTED = """
import signal, threading, time
from meshprep_runtime import run_ranks

# programs in the background ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
main_thread, turns = threading.main_thread().ident, []

def main(comm):
    if comm.rank == 0:
        signal.pthread_kill(main_thread, signal.SIGINT)
    for _ in range(200):
        time.sleep(0.01)
        comm.Barrier()
        turns.append(comm.rank)

try:
    run_ranks(2, main)
except KeyboardInterrupt:
    before = len(turns)
    time.sleep(0.1)
    print(before < 400, len(turns) == before)
"""


def test_an_interrupt_ends_all_ranks():
    """In a process of its own, so that no other test is interrupted."""
    words = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True\n", done.stderr
