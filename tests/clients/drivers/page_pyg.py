"""The page on PyTorch Geometric: parts, halos and ClusterData hold each edge as they should."""

import warnings

import numpy as np
import torch
from pages_of_use import blocks

names = {}
graph, order, three_lines, halo, loader = blocks("use/pyg.md", "python")
exec(graph, names)
data = names["data"]
before = names["points"][data.edge_index.numpy()]
exec(order, names)
# The same edges between the same points.
assert {
    e.tobytes() for e in data.x.numpy()[data.edge_index.numpy()].transpose(1, 0, 2)
} == {e.tobytes() for e in before.transpose(1, 0, 2)}
exec(three_lines, names)
owner = names["owner"]
sizes = [part.num_nodes for part in names["parts"]]
assert sum(sizes) == 1000
assert max(sizes) <= 1.03 * 125 + 1
inside = owner[data.edge_index[0]] == owner[data.edge_index[1]]
assert sum(part.num_edges for part in names["parts"]) == int(inside.sum())
assert 0.75 < inside.float().mean() < 1
assert sum(batch.num_nodes for batch in names["loader"]) == 1000
exec(halo, names)
part = names["part"]
own = torch.where(owner == 3)[0]
assert torch.equal(part.x[part.inner_node], data.x[own])
# Whoever is beside an own node is in the part, too.
count = torch.isin(data.edge_index[1], own).sum()
assert torch.isin(part.edge_index[1], part.inner_node).sum() == count
with warnings.catch_warnings():
    warnings.simplefilter("error", UserWarning)
    exec(loader, names)
batches = list(names["loader"])
assert [len(names["loader"]), sum(b.num_nodes for b in batches)] == [4, 1000]
clusters = [set(map(bytes, c.x.numpy())) for c in names["loader"].cluster_data]
assert clusters == [set(map(bytes, p.x.numpy())) for p in names["parts"]]
edges = [sum(part.num_edges for part in names["parts"][k : k + 2]) for k in range(0, 8, 2)]
assert all(b.num_edges >= e for b, e in zip(batches, edges, strict=True))
assert sum(b.num_edges for b in batches) > sum(edges)
for b in batches:
    lengths = np.linalg.norm(np.diff(b.x.numpy()[b.edge_index.numpy()], axis=0)[0], axis=1)
    assert lengths.max() <= np.linalg.norm(np.diff(before, axis=0)[0], axis=1).max()
