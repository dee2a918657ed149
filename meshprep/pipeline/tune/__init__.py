"""How loops and products run fastest on this machine, written into their plan."""
