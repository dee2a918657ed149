"""Volna whole: shallow water over a bottom, on triangles, in single precision [S19].

    python examples/volna.py basin.msh examples/wave.toml
    python examples/volna.py basin.msh examples/wave.toml --device gpu

Six loops: fluxes and changes of two stages of Heun's method, a time step, a copy. The file of the
case says how the water stands at the beginning, and when something happens: the fields are written
(any format with fields of cells: .vtu), the water at a place is noted, the bottom rises.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import meshprep
from kernels import volna as kernels
from meshprep import Dat, ElementSet, Mesh, MeshprepError, Options, Prepared, SetMap
from meshprep_runtime import Program
from meshprep_runtime.cuda.device import Device, current

LOOPS = Path(__file__).parent / "kernels" / "volna_whole.toml"
# Of the step in which waves would fill a cell.
CFL = 0.9
# What can happen, and what else it needs.
KINDS = {"write": (), "gauge": ("file",), "raise": ("centre", "radius")}
DATS = {
    "cells": {"state": (4, "f4"), "old": (4, "f4"), "rate": (4, "f4"), "volume": (1, "f4")},
    "edges": {
        **{"normal": (2, "f4"), "length": (1, "f4"), "wall": (1, "i4")},
        **{"flux": (3, "f4"), "source": (2, "f4"), "speed": (1, "f4")},
    },
}


@dataclass(frozen=True)
class Case:
    """How the water begins, and what happens when.

    Parameters
    ----------
    end : float
        Seconds.
    level : float
        Of the water's surface, where ``water`` says nothing else; in metres, as all lengths.
    water : tuple of mapping
        ``box`` (x and y of two corners) and the ``level`` inside.
    events : tuple of mapping
        ``at`` (times) or ``every`` so many seconds, and one of ``write`` (the name of a file, with
        ``{step}``), ``gauge`` (a place; ``file`` gets a line), and ``raise`` (the height of a hill
        that the bottom grows, with ``centre`` and ``radius``; the water moves with it).
    """

    end: float
    level: float = 0.0
    water: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()

    def times(self) -> list[tuple[float, Mapping[str, Any]]]:
        """When each event happens, in the order of time."""
        found = []
        for event in self.events:
            every = event.get("every")
            count = int(self.end / every * (1 + 1e-9)) if every else 0
            at = event.get(
                "at", [0.0, *(k * every for k in range(1, count + 1))] if every else []
            )
            found += [(float(t), event) for t in at if t <= self.end]
        return sorted(found, key=lambda one: one[0])


def read_case(path: Path) -> Case:
    """The case in a TOML file: ``end``, ``level``, tables ``[[water]]`` and ``[[event]]``."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise MeshprepError(f"{path}: cannot be read: {error}") from None
    unknown = sorted(set(content) - {"end", "level", "water", "event"})
    if unknown or "end" not in content:
        what = f"unknown key '{unknown[0]}'" if unknown else "no 'end'"
        raise MeshprepError(f"{path}: {what}: use end, level, [[water]] and [[event]]")
    for i, event in enumerate(content.get("event", [])):
        kinds = [kind for kind in KINDS if kind in event]
        if len(kinds) != 1 or ("at" in event) == ("every" in event):
            raise MeshprepError(
                f"{path}, event {i}: needs one of {', '.join(KINDS)}, and one of at and every"
            )
        if missing := [key for key in KINDS[kinds[0]] if key not in event]:
            raise MeshprepError(f"{path}, event {i}: {kinds[0]} needs '{missing[0]}'")
        if kinds == ["write"]:
            _check_name(f"{path}, event {i}", event["write"])
    tables = (tuple(content.get(name, ())) for name in ("water", "event"))
    return Case(content["end"], content.get("level", 0.0), *tables)


def _check_name(where: str, name: str) -> None:
    try:
        name.format(step=0)
    except (LookupError, ValueError, AttributeError) as error:
        raise MeshprepError(
            f"{where}: write = '{name}': {error!r}: use {{step}} or {{step:04}}"
        ) from None


