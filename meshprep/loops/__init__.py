"""The loops of a solver: read from loops.toml or from text, bound to a mesh."""

from .requests import LoopRequest, LoopSpec, default_request, read_requests, resolve, simple_request

__all__ = [
    "LoopRequest",
    "LoopSpec",
    "default_request",
    "read_requests",
    "resolve",
    "simple_request",
]
