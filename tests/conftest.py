"""What all tests share."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compiled loops of these tests go into a folder of their own, fresh in every run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESHPREP_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
