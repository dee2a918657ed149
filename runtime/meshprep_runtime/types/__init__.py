"""The objects of the field: loops, arguments and accesses, maps, orderings."""
