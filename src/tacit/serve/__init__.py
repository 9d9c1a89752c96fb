"""A network behind HTTP: the explorer page and a JSON API, on a server of this machine."""

from tacit.base.version import how_to_install

try:
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"tacit.serve needs starlette and uvicorn: {how_to_install('serve')}", name=error.name
    ) from error

from tacit.serve.asgi import application
from tacit.serve.limits import Limits
from tacit.serve.server import serve

__all__ = ["Limits", "application", "serve"]
