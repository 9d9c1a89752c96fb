"""What the tests of the server share: a client of an application, and a server in a process of its own."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from starlette.testclient import TestClient

from tacit.serve import Limits, application

JSON = {"Content-Type": "application/json"}


def client_of(net, **limits):
    """A client that asks an application about a network; kernels may have to be compiled before it answers."""
    return TestClient(
        application(net, Limits(**{"seconds": 600, **limits})),
        base_url="http://localhost",
        raise_server_exceptions=False,
    )


class Running:
    """A server in a process of its own, and its port."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r":(\d+)/", line)
        assert found, process.communicate()
        self.port = int(found[1])

    def connect(self, timeout: float = 30) -> socket.socket:
        """A connection of which nothing has been sent yet."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask(self, path, body=None, headers=JSON, timeout=600):
        """The status, the headers and the text of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if body is None or isinstance(body, bytes | Iterator) else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, data, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()


@contextmanager
def running(*command: str) -> Iterator[Running]:
    """A server by a command of Python that prints its address; it is killed in the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.communicate()
