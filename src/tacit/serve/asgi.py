"""The application, for any server that speaks ASGI: routes, the page, and the errors of requests."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tacit.base.errors import TacitError
from tacit.model.as_dict import edges_to_json
from tacit.query.answers.answer import quietly
from tacit.query.network import Network
from tacit.serve.answers import QueryTask
from tacit.serve.endpoints import ENDPOINTS, Endpoint, document
from tacit.serve.guard import Guard
from tacit.serve.limits import Limits
from tacit.serve.manual import manual
from tacit.serve.queries import Queries
from tacit.serve.replies import RefusedError, answer, encoded, refused
from tacit.serve.request import Bodies, Fields
from tacit.serve.workers import Deadline, Workers
from tacit.views.page import Captions, page_html

T = TypeVar("T")
CLIENT_GONE = 499  # a status that nobody reads, as other servers have it
QUICK_BYTES = 2_000  # of a request that is answered without a thread
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
log = logging.getLogger("tacit.serve")


def _page(html: str) -> Response:
    """A page that may run only the scripts that are in it, and ask only this server."""
    digests = [hashlib.sha256(text.encode("utf-8")).digest() for text in SCRIPT.findall(html)]
    scripts = " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Response(html.encode("utf-8"), headers={"Content-Security-Policy": policy}, media_type="text/html")


class Service:
    """One network, and the queries and workers that answer requests about it."""

    def __init__(self, net: Network, limits: Limits, page: Callable[[], str]) -> None:
        self.net, self.limits = net, limits
        self.queries = Queries(net, limits.compiled)
        self.workers = Workers(limits.threads, limits.waiting)
        self.bodies = Bodies(limits)
        self._make_page = page
        self._page: Future[Response] | None = None

    def warm_up(self) -> None:
        """Compile what the page asks first, and load the kernels."""
        self.workers.submit(self.queries.of_all)

    async def ask(self, endpoint: Endpoint, request: Request) -> Response:
        """The answer to a question."""
        async with self.bodies.body(request) as body:
            deadline = Deadline(self.limits.seconds)
            quick = self.quick(endpoint, body, deadline)
            if quick is not None:
                return answer(_answered(endpoint, quick))
            work = self.workers.submit(partial(self.answered, endpoint, body, deadline))
            return answer(await _result(work, request, deadline))

    def quick(self, endpoint: Endpoint, body: bytes, deadline: Deadline) -> QueryTask | None:
        """A task that need not be handed over to a thread, since that would take longer than the task does."""
        if not endpoint.quick or len(body) > QUICK_BYTES:
            return None
        fields = Fields(body, endpoint.allowed)
        plain = fields.single and not fields.tests and not fields.do
        tac = self.queries.at_hand(fields.query) if plain else None
        return None if tac is None else QueryTask(self.queries, fields, self.limits, deadline, tac)

    def answered(self, endpoint: Endpoint, body: bytes, deadline: Deadline) -> bytes:
        """The JSON of the answer, computed in a thread."""
        deadline.check()
        fields = Fields(body, endpoint.allowed)
        return _answered(endpoint, QueryTask(self.queries.after(fields.do), fields, self.limits, deadline))

    async def page(self, request: Request) -> Response:
        """The explorer, made once: if that takes longer than a request may, a later one gets it."""
        if self._page is None or (self._page.done() and self._page.exception() is not None):
            self._page = self.workers.submit(lambda: _page(self._make_page()), kept=True)
        return await _result(self._page, request, Deadline(self.limits.seconds))

    async def manual(self, request: Request) -> Response:
        """How to ask, for people who write programs."""
        return _page(manual(self.net, str(request.base_url).rstrip("/")))

    def model(self) -> dict[str, Any]:
        """The variables of the network, and the limits of a request."""
        net, limits = self.net, self.limits
        return {
            "name": net.name,
            "variables": [
                {
                    "name": name,
                    "states": list(net.states(name)),
                    **_bins(net, name),
                    **({"columns": list(net.variable(name).columns)} if net.variable(name).continuous else {}),
                    "parents": list(net.parents(name)),
                    "testing": name in net.testing_nodes,
                }
                for name in net.variables
            ],
            "limits": {"body": limits.body, "rows": limits.rows, "numbers": limits.numbers, "seconds": limits.seconds},
        }


def _bins(net: Network, name: str) -> dict[str, Any]:
    """The edges of an interval variable, as the format of networks writes them."""
    edges = net.bins(name)
    return {} if edges is None else {"bins": edges_to_json(edges)}


def application(
    net: Network, limits: Limits | None = None, captions: Captions | None = None, host: str = "127.0.0.1"
) -> ASGIApp:
    """An ASGI application that answers questions about a network, for a server that listens at `host`.

    >>> from starlette.testclient import TestClient
    >>> from tacit.examples import abc
    >>> client = TestClient(application(abc()), base_url="http://localhost")
    >>> client.post("/api/mpe", json={"rows": [{"A": "true", "C": "lo"}]}).json()["states"]
    {'A': ['true'], 'B': ['true'], 'C': ['lo']}
    """
    net.require_numbers()
    service = Service(net.copy(), limits or Limits(), partial(page_html, net, captions, remote=True))
    constants = {"/health": {"status": "ok"}, "/openapi.json": document(), "/api/model": service.model()}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.warm_up()
        yield

    app = Starlette(
        routes=[  # looked through in this order: questions first
            *(Route(one.path, _refusing(partial(service.ask, one)), methods=["POST"]) for one in ENDPOINTS),
            Route("/", _refusing(service.page)),
            Route("/docs", service.manual, methods=["GET"]),
            *(Route(path, answer(encoded(data)), methods=["GET"]) for path, data in constants.items()),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _our_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return Guard(app, host)


def _answered(endpoint: Endpoint, task: QueryTask) -> bytes:
    """The JSON of an answer. Evidence that is impossible needs no warning, since null tells."""
    with quietly():
        response = endpoint.respond(task)
    task.deadline.check()
    return encoded(response)


Handler = Callable[[Request], Awaitable[Response]]


def _refusing(handler: Handler) -> Handler:
    """A handler that answers errors of the request, too."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RefusedError as error:
            return refused(error.status, str(error))
        except TacitError as error:
            return refused(422, str(error))
        except ClientDisconnect:
            return refused(CLIENT_GONE, "the client has gone")

    return handle


