"""Formats that are read and not written."""