def with_edges(mesh: Mesh) -> Mesh:
    """The mesh with every edge, its two cells, and the edges of each cell; walls have one twice."""
    if "cells->nodes" not in mesh.maps or mesh.cell_map("cells").arity != 3:
        raise MeshprepError(
            "the mesh is not all of triangles: Volna needs cells of three edges"
        )
    full = meshprep.derive(mesh, ["cells->edges", "edges->nodes"])
    table = full.map("cells->edges").table
    edge, cell = table.ravel(), np.repeat(np.arange(len(table)), 3)
    beside = np.empty((full.size("edges"), 2), np.int32)
    # Of the cells that name an edge the first one stays in column 0, the last one in column 1.
    beside[edge[::-1], 0], beside[edge, 1] = cell[::-1], cell
    return full.with_(maps=[SetMap("edges->cells", "edges", "cells", beside)])


def geometry(mesh: Mesh) -> dict[str, np.ndarray]:
    """What the loops want to know of edges and cells; normals point out of the first cell."""
    x = mesh.coordinates[:, :2]
    corners = x[mesh.map("cells->nodes").table]
    ends, cells = x[mesh.map("edges->nodes").table], mesh.map("edges->cells").table
    (ax, ay), (bx, by) = (corners[:, k].T - corners[:, 0].T for k in (1, 2))
    step = ends[:, 1] - ends[:, 0]
    length = np.hypot(*step.T)
    normal = np.column_stack([step[:, 1], -step[:, 0]]) / length[:, None]
    out = ((ends.mean(axis=1) - corners.mean(axis=1)[cells[:, 0]]) * normal).sum(axis=1)
    return {
        "centre": corners.mean(axis=1),
        "volume": 0.5 * np.abs(ax * by - ay * bx),
        "normal": normal * np.sign(out)[:, None],
        "length": length,
        "wall": cells[:, 0] == cells[:, 1],
    }


def start(mesh: Mesh, case: Case, centre: np.ndarray) -> np.ndarray:
    """Water at rest; the height of the nodes, where they have one, is the bottom's."""
    x = mesh.coordinates
    bottom = x[mesh.map("cells->nodes").table, 2].mean(axis=1) if x.shape[1] > 2 else 0.0
    level = np.full(len(centre), case.level)
    for pool in case.water:
        low, high = np.array(pool["box"]).reshape(2, 2)
        level[((centre >= low) & (centre <= high)).all(axis=1)] = pool["level"]
    state = np.zeros((len(centre), 4))
    state[:, 0], state[:, 3] = np.maximum(level - bottom, 0.0), bottom
    return state


