import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes bytes, a text or JSON into a file."""

    def write(content, name="x.txt"):
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)
        return path

    return write
