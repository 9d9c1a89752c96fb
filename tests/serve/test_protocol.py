"""How long a server waits for a client that takes its answer slowly."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

import tacit
from tacit.serve import Limits, application
from tacit.serve.protocol import protocol


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
