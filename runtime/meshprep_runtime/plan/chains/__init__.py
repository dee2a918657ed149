"""Schedules of chains in a plan: model, file, structure and proof."""
