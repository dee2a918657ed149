"""The order of owned elements, and the arrays of the parts."""
