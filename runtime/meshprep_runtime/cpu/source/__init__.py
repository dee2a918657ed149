"""The text of a loop for cores: what an element does, in which form, and what hands it out."""
