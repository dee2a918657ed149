"""A plan of random orders, values moved and back, and NumPy files as bytes."""

import zipfile
from io import BytesIO

import numpy as np

from meshprep.io.fields import move_files
from meshprep_runtime import Ordering, Plan

SIZES = {"nodes": 7, "cells": 5, "edges": 11, "twins": 5}


def make_plan(folder, sizes=SIZES, source="", mesh="", seed=0):
    random = np.random.default_rng(seed)
    order = {n: Ordering.from_new_to_old(random.permutation(s)) for n, s in sizes.items()}
    path = folder / "a.plan.h5"
    Plan(sizes, order, {}, {}, source, mesh).save(path, overwrite=True)
    return path, order


def npy(values):
    file = BytesIO()
    np.save(file, values)
    return file.getvalue()


def npz(*members):
    """An archive with members of these names, numbers from 0 each."""
    with zipfile.ZipFile(file := BytesIO(), "w") as archive:
        for name, n in members:
            archive.writestr(name, npy(np.arange(n)))
        archive.comment = b"of a run"
    return file.getvalue()


def there_and_back(plan, path, **options):
    """Apply and restore through files; returns both."""
    options = {"overwrite": True} | options
    (there,) = move_files(plan, [path], **options)
    (back,) = move_files(plan, [there.written], inverse=True, **options)
    return there.written, back.written
