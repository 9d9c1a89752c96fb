"""What the tests of all formats share."""

import pytest

from tacit.io import read


@pytest.fixture
def read_as(tmp_path):
    """Read a network from the content of a file with this name."""

    def from_content(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read(path)

    return from_content
