"""The OpenAPI document: what can be asked, and in which form the answers come."""

from __future__ import annotations

from typing import Any

from tacit.installation import VERSION
from tacit.serve.endpoints import ENDPOINTS, SCHEMAS, Endpoint

REFUSALS = {
    "400": "The request is not JSON, or not of this form.",
    "408": "The request did not arrive in time.",
    "413": "The request is too large.",
    "415": "The request does not say that it is JSON (Content-Type: application/json).",
    "422": "The request asks for something that does not exist, or its evidence is not valid.",
    "503": "The server is busy, or the answer would take too long; try again after the seconds in Retry-After.",
}


def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {endpoint.path: {"post": _post(endpoint)} for endpoint in ENDPOINTS}
    paths["/api/model"] = {"get": _get("model", "The network and the limits of the server", _schema("Model"))}
    paths["/health"] = {"get": _get("health", "Whether the server runs", {"type": "object"})}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tacit",
            "version": VERSION,
            "description": "Queries of one Bayesian network. Numbers that do not exist are null: posteriors given "
            "impossible evidence, and logarithms of 0.",
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _post(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "operationId": endpoint.path.rpartition("/")[2],
        "summary": endpoint.about,
        "requestBody": {"required": True, "content": {"application/json": {"schema": endpoint.question}}},
        "responses": {"200": _response("The answer.", endpoint.answer), **_refusals(*REFUSALS)},
    }


def _get(name: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": {"200": _response("The answer.", schema)}}


def _refusals(*statuses: str) -> dict[str, Any]:
    found = {status: _response(REFUSALS[status], _schema("Error")) for status in statuses}
    if "503" in found:
        found["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return found


def _response(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}
