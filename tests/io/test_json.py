"""Saving and loading: nothing is lost, nothing is half written, and damage is found and located."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, FormatError, Network, examples, load, save
from tests.helpers import tries
from tests.io import support
from tests.strategies import networks, tied_networks

nan = np.nan


def every_kind():
    """A network with one CPT of each kind, and plain names."""
    return support.every_kind("every kind", "C")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.json"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("json") / "net.json"


@given(net=networks(unset=True) | tied_networks(unset=True))
def test_a_saved_network_is_loaded_exactly(scratch, net):
    save(net, scratch)
    loaded = load(scratch)
    assert loaded == net
    assert loaded.variables == net.variables
    assert [type(s) for n in net for s in loaded.states(n)] == [type(s) for n in net for s in net.states(n)]


@given(p=st.floats(0, 1))
def test_floats_are_loss_free(scratch, p):
    net = Network()
    net.add("A", cpt=[p, 1 - p])
    save(net, scratch)
    assert load(scratch).table("A").tobytes() == net.table("A").tobytes()


@pytest.mark.parametrize(
    "net",
    [
        every_kind(),
        Network(),
        Network('lone surrogate \udc80 and quote " and null \0'),
        *(make() for make in (examples.abc, examples.noisy_or_classifier, examples.hmm, examples.chain)),
    ],
    ids=lambda net: repr(net.name),
)
def test_save_and_load_round_trip(net, path):
    save(net, str(path))
    assert load(path) == net
    assert Network.from_dict(net.to_dict()) == net


def test_a_function_without_parents_round_trips(path):
    net = Network()
    net.add("A", cpt=CPT.from_function(lambda: "true"))
    save(net, path)
    assert load(path) == net


def test_the_file_is_strict_json_with_one_node_per_line(path):
    save(every_kind(), path)
    text = path.read_text(encoding="utf-8")
    data = json.loads(text, parse_constant=pytest.fail)
    assert data == every_kind().to_dict()
    assert (data["format"], data["version"]) == ("tacit-network", 1)
    assert sum(line.startswith('  {"name"') for line in text.splitlines()) == 6


def with_values():
    net = every_kind()
    net.value("Cost", ["B", "A"], [[-1, 2.5], [0, 1e-300], [3, 4]])
    net.value("Fee", [], -0.1)
    return net


def test_value_nodes_have_a_version_and_a_line_each(path):
    save(with_values(), path)
    assert load(path) == with_values()
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    assert data["version"] == 5
    assert data["values"][0] == {"name": "Cost", "parents": ["B", "A"], "table": [[-1, 2.5], [0, 1e-300], [3, 4]]}
    assert sum(line.startswith('  {"name"') for line in text.splitlines()) == 8


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "document.values is an object, expected a list"),
        ([3], "values[0] is an integer, expected an object"),
        ([{"parents": [], "table": 0}], "values[0] has no 'name'"),
        ([{"name": "A", "parents": [], "table": 0}], "values[0]: node 'A' is in the network already"),
        ([{"name": "V", "parents": "A", "table": [0, 1]}], "values[0].parents is a string, expected a list"),
        ([{"name": "V", "parents": [["A"]], "table": [0, 1]}], "values[0]: node 'V': parent ['A'] is not in the"),
        ([{"name": "V", "parents": ["A"], "table": True}], "values[0].table is true or false, expected"),
        ([{"name": "V", "parents": ["A"], "table": [0, None]}], "values[0]: value node 'V': table at A='false' is nan"),
        ([{"name": "V", "parents": ["A"], "table": ["0", 1]}], "values[0].table is not a regular array"),
    ],
)
def test_faults_of_value_nodes_have_a_place(path, value, message):
    path.write_text(json.dumps({**with_values().to_dict(), "values": value}), encoding="utf-8")
    with pytest.raises(FormatError, match=r"net\.json: ") as error:
        load(path)
    assert message in str(error.value)


def test_only_networks_can_be_saved(path):
    with pytest.raises(tacit.TacitError, match="cannot save a dict; expected a Network"):
        save({}, path)
    assert not path.exists()


def test_a_missing_file_is_the_usual_error(path):
    with pytest.raises(FileNotFoundError):
        load(path)


# damaged files ---------------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused_with_line_and_column(path):
    save(every_kind(), path)
    text = path.read_text(encoding="utf-8")
    for end in range(len(text.rstrip())):
        path.write_text(text[:end], encoding="utf-8")
        with pytest.raises(FormatError, match=r"net\.json: line \d+, column \d+: "):
            load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1, column 1: Expecting value"),
        (b"\xff\xfe", "not a text file: byte 0 is not UTF-8"),
        (b"[1, 2]", "document is a list, expected an object"),
        (b"null", "document is null, expected an object"),
        (b"{}", "document has no 'format'"),
        (b'{"format": "other"}', "document.format is 'other', expected 'tacit-network'"),
        (b'{"format": "tacit-network"}', "document has no 'version'"),
        (b'{"format": "tacit-network", "version": true}', "document.version is true or false, expected an integer"),
        (b"[" * 100_000, "maximum recursion depth exceeded"),
        (b"[" + b"1" * 5000 + b"]", "Exceeds the limit"),
    ],
)
def test_a_file_that_is_no_network_is_refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"net\.json: ") as error:
        load(path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("version", 6, "document.version 6 is not known; this release reads versions 1 to 5"),
        ("name", 5, "document.name is an integer, expected a string or null"),
        ("nodes", {}, "document.nodes is an object, expected a list"),
        ("nodes 1", 3, "nodes[1] is an integer, expected an object"),
        ("nodes 1 name", None, "nodes[1].name is null, expected a string"),
        ("nodes 1 name", "A", "nodes[1]: node 'A' is in the network already"),
        ("nodes 1 parents", ["C"], "nodes[1]: node 'B': parent 'C' is not in the network"),
        ("nodes 1 parents", [["A"]], "nodes[1]: node 'B': parent ['A'] is not in the network"),
        ("nodes 1 states", [1, 1, 2], "nodes[1]: node 'B': state 1 is listed twice"),
        ("nodes 1 states", [1, 2], "nodes[1]: node 'B': table has shape (2, 3), expected (2, 2)"),
        ("nodes 1 cpt kind", "cpt", "nodes[1].cpt.kind 'cpt' is not known; expected one of table, testing"),
        ("nodes 0 cpt table", [0.3, 0.8], "nodes[0]: table: sums to 1.1, expected 1"),
        ("nodes 0 cpt table", 0.5, "nodes[0].cpt.table is a number, expected a list"),
        ("nodes 0 cpt table", ["0.5", 0.5], "nodes[0].cpt.table is not a regular array: expected numbers (or null)"),
        ("nodes 0 cpt table", [[1], [0, 1]], "nodes[0].cpt.table is not a regular array: expected numbers (or null)"),
        ("nodes 0 cpt table", [nan, 0.5], "nodes[0].cpt.table is not a regular array: nan is not a number of the"),
        ("nodes 0 cpt table", [10**400, 0.5], "nodes[0].cpt.table is not a regular array: int too large"),
        ("nodes 0 cpt learn", 1, "nodes[0].cpt.learn is an integer, expected true or false"),
        ("nodes 0 cpt tie", 1, "nodes[0].cpt.tie is an integer, expected a string or null"),
        ("nodes 2 cpt tie", "", "nodes[2]: tie is '', expected None or a non-empty string"),
        ("nodes 2 cpt tie", "table", "nodes[2]: nodes 'C' and 'A' are tied ('table') but differ in kind"),
        ("nodes 2 cpt gamma", "16", "nodes[2].cpt.gamma is a string, expected a number or an integer or null"),
        ("nodes 2 cpt gamma", -1, "nodes[2]: gamma is -1, expected None"),
        ("nodes 2 cpt gamma", 10**400, "expected None (hard tests) or a finite slope >= 0"),
        ("nodes 2 cpt test", ["=", ">"], "nodes[2]: unknown test '='"),
        ("nodes 2 cpt thresholds", [0.5, 2], "nodes[2]: thresholds, parent state (1,): 2 is not a threshold"),
        ("nodes 3 cpt codes", [[0, 1], [1, 9]], "nodes[3]: codes must lie in 0..1, the rows given"),
        ("nodes 3 cpt codes", [[0, 1.5], [1, 0]], "nodes[3].cpt.codes is not a regular array: expected integers"),
        ("nodes 3 cpt rows", [[1, None], [0, 1]], "nodes[3]: a rule cannot hold NaN"),
        ("nodes 4 cpt causes", [["x"], [0.1]], "nodes[4].cpt.causes is not a regular array"),
        ("nodes 4 cpt leak", "x", "nodes[4].cpt.leak is a string, expected a number or an integer"),
        ("nodes 5 cpt inputs", [1, 2], "nodes[5]: Mux: 1 is not the name of a variable"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(place, value, message):
    data = every_kind().to_dict()
    _replace(data, [int(key) if key.isdigit() else key for key in place.split()], value)
    with pytest.raises(FormatError) as error:
        Network.from_dict(data)
    assert message in str(error.value)


def test_unknown_keys_are_ignored_and_optional_ones_may_be_left_out():
    data = every_kind().with_gamma(None).to_dict() | {"comment": "hello"}
    del data["name"], data["nodes"][2]["cpt"]["gamma"], data["nodes"][4]["cpt"]["leak"]
    del data["nodes"][0]["cpt"]["tie"], data["nodes"][2]["cpt"]["tie"]
    net = Network.from_dict(data)
    assert (net.name, net.cpt("C").gamma, net.cpt("E").leak) == (None, None, 0.0)
    assert net.ties == {}


def test_a_cpt_without_a_tie_has_no_key_for_it():
    cpts = [node["cpt"] for node in every_kind().to_dict()["nodes"]]
    assert [cpt.get("tie") for cpt in cpts] == ["table", None, "testing", None, None, None]
    assert sum("tie" in cpt for cpt in cpts) == 2


@tries(300)
@given(st.data())
def test_a_file_with_any_spoilt_characters_is_refused_or_a_network(scratch, data):
    text = json.dumps(every_kind().to_dict())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 5))
        text = text[:start] + data.draw(st.text(alphabet='0159.-eE[]{}",:nulltrfasNI \\\x00é', max_size=4)) + text[end:]
    scratch.write_text(text, encoding="utf-8")
    _refused_or_a_network(load, scratch)


JUNK = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2,
        0.5,
        nan,
        np.inf,
        10**400,
        "",
        "A",
        "B",
        ">=",
        [],
        [[]],
        [None],
        [0.5, 0.5],
        [[1, 0], [1]],
        {},
    ]
) | st.recursive(st.none() | st.floats() | st.text(max_size=2), lambda s: st.lists(s, max_size=3), max_leaves=6)


@tries(300)
@given(st.data())
def test_a_document_with_any_spoilt_value_is_refused_or_a_network(data):
    document = every_kind().to_dict()
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(_places(document))))
        _replace(document, place, copy.deepcopy(data.draw(JUNK)))
    _refused_or_a_network(Network.from_dict, document)


def _refused_or_a_network(read, source):
    try:
        net = read(source)
    except FormatError:
        return
    assert Network.from_dict(net.to_dict()) == net


def _places(value, here=()):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*here, key)
        yield from _places(inner, (*here, key))


def _replace(data, place, value):
    for key in place[:-1]:
        data = data[key]
    data[place[-1]] = value
