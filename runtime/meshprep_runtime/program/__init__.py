"""Programs: dats that know their state, loops that are counted and timed."""
