"""What is kept of an OP2 file, and the names under which a mesh is written; no h5py."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ..declared import BASE, COORDINATES, NO_SET
from ..format.reduce import other_losses

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
    # An HDF5 file with everything else, and an empty dataset of the same type and
    # attributes for each map and dat.
    rest: bytes
    # Datasets that were declared to be on no set.
    fixed: tuple[str, ...] = ()


def notes_of(mesh: Mesh) -> Op2Notes:
    """The notes of a mesh; empty ones where it came from elsewhere."""
    found = mesh.extras.get(NOTES)
    if isinstance(found, Op2Notes):
        return found
    return Op2Notes(sets={}, maps={}, dats={}, base=0, rest=b"")


def file_layout(mesh: Mesh) -> Op2Notes:
    """Paths of all that is written: those of the mesh's own file, else its names."""
    old = notes_of(mesh)
    names = [dat.name for dat in mesh.dats]
    dats = {}
    for dat in mesh.dats:
        path_in_file = old.dats.get((dat.set, dat.name))
        # OP2 has one name space for all datasets: values of one name on several sets need
        # the set behind it.
        alone = (
            names.count(dat.name) == 1
            and dat.name not in mesh.sets
            and dat.name != ORIGINAL_ID
        )
        dats[dat.set, dat.name] = path_in_file or (
            dat.name if alone else f"{dat.name}_{dat.set}"
        )
    return Op2Notes(
        sets={name: old.sets.get(name, name) for name in mesh.sets},
        maps={name: old.maps.get(name, name) for name in mesh.maps},
        dats=dats,
        base=old.base,
        rest=old.rest,
        fixed=old.fixed,
    )


def declarations(mesh: Mesh) -> dict[str, dict[str, str]]:
    """What has to be declared so that the written file reads back as this mesh."""
    layout = file_layout(mesh)
    out = {
        p: f"{mesh.maps[n].from_set}->{mesh.maps[n].to_set}" for n, p in layout.maps.items()
    }
    out |= {path: on for (on, _), path in layout.dats.items()}
    out |= dict.fromkeys(layout.fixed, NO_SET)
    out[BASE] = str(layout.base)
    at = layout.dats.get(("nodes", COORDINATES), COORDINATES)
    if at != COORDINATES:
        out[COORDINATES] = at
    return {"sets": out}


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What an OP2 file cannot hold: cell types, groups, lists, values of some elements."""
    return other_losses(
        mesh=mesh, sets=[*mesh.sets], maps=[*mesh.maps], refusal=_why_dat_stays_out
    )


def _why_dat_stays_out(d: Dat) -> str | None:
    if d.index is not None:
        return "not every element has one"
    if d.values.dtype.kind not in "iufcbSV":
        return f"of type {d.values.dtype}"
    if d.attrs:
        return "of several times"
    return None


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as an OP2 file keeps it, under the names that reading gives."""
    layout = file_layout(mesh)
    kept = [replace(d, attrs={}) for d in mesh.dats if not _why_dat_stays_out(d)]
    maps = _maps_read(mesh, layout.maps)
    paths = [layout.dats[d.set, d.name] for d in kept]
    dats = [replace(d, name=_name_read(d, p)) for d, p in zip(kept, paths, strict=True)]
    notes = replace(
        layout,
        maps={new.name: path for path, new in maps.items()},
        dats={(d.set, d.name): path for d, path in zip(dats, paths, strict=True)},
    )
    sets = [ElementSet(s.name, s.size) for s in mesh.sets.values()]
    extras = {k: v for k, v in mesh.extras.items() if k == CONSTANTS} | {NOTES: notes}
    return Mesh(sets=sets, maps=maps.values(), dats=dats, extras=extras)


def _maps_read(mesh: Mesh, paths: Mapping[str, str]) -> dict[str, SetMap]:
    """The maps by path; the first of each pair of sets has the short name."""
    out: dict[str, SetMap] = {}
    used_names: set[str] = set()
    for name, path in sorted(paths.items(), key=lambda item: item[1].split("/")):
        m = mesh.maps[name]
        short = f"{m.from_set}->{m.to_set}"
        long = f"{short}:{path}".replace("/", ".")
        out[path] = replace(m, name=long if short in used_names else short)
        used_names.add(short)
    return out


def _name_read(d: Dat, path: str) -> str:
    special = d.name == ORIGINAL_ID or (d.name, d.set) == (COORDINATES, "nodes")
    if special:
        return d.name
    return path
