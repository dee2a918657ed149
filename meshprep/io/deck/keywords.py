"""What Abaqus and CalculiX mean by their keywords: types of elements, and where numbers stand."""

# Written where cells have no type of their own: in a plane, and in space.
USUAL = {
    **{"line": ("T2D2", "T3D2"), "line3": ("T2D3", "T3D3")},
    **{"triangle": ("CPS3", "S3"), "triangle6": ("CPS6", "STRI65")},
    **{"quad": ("CPS4", "S4"), "quad8": ("CPS8", "S8R"), "quad9": ("S9R5", "S9R5")},
    **{"tetra": ("C3D4",) * 2, "tetra10": ("C3D10",) * 2, "wedge": ("C3D6",) * 2},
    **{"wedge15": ("C3D15",) * 2, "hexahedron": ("C3D8",) * 2, "hexahedron20": ("C3D20",) * 2},
}
# The numbers of types may stand in files of other formats: new types go to the end.
_NAMES = {
    "line": "T2D2 T2D2H T3D2 T3D2H B21 B21H B31 B31H B31R B33 B33H",
    "line3": "T2D3 T2D3H T3D3 T3D3H B22 B22H B32 B32H B32R",
    "quad": "CPS4 CPS4R S4 S4R S4RS S4RSW S4R5 CAX4P CPE4 CAX4 CPE4R CAX4R R3D4 M3D4 M3D4R",
    "quad8": "S8R S8R5 CPS8 CPE8 CAX8 CPS8R CPE8R CAX8R M3D8 S8",
    "quad9": "S9R5",
    "triangle": "CPS3 STRI3 S3 S3R S3RS R3D3 CPE3 CAX3 M3D3",
    "triangle6": "STRI65 CPE6 CPS6 CAX6 S6",
    "hexahedron": "C3D8 C3D8H C3D8I C3D8IH C3D8R C3D8RH DC3D8 F3D8 F3D8R",
    "hexahedron20": "C3D20 C3D20H C3D20R C3D20RH DC3D20",
    "tetra": "C3D4 C3D4H DC3D4 F3D4",
    "tetra10": "C3D10 C3D10H C3D10I C3D10M C3D10MH C3D10HS C3D10T DC3D10",
    "wedge": "C3D6 C3D6H DC3D6 F3D6",
    "wedge15": "C3D15 C3D15H DC3D15",
}
TYPES = {name: cell_type for cell_type, names in _NAMES.items() for name in names.split()}
_ORDER = """
T2D2 T2D2H T2D3 T2D3H T3D2 T3D2H T3D3 T3D3H B21 B21H B22 B22H B31 B31H B32 B32H B33 B33H CPS4 CPS4R
S4 S4R S4RS S4RSW S4R5 S8R S8R5 S9R5 CPS3 STRI3 S3 S3R S3RS R3D3 STRI65 C3D8 C3D8H C3D8I C3D8IH
C3D8R C3D8RH C3D20 C3D20H C3D20R C3D20RH C3D4 C3D4H C3D10 C3D10H C3D10I C3D10M C3D10MH C3D6 C3D15
CAX4P CPE6 CPS6 CPS8 CPE3 CPE4 CPE8 CAX3 CAX4 CAX6 CAX8 CPS8R CPE4R CPE8R CAX4R CAX8R R3D4 M3D3
M3D4 M3D4R M3D8 S6 S8 C3D6H C3D15H C3D10HS B31R B32R F3D4 F3D6 F3D8 F3D8R C3D10T DC3D4 DC3D6 DC3D8
DC3D10 DC3D15 DC3D20
"""
NUMBER = {name: i for i, name in enumerate(_ORDER.split(), 1)}
NAME = {i: name for name, i in NUMBER.items()}
# Abaqus has the middle of a line between its ends: column ``i`` is column ``MIDDLE[i]`` in memory,
# and the other way round.
MIDDLE = [0, 2, 1]

