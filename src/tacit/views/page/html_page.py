"""The page itself: files of `web/` put into one, with the model inside."""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit.base.atomic import write_atomically
from tacit.base.errors import TooLargeError
from tacit.base.text import visible
from tacit.model.model import Model
from tacit.query.ensembles.base_ensemble import AnyEnsemble
from tacit.views.edges import EdgeLooks
from tacit.views.page.captions import Captions
from tacit.views.page.page_model import page_model

PARTS = re.compile(r'<link rel="stylesheet" href="([\w.-]+)">|<script src="([\w.-]+)"></script>')
ESCAPED = re.compile("[<\ud800-\udfff]")  # what would end the script, and what UTF-8 cannot hold
MODEL = '<script type="application/json" id="model"></script>'
LOCAL, REMOTE = '<script src="questions.js"></script>', '<script src="remote.js"></script>'  # what answers questions
NO_CONNECTIONS, TO_SERVER = "default-src 'none';", "default-src 'none'; connect-src 'self';"
PACKED_FROM = 200_000  # characters of programs and tables; a small page stays readable
MAX_SIZE = 20_000_000  # characters of a page, packed: what a browser opens and people can send
FRAME_HEIGHT = 640  # of the explorer in a notebook, in pixels


def page_html(
    net: Model,
    captions: Captions | None = None,
    remote: bool = False,
    *,
    strength: Mapping[tuple[str, str], float] | None = None,
    undirected: Iterable[tuple[str, str]] = (),
    tables: AnyEnsemble | None = None,
) -> str:
    """The explorer of a network: one page that needs nothing else, or (`remote`) one that asks a server.

    `strength` and `undirected` are those of `draw`: edges below 1 are dashed, those without a direction have no tip.
    `tables` is an ensemble, for intervals on the bars.
    """
    looks = EdgeLooks.checked(net.edges, strength or {}, undirected) if strength or undirected else None
    model = page_model(net, captions or Captions(), remote, looks, tables)
    source = _web("page.html")
    if remote:
        source = source.replace(LOCAL, f"{LOCAL}\n{REMOTE}", 1).replace(NO_CONNECTIONS, TO_SERVER, 1)
    page = PARTS.sub(lambda p: f"<style>\n{_web(p[1])}</style>" if p[1] else f"<script>\n{_web(p[2])}</script>", source)
    data = ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", _json(packed(model)))
    if len(data) > MAX_SIZE:
        size, limit = len(data) / 1e6, MAX_SIZE / 1e6
        raise TooLargeError(
            f"too large for a page: the numbers take {size:.0f} MB (limit {limit:.0f} MB); `tacit serve` shows the "
            "network from a server"
        )
    page = page.replace(MODEL, MODEL.replace("></", f">{data}</"), 1)
    return page.replace("<title></title>", f"<title>{escape(visible(model['title']))}</title>", 1)


def packed(model: dict[str, Any]) -> dict[str, Any]:
    """The same model, with programs and tables compressed where they are large; `web/app.js` unpacks them."""
    heavy = {key: model[key] for key in ("programs", "tables", "tests") if key in model}
    text = _json(heavy)
    if len(text) < PACKED_FROM:
        return model
    light = {key: value for key, value in model.items() if key not in heavy}
    return light | {"packed": b64encode(zlib.compress(text.encode(), 9)).decode()}


def write_page(
    net: Model,
    path: str | os.PathLike[str],
    captions: Captions | None = None,
    *,
    strength: Mapping[tuple[str, str], float] | None = None,
    undirected: Iterable[tuple[str, str]] = (),
    tables: AnyEnsemble | None = None,
) -> None:
    """Write the explorer of a network to a file; the other parameters are those of `page_html`.

    A network without a name gets that of the file as a title.
    """
    captions = captions or Captions()
    if not (captions.title or net.name):
        captions = replace(captions, title=Path(path).stem)
    page = page_html(net, captions, strength=strength, undirected=undirected, tables=tables)
    write_atomically(path, lambda file: file.write(page))


class Explorer:
    """The explorer in a cell of a notebook."""

    def __init__(self, html: str) -> None:
        self.html = html

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its styles and scripts do not meet those of the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html, quote=True)}" sandbox="allow-scripts allow-downloads" '
            f'title="Explorer" style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _web(name: str) -> Any:
    return files("tacit.views.page").joinpath("web", name).read_text("utf-8")