async def _result(future: Future[T], request: Request, deadline: Deadline) -> T:
    """The result of a worker's task, unless that takes too long, or the client goes away."""
    work = asyncio.wrap_future(future)
    work.add_done_callback(lambda done: done.cancelled() or done.exception())  # which may come too late to be told
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        waiting: set[asyncio.Future[Any]] = {work, gone}
        await asyncio.wait(waiting, timeout=deadline.seconds, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        deadline.pass_()
        raise RefusedError(CLIENT_GONE, "the client has gone") if gone.done() else deadline.error()
    finally:
        work.cancel()  # if it has not begun
        gone.cancel()


async def _disconnected(request: Request) -> None:
    with suppress(ClientDisconnect):
        while (await request.receive())["type"] != "http.disconnect":
            pass


async def _http_error(request: Request, error: Exception) -> Response:
    """A path or a method that does not exist."""
    assert isinstance(error, HTTPException)
    allow = (error.headers or {}).get("Allow")
    if error.status_code == 405:
        return refused(405, f"{request.method[:20]} is not a method of {request.url.path[:80]}; use {allow}", allow)
    return refused(error.status_code, f"{request.url.path[:80]} does not exist; see /openapi.json")


async def _our_error(_: Request, error: Exception) -> Response:
    log.error("an error that is not the client's", exc_info=error)
    return refused(500, "something is wrong with the server, not with the request; it was logged")
