"""What the tests of all formats share."""

import pytest

from tacit import FormatError
from tacit.io import read


@pytest.fixture
def read_as(tmp_path):
    """Read a network from the content of a file with this name."""

    def from_content(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read(path)

    return from_content


@pytest.fixture
def refuses(read_as):
    """Check that the content of a file with this name is refused, with the file, a line and a message."""

    def check(name, content, message):
        with pytest.raises(FormatError) as error:
            read_as(name, content)
        assert f"{name}: line " in str(error.value)
        assert message in str(error.value)

    return check
