"""Connections: how long a server waits for a client that takes its answer slowly, and that answers go out at once."""

import asyncio
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

import tacit
from tacit.serve import Limits, application
from tacit.serve.server import _listening, protocol


class Transport(asyncio.Transport):
    """A transport of which a test says how much is left to be sent."""

    left, aborted = 1000, False

    def get_write_buffer_size(self):
        return self.left

    def abort(self):
        self.aborted = True

    def close(self):
        pass


@pytest.mark.parametrize("taken", [0, 100])
def test_a_client_that_takes_some_of_its_answer_may_go_on(taken):
    async def paused():
        transport = Transport()
        config = uvicorn.Config(application(tacit.examples.abc()), log_config=None)
        own = protocol(Limits(reading=0.2))(config, ServerState(), {})
        own.connection_made(transport)
        own._awaited.stop()
        own.pause_writing()
        for _ in range(9):
            await asyncio.sleep(0.05)
            transport.left -= taken
        steady = transport.aborted
        await asyncio.sleep(0.5)  # nothing more is taken
        own.connection_lost(None)
        return steady, transport.aborted

    assert asyncio.run(paused()) == (taken == 0, True)


def test_answers_are_sent_at_once():
    """Nagle's algorithm would keep the body of an answer back until the client has confirmed the head."""

    async def accepted():
        found = asyncio.get_running_loop().create_future()

        class Accepting(asyncio.Protocol):
            def connection_made(self, transport):
                found.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        with _listening("127.0.0.1", 0) as listening:
            server = await asyncio.get_running_loop().create_server(Accepting, sock=listening)
            async with server:
                _, writer = await asyncio.open_connection(*listening.getsockname())
                option = await found
                writer.close()
                await writer.wait_closed()
        return option

    assert asyncio.run(accepted())
