"""The one piece of memory for the frames of what compiles."""

import pytest

from meshprep_runtime._numba.compiling import with_room_for_frames


def depth_reached(depth):
    """Calls itself, so that there are as many frames at once."""
    if depth == 0:
        return 0
    return 1 + depth_reached(depth - 1)


@pytest.mark.parametrize("depth", [1, 900])
def test_what_is_called_there_gives_its_result(depth):
    assert with_room_for_frames(lambda: depth_reached(depth)) == depth


def test_calls_inside_of_calls():
    assert with_room_for_frames(lambda: with_room_for_frames(lambda: depth_reached(5))) == 5


def test_errors_pass():
    def fail():
        raise ValueError("too deep")

    with pytest.raises(ValueError, match="too deep"):
        with_room_for_frames(fail)
    with pytest.raises(RecursionError):
        with_room_for_frames(lambda: depth_reached(100_000))
