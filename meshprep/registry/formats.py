"""The mesh formats that ``--format`` and the endings of file names can name."""

from .entries import Registry, RegistryEntry

FORMATS = Registry(
    kind="format",
    group="meshprep.formats",
    entries=(
        RegistryEntry(
            name="gmsh",
            function="meshprep.io.gmsh:FORMAT",
            help="MSH 2.2 and 4.1, text and binary",
            endings=(".msh",),
        ),
        RegistryEntry(
            name="su2",
            function="meshprep.io.su2:FORMAT",
            help="meshes of SU2, of one zone",
            endings=(".su2",),
        ),
        RegistryEntry(
            name="cgns",
            function="meshprep.io.cgns:FORMAT",
            help="unstructured zones in HDF5",
            endings=(".cgns",),
        ),
        RegistryEntry(
            name="abaqus",
            function="meshprep.io.deck:FORMAT",
            help="decks of Abaqus and CalculiX",
            endings=(".inp",),
        ),
        RegistryEntry(
            name="op2",
            function="meshprep.io.op2:FORMAT",
            help="OP2's HDF5 meshes, and HDF5 files whose datasets are declared",
            endings=(".h5", ".hdf5"),
        ),
        RegistryEntry(
            name="vtu",
            function="meshprep.io.vtk:VTU",
            help="VTK's files in XML",
            endings=(".vtu",),
        ),
        RegistryEntry(
            name="vtk",
            function="meshprep.io.vtk:VTK",
            help="VTK's legacy files, text and binary",
            endings=(".vtk",),
        ),
        RegistryEntry(
            name="xdmf",
            function="meshprep.io.xdmf:FORMAT",
            help="XDMF, with numbers in HDF5 or as text",
            endings=(".xdmf", ".xmf"),
        ),
        RegistryEntry(
            name="medit",
            function="meshprep.io.medit:FORMAT",
            help="Medit's and mmg's meshes, text and binary",
            endings=(".mesh", ".meshb"),
        ),
        RegistryEntry(
            name="exodus",
            function="meshprep.io.exodus:FORMAT",
            help="Exodus II",
            endings=(".e", ".exo", ".ex2"),
        ),
        RegistryEntry(
            name="nastran",
            function="meshprep.io.nastran:FORMAT",
            help="the bulk data of Nastran's decks",
            endings=(".bdf", ".fem", ".nas"),
        ),
        RegistryEntry(
            name="med",
            function="meshprep.io.med:FORMAT",
            help="MED of Salome and code_aster",
            endings=(".med",),
        ),
        RegistryEntry(
            name="ugrid",
            function="meshprep.io.read_only.ugrid:FORMAT",
            help="UGRID of AFLR and FUN3D, also .b8.ugrid and .lb8.ugrid",
            endings=(".ugrid",),
            read_only=True,
        ),
        RegistryEntry(
            name="tetgen",
            function="meshprep.io.read_only.tetgen:FORMAT",
            help="TetGen's pairs of files",
            endings=(".node", ".ele"),
            read_only=True,
        ),
        RegistryEntry(
            name="netgen",
            function="meshprep.io.meshio_formats:NETGEN",
            help="Netgen's text files",
            endings=(".vol",),
            read_only=True,
        ),
        RegistryEntry(
            name="op2-grid",
            function="meshprep.io.op2.grid:FORMAT",
            help="Airfoil's text grid, new_grid.dat",
            endings=(".dat",),
        ),
        RegistryEntry(
            name="matrix-market",
            function="meshprep.io.graphs.matrix_market:FORMAT",
            help="sparse matrices of Matrix Market",
            endings=(".mtx",),
        ),
        RegistryEntry(
            name="metis",
            function="meshprep.io.graphs.metis:FORMAT",
            help="graphs of METIS",
            endings=(".graph",),
        ),
        RegistryEntry(
            name="openfoam",
            function="meshprep.io.foam:FORMAT",
            help="OpenFOAM cases: a folder with constant/polyMesh, or .foam in it",
            endings=(".foam",),
            in_folders=True,
        ),
    ),
)

# Those of meshprep that files are written in.
WRITTEN = tuple(entry.name for entry in FORMATS.entries if not entry.read_only)
