"""Recursive bisection, and the places and widths of elements that it goes by."""
