"""The page on torch-fem, with a model that has what torch-fem documents: idx and k0()."""

import numpy as np
import torch
from pages_of_use import run
from scipy.sparse import coo_array
from scipy.spatial import Delaunay

import meshprep


class Model:
    """Two dofs a point, as of a planar model, and a stiffness that depends on the material."""

    def __init__(self) -> None:
        points = np.random.default_rng(0).random((300, 2))
        elements = torch.from_numpy(Delaunay(points).simplices)
        dofs = 2 * elements[:, :, None] + torch.arange(2)
        self.idx = dofs.reshape(len(elements), 6).to(torch.int32)
        random = torch.Generator().manual_seed(0)
        self.shape = torch.rand(len(elements), 6, 6, generator=random, dtype=torch.float64)
        self.material = torch.ones(len(elements), dtype=torch.float64, requires_grad=True)

    def k0(self) -> torch.Tensor:
        return self.material[:, None, None] * self.shape


model = Model()
names = run("warp.md", "py", {"np": np, "meshprep": meshprep, "model": model})
idx = model.idx.numpy()
row = np.broadcast_to(idx[:, :, None], model.shape.shape).ravel()
column = np.broadcast_to(idx[:, None], model.shape.shape).ravel()
wanted = coo_array((model.shape.numpy().ravel(), (row, column))).toarray()
np.testing.assert_allclose(names["matrix"].detach().to_dense().numpy(), wanted, rtol=1e-12)
names["values"].sum().backward()
torch.testing.assert_close(model.material.grad, model.shape.sum(dim=(1, 2)))
