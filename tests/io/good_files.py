"""Small good files of many formats, for tests that spoil them."""

VTK = """# vtk DataFile Version 3.0
t
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 double
0 0 0 1 0 0 0 1 0 0 0 1
CELLS 1 5
4 0 1 2 3
CELL_TYPES 1
10
"""
MEDIT = """MeshVersionFormatted 2
Dimension 3
Vertices
4
0 0 0 1
1 0 0 2
0 1 0 0
0 0 1 0
Tetrahedra
1
1 2 3 4 7
Corners
1
1
End
"""
VTU = """<VTKFile type="UnstructuredGrid" version="0.1"><UnstructuredGrid>
<Piece NumberOfPoints="3" NumberOfCells="1"><Points>
<DataArray type="Float64" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 0 1 0</DataArray>
</Points><Cells>
<DataArray type="Int32" Name="connectivity" format="ascii">0 1 2</DataArray>
<DataArray type="Int32" Name="offsets" format="ascii">3</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">5</DataArray>
</Cells></Piece></UnstructuredGrid></VTKFile>
"""
NASTRAN = """BEGIN BULK
GRID,1,,0.,0.,0.
GRID,2,,1.,0.,0.
GRID,3,,0.,1.,0.
CTRIA3,1,5,1,2,3
PSHELL,5,1,0.1
ENDDATA
"""
ABAQUS = """*HEADING
*NODE
1, 0., 0.
2, 1., 0.
3, 0., 1.
*ELEMENT, TYPE=CPS3, ELSET=plate
1, 1, 2, 3
*NSET, NSET=left
1, 3
"""
GOOD = {
    ".vtk": VTK,
    ".mesh": MEDIT,
    ".vtu": VTU,
    ".bdf": NASTRAN,
    ".inp": ABAQUS,
}
