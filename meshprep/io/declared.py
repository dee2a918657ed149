"""What a user says about the datasets of a file that does not say it: ``NAME=SET``.

``p_q=cells`` puts the rows of a dataset on a set; ``pecell=edges->cells`` says besides that
its values are indices into another; ``flags=none`` that it belongs to no set. Two names are
not datasets: ``base=1`` says where indices begin, ``coordinates=p_x`` where the nodes lie.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.loops import cut_by_shell, with_arrow

from ..loops.requests import read_toml

NO_SET = "none"
BASE, COORDINATES = "base", "coordinates"
# What stands for the name where a file has only one array.
ANY = "*"
NO_MAPS = "holds no maps: say which datasets are, as --sets 'NAME=SET->SET'"


def parse(texts: Iterable[str]) -> dict[str, str]:
    """Declarations as a user types them, several in one text or one in each.

    Raises MeshprepError for what does not read NAME=SET, NAME=SET->SET, or SET alone.
    """
    out: dict[str, str] = {}
    for word in " ".join(texts).replace(",", " ").split():
        name, equals, target = word.rpartition("=")
        if not target or (equals and not name) or target.endswith("-"):
            raise MeshprepError(
                f"--sets '{word}'{cut_by_shell(word)} must read NAME=SET, NAME=SET->SET or "
                "NAME=SET:SET"
            )
        _add(out=out, name=name or ANY, place=with_arrow(target), where=f"--sets '{word}'")
    return out


def declared(sets: Mapping[str, str] | Iterable[str] | str | None) -> dict[str, str]:
    """Declarations by name, or as texts of a user; raises MeshprepError for other input."""
    if sets is None:
        return {}
    if isinstance(sets, str):
        return parse([sets])
    if not isinstance(sets, Mapping):
        if isinstance(sets, Iterable):
            texts = list(sets)
        else:
            texts = [sets]
        if not all(isinstance(text, str) for text in texts):
            raise MeshprepError(
                f"sets is {sets!r}: give a dict of name to set, or texts such as "
                "'p_q=cells'"
            )
        return parse(texts)
    out: dict[str, str] = {}
    for name, place in sets.items():
        _add(out=out, name=str(name), place=str(place), where="sets")
    return out


def from_toml(path: str | Path) -> dict[str, str]:
    """The table ``[sets]`` of a loops.toml; empty where it has none."""
    table = read_toml(path).get("sets", {})
    where = f"{path}, table [sets]"
    if not isinstance(table, dict):
        raise MeshprepError(f'{where}: must hold NAME = "SET" or NAME = "SET->SET"')
    out: dict[str, str] = {}
    for name, place in table.items():
        whole = name == BASE and isinstance(place, int) and not isinstance(place, bool)
        if not isinstance(place, str) and not whole:
            raise MeshprepError(f"{where}: {name} is {place!r}, must be the name of a set")
        _add(out=out, name=name, place=with_arrow(str(place)), where=where)
    return out


def _add(out: dict[str, str], name: str, place: str, where: str) -> None:
    if place.count("->") > 1 or not all(part.strip() for part in place.split("->")):
        raise MeshprepError(f"{where}: '{place}' must read SET or SET->SET")
    if name == BASE and place not in ("0", "1"):
        raise MeshprepError(f"{where}: indices begin at 0 or 1, not '{place}'")
    if out.setdefault(name, place) != place:
        raise MeshprepError(
            f"{where}: '{name}' is declared twice, as {out[name]} and {place}"
        )


def rows_of(place: str) -> str:
    """The set that the rows of a dataset follow."""
    return place.partition("->")[0].strip()


def values_of(place: str) -> str | None:
    """The set that the values of a dataset point into, or None."""
    return place.partition("->")[2].strip() or None


def check_names(
    declared: Mapping[str, str],
    names: Collection[str],
    sets: Collection[str],
    sets_in_file: bool = False,
) -> None:
    """Raise MeshprepError for a declaration of what is not there, or of an unknown set.

    With ``sets_in_file`` the message says how the file can have another set.
    """
    for name, target in declared.items():
        if name in (BASE, ANY):
            continue
        if name == COORDINATES and target in names:
            set_name = target
        else:
            set_name = name
        if set_name not in names:
            raise MeshprepError(
                f"there is no dataset '{name}', declared as {target}: choose "
                f"{', '.join(names)}"
            )
        if set_name != name:
            continue
        for part in target.split("->"):
            if part.strip() not in (*sets, NO_SET):
                unknown = part.strip()
                more = f", or add its size as an array '{unknown}' of one whole number"
                raise MeshprepError(
                    f"'{name}' is declared as {target}, but there is no set '{unknown}': "
                    f"choose {', '.join(sets)}{more if sets_in_file else ''}"
                )
