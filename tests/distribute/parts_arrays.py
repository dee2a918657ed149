"""A part as named arrays: what readers of files are given, made by hand."""

import numpy as np

from meshprep_runtime.plan.file.schema import BLOCK_ARRAYS, staging_arrays
from meshprep_runtime.plan.parts.batch import (
    COUNTS,
    FURTHER,
    PartBatch,
    range_arrays,
)
from meshprep_runtime.plan.parts.proof import PartsProof
from meshprep_runtime.plan.parts.structure import check_batch

MESSAGES = ("send_exec", "send_halo", "receive_exec", "receive_halo")


def describe_parts(part):
    """What all parts have in common, as JSON values."""
    return {
        "sets": {name: int(size) for name, size in part.sizes.items()},
        "maps": {m.name: [m.from_set, m.to_set, m.arity] for m in part.maps.values()},
        "loops": {name: _describe_loop(one) for name, one in part.loops.items()},
        "partial": list(part.partial),
        "group_names": {
            name: {
                tag: {str(k): own for k, own in named.items()}
                for tag, named in tags.items()
            }
            for name, tags in part.group_names.items()
        },
    }


def _describe_loop(part):
    return {
        **part.plan.loop.to_dict(),
        "increments": part.increments,
        "default": part.plan.default,
        "variants": {
            name: {
                word: getattr(v, word) for word in ("block_size", "target", "partitioner")
            }
            for name, v in part.plan.variants.items()
        },
    }


def arrays_of(part):
    """Every array of a part, by its place under ``/parts/K``."""
    found = {}
    for name, one in part.sets.items():
        at = f"sets/{name}"
        found[f"{at}/counts"] = np.array([getattr(one, c) for c in COUNTS], np.int64)
        found[f"{at}/copies"], found[f"{at}/original"] = one.copies, one.original
        for kind in MESSAGES:
            # what is received stands one after the other
            rows = kind.startswith("send")
            found |= _messages(f"{at}/{kind}", getattr(one, kind), rows=rows)
    for m in part.maps.values():
        found[f"maps/{m.name}/table"] = m.table
    for name, partial in part.partial.items():
        for kind in ("send", "receive"):
            found |= _messages(f"partial/{name}/{kind}", getattr(partial, kind), rows=True)
    for name, loop in part.loops.items():
        for variant in loop.plan.variants.values():
            found |= _variant(f"loops/{name}/{variant.name}", variant, loop)
        found |= range_arrays(f"loops/{name}", loop.plan)
    found |= {f"coordinates/{name}": where for name, where in part.coordinates.items()}
    for kind in ("tags", "fields", FURTHER):
        for name, arrays in getattr(part, kind).items():
            found |= {f"{kind}/{name}/{label}": array for label, array in arrays.items()}
    return found


def _messages(at, messages, *, rows):
    found = {f"{at}/parts": messages.parts, f"{at}/offset": messages.offset}
    return found | ({f"{at}/rows": messages.rows} if rows else {})


def _variant(at, variant, loop):
    colours = loop.colours[variant.name]
    found = {f"{at}/{name}": getattr(variant, name) for name in BLOCK_ARRAYS}
    found[f"{at}/classes"] = np.array([colours.core, colours.owned], np.int64)
    for name, staging in variant.staging.items():
        found |= {f"{at}/staging/{name}/{k}": a for k, a in staging_arrays(staging).items()}
    for name, local in variant.local.items():
        # flat, so that a part's columns are one slice
        found[f"{at}/local/{name}"] = local.reshape(-1)
    return found


def batch_of(part):
    """A part alone."""
    arrays = arrays_of(part)
    rows = {name: np.array([len(array)], np.int64) for name, array in arrays.items()}
    own = range(part.part, part.part + 1)
    return PartBatch(describe_parts(part), own, part.parts, arrays, rows)


def check_part(part):
    """Raise PlanError at the first thing that does not fit."""
    check_batch(batch_of(part))


def proved(parts, sizes, count, own=None):
    """The proof of all parts, one after another; with ``own``, of what concerns these."""
    proof = PartsProof(sizes, count, own)
    for part in parts:
        proof.add(batch_of(part))
    proof.finish()
    return proof
