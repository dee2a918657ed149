"""Which cells the cards of elements are."""

# Types of first order, and of second where the nodes tell which.
TYPES: dict[str, tuple[str, ...]] = {
    "CROD": ("line",),
    "CTUBE": ("line",),
    "CBAR": ("line",),
    "CBEAM": ("line",),
    "CBUSH": ("line",),
    "CBUSH1D": ("line",),
    "CGAP": ("line",),
    "CTRIA3": ("triangle",),
    "CTRIAR": ("triangle",),
    "CTRIA6": ("triangle6",),
    "CQUAD4": ("quad",),
    "CQUADR": ("quad",),
    "CSHEAR": ("quad",),
    "CQUAD8": ("quad8",),
    "CQUAD9": ("quad9",),
    "CPYRA": ("pyramid", "pyramid13"),
    "CPYRAM": ("pyramid", "pyramid13"),
    "CTETRA": ("tetra", "tetra10"),
    "CPENTA": ("wedge", "wedge15"),
    "CHEXA": ("hexahedron", "hexahedron20"),
}
# The card that cells are written as.
CARDS = {
    "line": "CROD",
    "triangle": "CTRIA3",
    "triangle6": "CTRIA6",
    "quad": "CQUAD4",
    "quad8": "CQUAD8",
    "quad9": "CQUAD9",
    "pyramid": "CPYRAM",
    "pyramid13": "CPYRAM",
    "tetra": "CTETRA",
    "tetra10": "CTETRA",
    "wedge": "CPENTA",
    "wedge15": "CPENTA",
    "hexahedron": "CHEXA",
    "hexahedron20": "CHEXA",
}
# Cards that come back as others: what makes them what they are is left out.
OTHERS = {
    "CTUBE",
    "CBAR",
    "CBEAM",
    "CBUSH",
    "CBUSH1D",
    "CGAP",
    "CTRIAR",
    "CQUADR",
    "CSHEAR",
}
# Column ``i`` in memory is column ``TO_MEMORY[t][i]`` of a card: upright edges come second
# there.
TO_MEMORY = {
    "wedge15": [*range(9), 12, 13, 14, 9, 10, 11],
    "hexahedron20": [*range(12), *range(16, 20), *range(12, 16)],
}
