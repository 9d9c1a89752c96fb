"""The page /docs: how to ask, in words and with examples about the network at hand."""

from __future__ import annotations

import json
import shlex
from html import escape
from typing import Any

from tacit.query.network import Network
from tacit.serve.endpoints import ENDPOINTS, EVIDENCE, SCHEMAS, Endpoint, Schema

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; font-size: 1.15rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
h2 code { font-size: inherit; }
pre { padding: .75rem 1rem; overflow-x: auto; border-radius: 6px; background: light-dark(#f3f4f6, #24262b); }
table { border-collapse: collapse; }
td { padding: .25rem 1.5rem .25rem 0; vertical-align: top; }
"""
EXAMPLES = {"top": 5, "n": 3, "seed": 1}  # of fields that hold no names
KINDS = {"string": "text", "integer": "a whole number", "boolean": "true or false", "array": "a list"}


def manual(net: Network, address: str) -> str:
    """The page as HTML, for a server at an address."""
    title = escape(f"{net.name or 'A network'}: the JSON API")
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width"><style>' + STYLE + "</style>",
        f"<h1>{title}</h1>",
        "<p>Each question is a POST request with JSON, and takes many rows at once. "
        '<a href="openapi.json">openapi.json</a> has all of this for tools, '
        '<a href="api/model">api/model</a> the variables with their states and the limits of this server, '
        'and <a href=".">the explorer</a> asks the same questions by clicks.</p>',
        *(_section(one, net, address) for one in ENDPOINTS),
        "<h2>Evidence</h2><p>Every question may have these fields:</p>",
        _fields(EVIDENCE),
        f"<p>What a value may be: {escape(SCHEMAS['Value']['description'])}</p>",
        "<h2>Errors</h2><p>An error is <code>{&quot;error&quot;: &quot;...&quot;}</code>, with the words of Python. "
        "The status is 400 for what is no question, 422 for what does not exist, and 503 if the server is busy.</p>",
        "</html>",
    ]
    return "\n".join(parts)


def _section(endpoint: Endpoint, net: Network, address: str) -> str:
    body = json.dumps(_example(endpoint, net), ensure_ascii=False)
    command = f"curl {address}{endpoint.path} \\\n  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"
    fields = f"<p>Fields, beside the evidence:</p>{_fields(endpoint.fields)}" if endpoint.fields else ""
    about = f"<p>{escape(endpoint.about)}.</p>"
    return f"<h2><code>POST {endpoint.path}</code></h2>{about}<pre>{escape(command)}</pre>{fields}"


def _example(endpoint: Endpoint, net: Network) -> dict[str, Any]:
    """A question about the last variable that has states, given the first of all."""
    first, last = net.variables[0], ([name for name in net if net.states(name)] or list(net))[-1]
    question: dict[str, Any] = {name: EXAMPLES[name] for name in endpoint.fields if name in EXAMPLES}
    if "query" in endpoint.fields:
        question = {"query": last, **question}
    seen: dict[str, Any] = dict.fromkeys(net.variable(first).columns, 1.0) or {first: net.states(first)[0]}
    rows = [seen] if first != last else [{}]
    return question | {"rows": [*rows, {}] if endpoint.pairs else rows}


def _fields(fields: dict[str, Schema]) -> str:
    rows = (f"<tr><td><code>{name}</code><td>{escape(_about(name, form))}" for name, form in fields.items())
    return f"<table>{''.join(rows)}</table>"


def _about(name: str, form: Schema) -> str:
    if name == "query":
        return "The name of a variable." if "oneOf" not in form else "The name of a variable, or a list of names."
    return form.get("description") or f"{KINDS[form['type']].capitalize()}."
