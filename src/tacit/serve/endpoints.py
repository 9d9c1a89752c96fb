"""The endpoints, with the forms of questions and answers as JSON Schema: the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacit.base.version import VERSION
from tacit.serve import answers
from tacit.serve.answers import QueryTask
from tacit.serve.request import MAX_ENTRIES, MAX_SEED

Schema = dict[str, Any]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(about: str = "", /, **properties: Schema) -> Schema:
    """An object that has all these properties."""
    form = {"type": "object", "properties": properties, "required": list(properties)}
    return form | ({"description": about} if about else {})


def _with_tests(**properties: Schema) -> Schema:
    """An object that has all these properties, and may have tests."""
    return _with(_object(**properties), tests=_by_name(_ref("Tests")))


def _with(form: Schema, **optional: Schema) -> Schema:
    """An object that may also have other properties."""
    return form | {"properties": form["properties"] | optional}


def _each(names: str, form: Schema) -> dict[str, Schema]:
    """Properties of one form, whose names have spaces between."""
    return dict.fromkeys(names.split(), form)


def _list(items: Schema, about: str = "") -> Schema:
    return {"type": "array", "items": items} | ({"description": about} if about else {})


def _by_name(values: Schema, about: str = "") -> Schema:
    return {"type": "object", "additionalProperties": values} | ({"description": about} if about else {})


TEXT, WHOLE, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
NUMBER = {"type": ["number", "null"]}  # null where there is none
ARRAY = {"type": ["array", "number", "null"]}  # with as many axes as it needs
LOG_EVIDENCE = _list(NUMBER, "The logarithm of p*(evidence) of each row; null where it is impossible.")
EVIDENCE = {
    "rows": _list(_by_name(_ref("Value")), "A row each: variables with their values."),
    "columns": _by_name(
        {"oneOf": [_ref("Value"), _list(_ref("Value"))]},
        "Instead of rows: of each variable a list with a value for each row, or one value for all rows. A list is "
        "always one of rows.",
    ),
    "do": _by_name(
        _ref("State"),
        "Variables that are set to a state, in every row, and not observed: nothing is concluded about their causes.",
    ),
}
QUERY = {"oneOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
WITH_WEIGHTS = TRUTH | {"description": "Also say how likely each joint state of a continuous variable's parents is."}
WITH_TESTS = TRUTH | {"description": "Also say how testing nodes were decided."}

SCHEMAS: dict[str, Schema] = {
    "State": {"type": ["string", "number", "boolean"]},
    "Value": {
        "description": "A state; the likelihood of the first of two states, unless labels are numbers or spell them: "
        "then a number is a state; a likelihood for each state, in their order or by name; of a continuous variable a "
        "number, by the name of its column; or null, for no evidence.",
        "oneOf": [
            {"type": ["string", "number", "boolean", "null"]},
            _list({"type": "number"}),
            _by_name({"type": "number"}),
        ],
    },
    "Tests": _object(
        "How a testing node was decided: P*(u) of its parents and the weight of `plus`, for each row and each "
        "state of the parents; thresholds and operators without an axis of rows. Of more than two tables, thresholds "
        "and weights have one more axis: the tests, from small to large, and the weight of each table.",
        parents=_list(TEXT),
        **_each("thresholds posterior weight", ARRAY),
        gamma=NUMBER,
        operators={"type": ["array", "string"]},
    ),
    "Test": _object(
        **_each("node parent_state operator selected", TEXT),
        **_each("posterior threshold weight margin", NUMBER),
        flips=_by_name(NUMBER, "For each input, the value at which the test would come out otherwise."),
    ),
    "Finding": _object(
        **_each("name value", TEXT),
        without=_by_name(NUMBER, "The posterior if this finding were missing."),
        weight=_by_name(NUMBER, "By how much it raises the log-odds of each state, given the others."),
    ),
    "Difference": _object(
        **_each("name first second", TEXT),
        posterior=_by_name(NUMBER, "Once this finding, and all before it, are those of the second row."),
        weight=_by_name(NUMBER, "By how much that step raised the log-odds of each state, in nats."),
    ),
    "Explanation": _object(
        posterior=_by_name(NUMBER),
        evidence=_by_name(TEXT),
        tests=_list(_ref("Test")),
        findings=_list(_ref("Finding"), "Of a query without tests, what each finding adds to the others."),
        functions={
            "description": "With this selection, p*(query) as a polynomial of the inputs; null if there are many.",
            "type": ["array", "null"],
            "items": _object(inputs=_list(TEXT), coefficients=_list(NUMBER)),
        },
        text=TEXT,
    ),
    "Entry": _object(
        **_each("node part name", TEXT), **_each("value derivative growth flips_at", NUMBER), place=_list(WHOLE)
    ),
    "Model": _object(
        name={"type": ["string", "null"]},
        variables=_list(_object(name=TEXT, states=_list(_ref("State")), parents=_list(TEXT), testing=TRUTH)),
        limits=_by_name({"type": "number"}),
    ),
    "Numbers": _object(
        "The distribution of the numbers of one column: for each row, their mean, their standard deviation and three "
        "quantiles; null where the number is known, or the evidence impossible.",
        **_each("mean sd 5% 50% 95%", _list(NUMBER)),
    ),
    "Error": _object(error=TEXT),
}


@dataclass(frozen=True)
class Endpoint:
    """A question, the fields that it may have, of which only a query is needed, and the form of its answer.

    One about `pairs` needs two rows. A `quick` one only runs the query: if it is small, and there is one row, that
    takes less time than to hand it over to a thread.
    """

    path: str
    respond: Callable[[QueryTask], dict[str, Any]]
    about: str
    fields: dict[str, Schema]
    answer: Schema
    quick: bool = False
    pairs: bool = False

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """The names of all fields."""
        return (*self.fields, *EVIDENCE)

    @property
    def question(self) -> Schema:
        """The form of the question."""
        form = _object(**self.fields, **EVIDENCE) | {"required": ["query"] if "query" in self.fields else []}
        return form | {"additionalProperties": False, "not": {"required": ["rows", "columns"]}}


ENDPOINTS = (
    Endpoint(
        "/api/posterior",
        answers.posterior,
        "The posterior of a variable, or the joint posterior of several; of a continuous one its mean and quantiles",
        {"query": QUERY, "tests": WITH_TESTS},
        {
            "oneOf": [
                _with_tests(
                    query=QUERY,
                    states=_by_name(_list(_ref("State"))),
                    posterior=_list(ARRAY, "For each row, a probability for each state of the query."),
                    log_evidence=LOG_EVIDENCE,
                ),
                _object(
                    query=QUERY,
                    numbers=_by_name(_ref("Numbers"), "Of each column of a continuous query."),
                    log_evidence=LOG_EVIDENCE,
                ),
            ]
        },
        quick=True,
    ),
    Endpoint(
        "/api/predict",
        answers.predict,
        "The most probable state of a variable, or of several together",
        {"query": QUERY},
        _object(
            query=QUERY,
            states=_list(
                {"oneOf": [_ref("State"), _list(_ref("State")), {"type": "null"}]},
                "For each row a state; a list, for several variables; null where the evidence is impossible.",
            ),
            probability=_list(NUMBER, "Of these states, for each row."),
        ),
    ),
    Endpoint(
        "/api/marginals",
        answers.marginals,
        "The posteriors of all variables",
        {
            "variables": _list(TEXT, "The variables that are wanted; all, if left out."),
            "tests": WITH_TESTS,
            "weights": WITH_WEIGHTS,
        },
        _with(
            _with_tests(
                posteriors=_by_name(_list(_list(NUMBER)), "Of each variable: for each row, one for each state."),
                log_evidence=LOG_EVIDENCE,
            ),
            numbers=_by_name(_ref("Numbers"), "Of each column of the continuous variables, if there are any."),
            weights=_by_name(
                _list(_list(NUMBER)),
                "Of each continuous variable: for each row, the posterior of each joint state of its parents, the last "
                "parent fastest.",
            ),
        ),
    ),
    Endpoint(
        "/api/mpe",
        answers.mpe,
        "The states of all variables that are most probable together",
        {},
        _object(
            states=_by_name(_list({"oneOf": [_ref("State"), {"type": "null"}]}), "Of each variable, one per row."),
            log_probability=_list(NUMBER, "The logarithm of p*(states, evidence) of each row."),
        ),
    ),
    Endpoint(
        "/api/sample",
        answers.sample,
        "Samples of all variables, exact and independent",
        {
            "n": WHOLE | {"minimum": 1, "default": 1, "description": "How many samples of each row."},
            "seed": WHOLE | {"minimum": 0, "maximum": MAX_SEED - 1, "description": "For the same samples every time."},
        },
        _object(
            states=_by_name(
                _list(_list({"oneOf": [_ref("State"), {"type": "null"}]})),
                "Of each variable: for each row, one per sample; null where the row is impossible.",
            ),
        ),
    ),
    Endpoint(
        "/api/explain",
        answers.explain,
        "Why a query has this answer",
        {"query": TEXT},
        _object(query=TEXT, explanations=_list(_ref("Explanation"), "One for each row.")),
    ),
    Endpoint(
        "/api/compare",
        answers.compare,
        "Why two rows get different answers",
        {
            "query": TEXT,
            "state": {
                "description": "The state that the sentence is about; the first row's most probable one, if left out.",
                "oneOf": [_ref("State")],
            },
        },
        _object(
            query=TEXT,
            posterior=_list(_by_name(NUMBER), "Of the first row and of the second."),
            conclusion=TEXT,
            differences=_list(_ref("Difference"), "The findings that differ, in the order in which they are changed."),
            text=TEXT,
        ),
        pairs=True,
    ),
    Endpoint(
        "/api/information",
        answers.information,
        "By how much the entropy of the query is expected to drop, in nats, if a variable were observed",
        {"query": QUERY},
        _object(
            query=QUERY,
            information=_by_name(_list(NUMBER), "Of each variable, one per row; null where it is observed."),
        ),
    ),
    Endpoint(
        "/api/sensitivity",
        answers.sensitivity,
        "The numbers of the network that the posterior of a state depends on most",
        {
            "query": QUERY,
            "state": {
                "description": "A state of the query, a list for several variables; the most probable one of each row, "
                "if left out.",
                "oneOf": [_ref("State"), _list(_ref("State"))],
            },
            "top": WHOLE
            | {
                "minimum": 1,
                "maximum": MAX_ENTRIES,
                "default": 20,
                "description": "How many numbers; 20, if left out.",
            },
        },
        _object(
            query=QUERY,
            states=_list(_list(_ref("State")), "For each row, the state that is looked at, of each query variable."),
            posterior=_list(NUMBER),
            entries=_list(_list(_ref("Entry")), "For each row, those with the largest derivatives first."),
        ),
    ),
)
REFUSALS = {
    "400": "The request is not JSON, or not of this form.",
    "408": "The request did not arrive in time.",
    "413": "The request is too large.",
    "415": "The request does not say that it is JSON (Content-Type: application/json).",
    "422": "The request asks for something that does not exist, or its evidence is not valid.",
    "503": "The server is busy, or the answer would take too long; try again after the seconds in Retry-After.",
}


def document() -> Schema:
    """The whole document."""
    refusals = {status: _response(about, _ref("Error")) for status, about in REFUSALS.items()}
    refusals["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    paths: Schema = {}
    for endpoint in ENDPOINTS:
        post = {
            "operationId": endpoint.path.rpartition("/")[2],
            "summary": endpoint.about,
            "requestBody": {"required": True, "content": {"application/json": {"schema": endpoint.question}}},
            "responses": {"200": _response("The answer.", endpoint.answer), **refusals},
        }
        paths[endpoint.path] = {"post": post}
    paths["/api/model"] = {"get": _get("model", "The network and the limits of the server", _ref("Model"))}
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


def _get(name: str, summary: str, schema: Schema) -> Schema:
    return {"operationId": name, "summary": summary, "responses": {"200": _response("The answer.", schema)}}


def _response(about: str, schema: Schema) -> Schema:
    return {"description": about, "content": {"application/json": {"schema": schema}}}
