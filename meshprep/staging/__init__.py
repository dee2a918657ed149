"""One loop after the other: its numbering, blocks, colours, staging lists and matrices."""
