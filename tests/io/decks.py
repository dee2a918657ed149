"""A slow reader of decks: what they say of places, whatever the numbers of nodes and elements."""

from collections import Counter
from dataclasses import dataclass, field

# What each field of a line is: n a node or a set of nodes, e an element or a set of elements.
# The last one counts for all fields behind it.
FIELDS = {
    "BOUNDARY": "n-",
    "CLOAD": "n-",
    "TEMPERATURE": "n-",
    "CFLUX": "n-",
    "DLOAD": "e-",
    "FILM": "e-n-",
    "NORMAL": "en-",
    "MPC": "-n",
    "EQUATION": "n--n--n--n--n--",
    "INITIAL CONDITIONS": "n-",
    "DISTRIBUTION": "e-",
    "SURFACE": "e-",
    "MODEL CHANGE": "e",
    "NODE PRINT": "-",
}


@dataclass
class Told:
    """What a deck says: elements with the places of their nodes, sets, and all other lines."""

    elements: Counter = field(default_factory=Counter)
    sets: dict = field(default_factory=dict)
    others: list = field(default_factory=list)


def flat(path, folder=None):
    """The lines of a deck with those of its includes in their place."""
    folder = folder or path.parent
    out = []
    for line in path.read_text().splitlines():
        words = [w.strip() for w in line.split(",")]
        inputs = [w for w in words[1:] if w.upper().startswith("INPUT=")]
        if not (line.startswith("*") and inputs) or words[0] == "*SUBMODEL":
            out.append(line)
            continue
        if words[0].upper() != "*INCLUDE":
            out.append(",".join(w for w in words if w not in inputs))
        out += flat(folder / inputs[0].partition("=")[2], folder)
    return out


def keywords(path):
    """Name, options and data of each keyword."""
    out = []
    for line in flat(path):
        if line.startswith("**") or not line.strip():
            continue
        words = [w.strip() for w in line.split(",")]
        if line.startswith("*"):
            options = {}
            for word in words[1:]:
                key, _, value = word.partition("=")
                options[key.strip().upper()] = value.strip()
            out.append((words[0][1:].upper(), options, []))
        elif out and out[-1][0] == "ELEMENT" and out[-1][2] and not out[-1][2][-1][-1]:
            # an element goes on after a comma
            out[-1][2][-1] = out[-1][2][-1][:-1] + words
        elif out:
            out[-1][2].append(words)
    return out


def told(path):
    """What a deck says."""
    found = keywords(path)
    place = {}
    element = {}
    for name, _, data in found:
        if name == "NODE":
            for number, *values in data:
                point = tuple(float(v.lower().replace("d", "e")) for v in values)
                place[number] = point + (0.0,) * (3 - len(point))
    for name, options, data in found:
        if name == "ELEMENT":
            for number, *nodes in data:
                where = tuple(place.get(n, n) for n in nodes if n)
                element[number] = (options["TYPE"].upper(), where)
    out = Told()
    out.elements.update(element.values())
    known = {"n": place, "e": element, "-": {}}
    for name, options, data in found:
        for kind, numbers in (("NSET", place), ("ELSET", element)):
            if name in ("NODE", "ELEMENT", kind) and options.get(kind):
                members = out.sets.setdefault((kind, options[kind].upper()), Counter())
                for member in members_of(name, options, data):
                    if (kind, member.upper()) in out.sets:
                        members.update(out.sets[kind, member.upper()])
                    else:
                        members[numbers[member]] += 1
        if name not in ("NODE", "ELEMENT", "NSET", "ELSET"):
            lines = [one_line(name, words, known) for words in data]
            out.others.append((name, options, lines))
    return out


def members_of(name, options, data):
    if name in ("NODE", "ELEMENT"):
        return [words[0] for words in data]
    if "GENERATE" in options:
        first, last, step = (int(w) for w in data[0])
        return [str(n) for n in range(first, last + 1, step)]
    return [w for words in data for w in words if w]


def one_line(name, words, known):
    kinds = FIELDS.get(name, "-")
    if name == "EQUATION" and len(words) == 1:
        kinds = "-"
    if name == "FILM" and "FC" not in words[1]:
        kinds = "e-"
    out = []
    for i, word in enumerate(words):
        kind = kinds[min(i, len(kinds) - 1)]
        out.append(known[kind].get(word, word))
    return out
