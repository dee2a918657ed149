"""Ranks as threads of one process; what they send travels as bytes."""

import pickle
import threading
from dataclasses import replace

from meshprep.distribute.homes import Homes


class ThreadRank:
    """One of several threads that do what ranks of MPI do; values travel as bytes."""

    def __init__(self, rank, size, barrier, slots):
        self.rank, self.size, self._barrier, self._slots = rank, size, barrier, slots

    def allgather(self, value):
        self._slots[self.rank] = pickle.dumps(value)
        self._barrier.wait(60)
        found = [pickle.loads(one) for one in self._slots]
        self._barrier.wait(60)
        return found

    def bcast(self, value):
        return self.allgather(value)[0]

    def alltoall(self, values):
        return [one[self.rank] for one in self.allgather(values)]


def on_ranks(size, work):
    """What ``work(rank)`` gives or raises, on each of so many ranks."""
    barrier, slots, found = threading.Barrier(size), [b""] * size, [None] * size

    def one(rank):
        try:
            found[rank] = work(ThreadRank(rank, size, barrier, slots))
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def slice_of(subject, ranks):
    """The rows of a subject that are at home on a rank."""
    own = {name: Homes(n, ranks).own for name, n in subject.sizes.items()}

    def rows(name, values):
        return values[own[name].start : own[name].stop]

    maps = {n: replace(m, table=rows(m.from_set, m.table)) for n, m in subject.maps.items()}
    places = {name: rows(name, where) for name, where in subject.centroids.items()}
    values = {at: rows(at.split("/")[1], of) for at, of in subject.values.items()}
    tags = tuple(replace(tag, values=rows(tag.set, tag.values)) for tag in subject.tags)
    return replace(subject, maps=maps, centroids=places, values=values, tags=tags)
