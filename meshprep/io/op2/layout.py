"""What is kept of an OP2 file, and under which names a mesh goes into one; imports no h5py."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ..declared import BASE, COORDINATES, NO_SET
from ..reduce import other_losses

NOTES = "op2:file"
CONSTANTS = "constants"
# What the file does not say and was found, as it would be declared.
INFERRED = "op2:inferred"
ORIGINAL_ID = "original_id"


@dataclass(frozen=True)
class Op2Notes:
    """Where everything stood."""

    # By name.
    sets: Mapping[str, str]
    maps: Mapping[str, str]
    dats: Mapping[tuple[str, str], str]  # by (set, name)
    base: int  # the index that stands for the first element
    # An HDF5 file with everything else, and an empty dataset of the same type and attributes for
    # each map and dat.
    rest: bytes
    # Datasets that were declared to be on no set.
    fixed: tuple[str, ...] = ()


def notes_of(mesh: Mesh) -> Op2Notes:
    """The notes of a mesh; empty ones where it came from elsewhere."""
    found = mesh.extras.get(NOTES)
    return found if isinstance(found, Op2Notes) else Op2Notes({}, {}, {}, 0, b"")


def file_layout(mesh: Mesh) -> Op2Notes:
    """Paths of everything that is written: those of the file it came from, else its names."""
    old = notes_of(mesh)
    names = [d.name for d in mesh.dats]
    dats = {}
    for d in mesh.dats:
        known = old.dats.get((d.set, d.name))
        alone = names.count(d.name) == 1 and d.name not in mesh.sets and d.name != ORIGINAL_ID
        dats[d.set, d.name] = known or (d.name if alone else f"{d.name}_{d.set}")
    return Op2Notes(
        {name: old.sets.get(name, name) for name in mesh.sets},
        {name: old.maps.get(name, name) for name in mesh.maps},
        dats,
        old.base,
        old.rest,
        old.fixed,
    )


def declarations(mesh: Mesh) -> dict[str, dict[str, str]]:
    """What has to be declared so that the written file reads back as this mesh."""
    made = file_layout(mesh)
    out = {p: f"{mesh.maps[n].from_set}->{mesh.maps[n].to_set}" for n, p in made.maps.items()}
    out |= {path: on for (on, _), path in made.dats.items()}
    out |= dict.fromkeys(made.fixed, NO_SET)
    out[BASE] = str(made.base)
    at = made.dats.get(("nodes", COORDINATES), COORDINATES)
    if at != COORDINATES:
        out[COORDINATES] = at
    return {"sets": out}


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What an OP2 file cannot hold: types of cells, groups, lists, values of some elements."""
    return other_losses(mesh, [*mesh.sets], [*mesh.maps], _refusal)


def _refusal(d: Dat) -> str | None:
    if d.index is not None:
        return "not every element has one"
    if d.values.dtype.kind not in "iufcbSV":
        return f"of type {d.values.dtype}"
    return "of several times" if d.attrs else None


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as an OP2 file keeps it, under the names that reading gives."""
    made = file_layout(mesh)
    kept = [replace(d, attrs={}) for d in mesh.dats if not _refusal(d)]
    maps = _maps_read(mesh, made.maps)
    paths = [made.dats[d.set, d.name] for d in kept]
    dats = [replace(d, name=_name_read(d, p)) for d, p in zip(kept, paths, strict=True)]
    notes = replace(
        made,
        maps={new.name: path for path, new in maps.items()},
        dats={(d.set, d.name): path for d, path in zip(dats, paths, strict=True)},
    )
    sets = [ElementSet(s.name, s.size) for s in mesh.sets.values()]
    extras = {k: v for k, v in mesh.extras.items() if k == CONSTANTS} | {NOTES: notes}
    return Mesh(sets, maps.values(), dats, extras=extras)


def _maps_read(mesh: Mesh, paths: Mapping[str, str]) -> dict[str, SetMap]:
    """The maps by path; the first of each pair of sets has the short name."""
    out: dict[str, SetMap] = {}
    seen: set[str] = set()
    for name, path in sorted(paths.items(), key=lambda item: item[1].split("/")):
        m = mesh.maps[name]
        short = f"{m.from_set}->{m.to_set}"
        long = f"{short}:{path}".replace("/", ".")
        out[path] = replace(m, name=long if short in seen else short)
        seen.add(short)
    return out


def _name_read(d: Dat, path: str) -> str:
    special = d.name == ORIGINAL_ID or (d.name, d.set) == (COORDINATES, "nodes")
    return d.name if special else path
