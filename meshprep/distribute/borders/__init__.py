"""Shorter borders of parts: elements move one by one, the same ones for any number of ranks."""

from .refine import refined

__all__ = ["refined"]
