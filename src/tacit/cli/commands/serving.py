"""The command that serves a network: the explorer page and a JSON API."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from typing import Annotated

import typer

from tacit.base.errors import TacitError
from tacit.cli.shared.arguments import CaptionsFile, FirstQuery, Model, options_of, read_network
from tacit.cli.shared.output import note
from tacit.views.page import Captions


@dataclass(frozen=True)
class ServeJob:
    """The arguments and options of `tacit serve`."""

    model: Model
    port: Annotated[int, typer.Option(help="The port; 0 takes any that is free.")] = 8000
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1"
    public: Annotated[
        bool, typer.Option("--public", help="Allow a host that other machines can reach. There is no password.")
    ] = False
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False
    query: FirstQuery = None
    captions: CaptionsFile = None
    seconds: Annotated[float, typer.Option(help="The longest time that a request may take.")] = 60.0
    rows: Annotated[int, typer.Option(help="The most rows of evidence in a request.")] = 10_000


@options_of(ServeJob)
def serve(job: ServeJob) -> None:
    """Serve a network: the explorer page, and a JSON API, until Ctrl-C.

    Only this machine can reach it, unless --host and --public say otherwise. /openapi.json describes the API.

    \b
    Examples:
      tacit serve alarm.bif --open
      tacit serve alarm.bif --port 0
      curl http://127.0.0.1:8000/api/posterior -H "Content-Type: application/json" \\
        -d '{"query": "LVFAILURE", "rows": [{"HISTORY": "TRUE", "CVP": [0.1, 0.2, 0.7]}]}'
    """
    try:
        import tacit.serve as server
    except ModuleNotFoundError as error:
        raise TacitError(str(error)) from None
    if job.host not in server.guard.LOOPBACK:
        if not job.public:
            raise typer.BadParameter(f"other machines could reach {job.host}; give --public as well if that is meant")
        note(f"anybody who can reach {job.host} can query this network: there is no password and no encryption")
    net = read_network(job.model)
    captions = Captions.chosen(net, job.captions, job.query)

    def started(address: str) -> None:
        print(f"{net.name or job.model.name}: {address} (Ctrl-C stops it)", flush=True)
        if job.open_:
            webbrowser.open(address)

    limits = server.Limits(seconds=job.seconds, rows=job.rows)
    server.serve(net, job.host, job.port, limits, captions, started)