# Keywords by which a deck has other nodes and elements than it lists.
GENERATING = {"NGEN", "NFILL", "NCOPY", "NMAP", "SYSTEM", "ELGEN", "ELCOPY"}
# Keywords whose lines begin with a node or an element, or a set of these.
FIRST = {
    **dict.fromkeys(("BOUNDARY", "CLOAD", "CFLUX", "TEMPERATURE", "FIELD", "CFILM"), "node"),
    **dict.fromkeys(("CRADIATE", "NODAL THICKNESS", "KINEMATIC COUPLING", "SUBMODEL"), "node"),
    **dict.fromkeys(("DISTRIBUTING COUPLING", "RETAINED NODAL DOFS"), "node"),
    **dict.fromkeys(("DLOAD", "DFLUX", "FILM", "RADIATE", "DISTRIBUTION", "FOUNDATION"), "element"),
}
# Loads whose third field is a node: pressures and fluid temperatures that a network gives.
OF_NODE = r"(?i)\s*(P\dNP|F\d(FC|NU\w*))\s*"
# ``*INITIAL CONDITIONS`` by TYPE.
CONDITIONS = {
    **dict.fromkeys(("TEMPERATURE", "DISPLACEMENT", "VELOCITY", "FIELD", "PRESSURE"), "node"),
    **dict.fromkeys(("FLUID VELOCITY", "MASS FLOW", "TOTAL PRESSURE", "PORE PRESSURE"), "node"),
    **dict.fromkeys(("STRESS", "PLASTIC STRAIN", "SOLUTION", "HARDENING"), "element"),
}
# Keywords whose numbers are none of nodes and elements.
PLAIN = {
    *("HEADING", "PREPRINT", "RESTART", "MATERIAL", "ELASTIC", "PLASTIC", "DENSITY", "EXPANSION"),
    *("CONDUCTIVITY", "SPECIFIC HEAT", "DEPVAR", "USER MATERIAL", "CYCLIC HARDENING", "CREEP"),
    *("HYPERELASTIC", "HYPERFOAM", "DAMPING", "VISCO", "STEP", "STATIC", "DYNAMIC", "FREQUENCY"),
    *("MODAL DYNAMIC", "STEADY STATE DYNAMICS", "MODAL DAMPING", "BUCKLE", "HEAT TRANSFER"),
    *("COUPLED TEMPERATURE-DISPLACEMENT", "UNCOUPLED TEMPERATURE-DISPLACEMENT", "END STEP"),
    *("NODE FILE", "NODE PRINT", "NODE OUTPUT", "EL FILE", "EL PRINT", "ELEMENT OUTPUT", "OUTPUT"),
    *("CONTACT FILE", "CONTACT PRINT", "CONTACT OUTPUT", "ENERGY FILE", "ENERGY PRINT", "MONITOR"),
    *("ENERGY OUTPUT", "CONTROLS", "AMPLITUDE", "SOLID SECTION", "SHELL SECTION", "BEAM SECTION"),
    *("MEMBRANE SECTION", "SHELL GENERAL SECTION", "BEAM GENERAL SECTION", "TRANSFORM", "FRICTION"),
    *("SURFACE INTERACTION", "SURFACE BEHAVIOR", "CONTACT", "CONTACT PAIR", "CONTACT INCLUSIONS"),
    *("CONTACT PROPERTY ASSIGNMENT", "CONTACT DAMPING", "TIE", "GAP CONDUCTANCE", "PART"),
    *("END PART", "ASSEMBLY", "END ASSEMBLY", "INSTANCE", "END INSTANCE", "PHYSICAL CONSTANTS"),
    *("TIME POINTS", "SECTION PRINT", "DSLOAD", "SFILM", "SRADIATE", "DSFLUX", "RIGID BODY"),
    *("COUPLING", "KINEMATIC", "DISTRIBUTING", "PRE-TENSION SECTION", "FILTER", "ORIENTATION"),
    *("MODAL OUTPUT", "INCIDENT WAVE", "CYCLIC SYMMETRY MODEL", "SELECT CYCLIC SYMMETRY MODES"),
    *("DAMAGE INITIATION", "DAMAGE EVOLUTION", "GASKET SECTION", "COHESIVE SECTION", "GREEN"),
    *("DEFORMATION PLASTICITY", "MOHR COULOMB", "SENSITIVITY", "FLUID CONSTANTS", "COMBINED TEST"),
    *("TRANSVERSE SHEAR STIFFNESS", "SPECIFIC GAS CONSTANT", "CHANGE FRICTION", "RATE DEPENDENT"),
    *("MAGNETIC PERMEABILITY", "ELECTRICAL CONDUCTIVITY", "OBJECTIVE", "DESIGN RESPONSE"),
    *("CONTACT CONTROLS", "FILE OUTPUT", "NO COMPRESSION", "TENSION ONLY", "BASE MOTION"),
}