class Volna:
    """The water on a mesh, in the numbering of a plan, and the loops that move it on.

    ``strategy`` is that of the loop that adds through a map; ``keep_order`` plans on the numbering
    of the mesh. With a device the dats lie there; the step stays on the host.
    """

    def __init__(
        self,
        mesh: Mesh,
        case: Case,
        *,
        strategy: str = "auto",
        keep_order: bool = False,
        block_size: int | None = None,
        device: Device | None = None,
    ) -> None:
        self.mesh, self.case, self.time, self.steps = mesh, case, 0.0, 0
        full, self.device = with_edges(mesh), device
        size, target = (4096, "cpu") if device is None else (256, "gpu")
        options = Options(block_size=block_size or size, target=target)
        requests = meshprep.read_requests(LOOPS)
        self.prepared: Prepared = meshprep.prepare(
            full, requests, options, keep_order=keep_order
        )
        self.order = self.prepared.plan.ordering
        known = geometry(full)
        self.centre = known["centre"]
        self.program = Program(self.prepared.plan)
        self.dats = self._dats(known | {"state": start(mesh, case, self.centre)})
        self.step = np.zeros(1, "f4")
        adds = {"space_discretization": {"strategy": strategy}}
        self.loops = {
            name: self.program.loop(getattr(kernels, name), name, **adds.get(name, {}))
            for name in self.prepared.plan.loops
        }

    def _dats(self, known: Mapping[str, np.ndarray]) -> dict[str, Any]:
        made = {}
        for on, dats in DATS.items():
            for name, (dim, dtype) in dats.items():
                values = np.zeros((self.prepared.plan.sizes[on], dim), dtype)
                if name in known:
                    values = np.array(self.order[on].apply(known[name]), dtype)
                given = values if self.device is None else self.device.array(values)
                made[name] = self.program.dat(on, dim, dtype, values=given)
        return made

    def run(self) -> Iterator[tuple[float, Mapping[str, Any]]]:
        """Go to the end; yields time and table of each event after it has happened."""
        for event in self.case.events:
            if "gauge" in event:
                Path(event["file"]).write_text("time,depth,surface\n", encoding="utf-8")
        for time, event in self.case.times():
            self.advance(time)
            if "write" in event:
                event = {**event, "write": event["write"].format(step=self.steps)}
            self._happen(event)
            yield time, event
        self.advance(self.case.end)

    def advance(self, until: float) -> None:
        """Steps of the largest size that is stable; the last one ends at this time."""
        while self.time < until:
            self._run("save_state")
            self._run("compute_flux")
            self.step[0] = np.inf
            self._run("time_step")
            stable, left = CFL * float(self.step[0]), until - self.time
            self.step[0] = min(stable, left)
            self._run("space_discretization", "first_stage")
            self._run("compute_flux", "space_discretization", "second_stage")
            self.time = until if stable >= left else self.time + float(self.step[0])
            self.steps += 1

    def _run(self, *names: str) -> None:
        for name in names:
            self.loops[name](**self.arguments(name))

    def arguments(self, name: str) -> dict[str, Any]:
        """What a loop is called with."""
        loop = self.loops[name].loop
        return {a.name: self.step if a.is_global else self.dats[a.name] for a in loop.args}

    @property
    def state(self) -> np.ndarray:
        """(h, hu, hv, bottom) of each cell, in the order of the mesh; a copy."""
        found = self.dats["state"].array
        return self.order["cells"].restore(
            found.copy() if self.device is None else found.get()
        )

    @state.setter
    def state(self, values: np.ndarray) -> None:
        found, ordered = self.dats["state"].array, self.order["cells"].apply(values)
        if self.device is None:
            found[:] = ordered
        else:
            found.set(np.ascontiguousarray(ordered, "f4"))

    def _happen(self, event: Mapping[str, Any]) -> None:
        if "write" in event:
            self._write(Path(event["write"]))
        elif "gauge" in event:
            cell = np.argmin(((self.centre - event["gauge"]) ** 2).sum(axis=1))
            h, _, _, bottom = self.state[cell]
            with Path(event["file"]).open("a", encoding="utf-8") as file:
                file.write(f"{self.time:.6g},{h:.6g},{h + bottom:.6g}\n")
        else:
            away = ((self.centre - event["centre"]) ** 2).sum(axis=1) / event["radius"] ** 2
            state = self.state
            state[:, 3] += (event["raise"] * np.exp(-away)).astype("f4")
            self.state = state

    def _write(self, path: Path) -> None:
        h, hu, hv, bottom = self.state.T
        fields = {"depth": h, "surface": h + bottom, "momentum": np.column_stack([hu, hv])}
        sets = [ElementSet("nodes", self.mesh.size("nodes")), self.mesh.sets["cells"]]
        dats = [Dat(name, "cells", values) for name, values in fields.items()]
        x = Dat("coordinates", "nodes", self.mesh.coordinates)
        bare = Mesh(sets, [self.mesh.cell_map("cells")], [x, *dats])
        meshprep.write(bare, path, overwrite=True)


def main() -> None:
    """Run a case, and print its events and the time of each loop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mesh", type=Path)
    parser.add_argument("case", type=Path)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    given = parser.parse_args()
    try:
        device = current() if given.device == "gpu" else None
        flow = Volna(meshprep.read(given.mesh), read_case(given.case), device=device)
        for time, event in flow.run():
            what = next(f"{kind} {event[kind]}" for kind in KINDS if kind in event)
            print(f"{time:10.4f} s, step {flow.steps}: {what}", flush=True)
    except MeshprepError as error:
        sys.exit(f"error: {error}")
    print(flow.program.timings())


if __name__ == "__main__":
    main()
