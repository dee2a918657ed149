"""What tests of plan files share."""

import pytest


def one_line(error: pytest.ExceptionInfo, *parts: str) -> None:
    """The error is one line and has these parts."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 600
    for part in parts:
        assert part in text
