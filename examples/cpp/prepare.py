"""Writes what airfoil.cpp reads: the plan, and its fields as raw values in the plan's numbering.

python examples/cpp/prepare.py --cells 720000 airfoil
    -> airfoil.plan.h5, airfoil.x.bin (doubles), airfoil.bound.bin (64-bit whole numbers)
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from airfoil import bound, coordinates, prepared_airfoil
from meshprep.pipeline.steps import Prepared


def write(prepared: Prepared, prefix: str) -> None:
    """The three files, each named ``prefix`` and what it holds."""
    prepared.plan.save(f"{prefix}.plan.h5")
    coordinates(prepared).astype("<f8").tofile(f"{prefix}.x.bin")
    bound(prepared).astype(np.int64).tofile(f"{prefix}.bound.bin")


def main() -> None:
    """Prepare the generated mesh."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("prefix", help="what the names of the files begin with")
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--block-size", type=int, default=4096, help="256 for a GPU")
    parser.add_argument("--target", choices=("cpu", "gpu"), default="cpu")
    given = parser.parse_args()
    write(prepared_airfoil(given.cells, given.block_size, given.target), given.prefix)


if __name__ == "__main__":
    main()
