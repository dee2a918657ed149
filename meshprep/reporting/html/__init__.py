"""The report as one HTML file with figures, for people and for print."""

from .page import html_report

__all__ = ["html_report"]
