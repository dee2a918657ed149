"""Sentences of messages."""

import pytest

from meshprep_runtime.errors import listed


@pytest.mark.parametrize(
    ("items", "text"), [([], ""), ([4], "4"), ((2, 4), "2 and 4"), ("abc", "a, b and c")]
)
def test_names_in_a_sentence(items, text):
    assert listed(items) == text
