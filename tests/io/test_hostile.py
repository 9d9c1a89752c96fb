"""Files made to exhaust us: each is refused, or a network, with little time and memory. See `tests/hostile.py`."""

import gzip
import json
import os
import re

import numpy as np
import pytest

import tacit
from tacit import FormatError, Network
from tacit.io import read, write
from tacit.io.parsing import content
from tests.hostile import MEMORY, SECONDS, outcomes

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits of Linux")

ROOT = {"kind": "table", "table": [1], "learn": False}


def document(*nodes):
    return json.dumps({"format": "tacit-network", "version": 1, "nodes": nodes})


def node(name="A", states=("x",), parents=(), cpt=ROOT):
    return {"name": name, "states": states, "parents": parents, "cpt": cpt}


def noisy_or(parents):
    names = [f"P{i}" for i in range(parents)]
    return document(*map(node, names), node("A", [0, 1], names, {"kind": "noisy-or", "causes": [0.5] * parents}))


def long_word():
    """Fixed-width strings would take 15 GiB."""
    parts = {"plus": [[1]], "minus": [[1]], "thresholds": [1], "test": [">="] * 20_000 + ["x" * 200_000]}
    return document(node(cpt={"kind": "testing", "learn": False} | parts))


BIF = "variable a { type discrete [1] { x }; } probability (a) { table "
NET = "node a { states = (x); } potential (a) { data = "
DNE = "bnet b { node a { states = (x); parents = (); probs = "
DEFINITION = "<DEFINITION><FOR>a</FOR><TABLE>1</TABLE></DEFINITION>"
XML = "<VARIABLE><NAME>a</NAME><VALUE>x</VALUE></VARIABLE>" + DEFINITION
UAI = (
    'BAYES 1 2 1 1 0 2 0.5 0.5\n# tacit {"name": null, "variables": [{"number": %s, "name": "a", "states": [%s, 1]}]}\n'
)


def many(block):
    """5,000 nodes like a node "a"."""
    return "".join(re.sub(r"\ba\b", f"n{i}", block) for i in range(5_000))


def lines(count):
    """A UAI file of one line per table, whose rows sum to 1 only roughly."""
    tables = "2 .33333 .66666\n" * count
    return f"BAYES {count}\n" + "2 " * count + f"\n{count}\n" + "".join(f"1 {i}\n" for i in range(count)) + tables


PLAIN = {  # name: content, and what is said of it
    "twice.json": (document(node(states=[*map(str, range(100_000)), "99999"])), "state '99999' is listed twice"),
    "hashes.json": (document(node(states=[i * (2**61 - 1) for i in range(30_000)])), "integers beyond 2^61"),
    "word.json": (long_word(), "unknown test 'xxxxx"),
    "causes.json": (
        document(node(cpt={"kind": "noisy-or", "causes": [0] * 500_000})),
        "has 500,000 entries, expected 0",
    ),
    "parents.json": (noisy_or(15_000), "Network(15,001 nodes"),
    "brackets.net": (NET + "(" * 500_000 + "1" + ")" * 500_000 + ";}", "Network('brackets': 1 node"),
    "open.net": (NET + "(" * 1_000_000, "ends too early"),
    "blanks.bif": (BIF + "1 " * 1_000_000 + ";}", "the table has 1,000,000 numbers, expected 1"),
    "infinity.uai": (UAI % (0, "-Infinity"), "-inf is not a label"),
    "number.uai": (UAI % (10**30, 0), "is not the number of a variable"),
    "parents.uai": ("BAYES 200\n" + "1 " * 200 + "200\n" + ("200 " + "0 " * 200) * 200, "199 parents; at most 63"),
    "lines.uai": (lines(20_000), "Network('lines': 20,000 nodes"),
    "nodes.uai": ("BAYES 1000000 " + "1 " * 1_000_001, "at least 1,000,000 nodes (limit 100,000)"),
    "factors.uai": ("MARKOV 1 1 50000\n" + "1 0 " * 50_000 + "1 1 " * 50_000, "Graph('factors': 1 variable, 50,000 f"),
    "many.uai": ("MARKOV 1 1 1000000 " + "0 " * 1_000_001, "at least 1,000,000 nodes (limit 100,000)"),
    "scope.uai": ("MARKOV 200\n" + "1 " * 200 + "9\n" + "200 " * 1999, "a factor with 200 variables; at most 63"),
    "states.uai": ("MARKOV 40\n" + "30 " * 40 + "1\n40 " + " ".join(map(str, range(40))) + " 9", "about 10^59"),
    "comments.erg": ("1 2 0 2 .5 .5 " + "/* " * 1_000_000, "a comment that does not end"),
    "sections.erg": ("1 2 0 2 .5 .5 " + "/* x */ " * 200_000, "Network('sections': 1 node"),
    "cards.erg": (
        "1000 " + "9000 " * 1000 + "0 " * 1000 + "9 9 9 9 9 " * 2000,
        "a table of 9 numbers for a node with 9,0",
    ),
    "parents.erg": ("200 " + "1 " * 200 + ("199 " + "0 " * 199) * 200, "a node with 199 parents; at most 63"),
    "nodes.bif": (many(BIF + "1; }\n"), "Network('nodes': 5,000 nodes"),
    "nodes.net": (many(NET + "(1); }\n"), "Network('nodes': 5,000 nodes"),
    "brackets.dne": (DNE + "(" * 500_000 + "1" + ")" * 500_000 + ";};};", "Network('b': 1 node"),
    "blocks.dne": ("bnet b { visual V1 " + "{" * 500_000 + "}" * 500_000, "ends too early"),
    "blanks.dne": (DNE + "1 " * 1_000_000 + ";}", "unexpected '1'"),
    "counts.dne": (
        "bnet b {" + many("node a { numstates = 65536; functable = (#0); };") + "};",
        "functables would have",
    ),
    "counts2.dne": ("bnet b {" + many("node a { numstates = 65536; probs = (1); };") + "};", "but probs of 1 number"),
    "states.dne": (f"bnet b {{ node a {{ states = ({'x, ' * 500_000}); }};}};", "variable 'a' has a state twice"),
    "escapes.dne": ('bnet b { title = "' + "\\" * 1_000_001, "a quotation mark that does not end"),
    "nodes.dne": ("bnet nodes {" + many(DNE.partition("{")[2] + "(1);};\n") + "};", "Network('nodes': 5,000 nodes"),
    "nodes.xml": (f"<NETWORK>{many(XML)}</NETWORK>", "Network('nodes': 5,000 nodes"),
    "cells.evid": ("50000\n" + "".join(f"1 {i} 0\n" for i in range(50_000)), "make 2,500,000,000 cells"),
    "deep.inst": ("<instantiation>" + "<inst id='A' value='true'>" * 200_000, "unexpected element 'inst'"),
    "names.inst": (f"<instantiation><inst id='{'x' * 5_000_000}' value='y'/>", "no variable 'xxxxx"),
    "twice.inst": ("<instantiation>" + "<inst id='A' value='true'/>" * 200_000, "'A' is observed twice"),
    "huge.circuit": (f'n0 = parameter "a" "table" {10**30} 1\noutputs n0', "is too large"),
}
PACKED = {
    "brackets.json": ("[", "[],", "0]"),
    "numbers.json": ("[", "1,", "0]"),
    "signs.bif": ("variable a {", "property;", "}"),
    "numbers.bif": (BIF, "1 ", ";}"),
    "comments.bif": (BIF, "1/**/", ";}"),
    "brackets.net": (NET, "(1)", ";}"),
    "brackets.dne": (DNE, "(1)", ";};};"),
    "elements.xml": ("<BIF><NETWORK>", "<a/>", "</NETWORK></BIF>"),
    "attributes.xml": ("<BIF><NETWORK", " a=''", "/></BIF>"),
    "numbers.uai": ("BAYES ", "1 ", ""),
    "nodes.uai": ("BAYES 1000000 ", "1 ", ""),
}


def check(outcome, result, message=""):
    assert (outcome.result, message in outcome.message) == (result, True), outcome
    assert outcome.megabytes < MEMORY / 1e6, outcome
    assert outcome.seconds < SECONDS, outcome


@pytest.mark.slow
def test_hostile_files_cost_little(tmp_path):
    for name, (text, _) in PLAIN.items():
        (tmp_path / name).write_text(text)
    found = dict(zip(PLAIN, outcomes([tmp_path / name for name in PLAIN]), strict=True))
    for name, (_, message) in PLAIN.items():
        check(found[name], "network" if message.startswith(("Network(", "Graph(")) else "refused", message)


def test_small_files_that_unpack_to_much_cost_little(tmp_path):
    for name, (head, unit, tail) in PACKED.items():
        data = (head + unit * (10_000_000 // len(unit)) + tail).encode()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data, 1))
    for outcome in outcomes([tmp_path / f"{name}.gz" for name in PACKED]):
        check(outcome, "refused", "unpack it first if that is meant")
        assert outcome.megabytes < 400, outcome


# limits of packed files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"a", 0), (b"a b c d e f g h", 1), (b"1,2,3,4, 5,6,7,8", 1), (b"[[(;|", 5), (b'"a" "b"', 2),
     (b"<a/>", 1), (b"<a></a>", 2), (b"x=1", 1), (b"/a", 1), (b" " * 100, 0)],
)  # fmt: skip
def test_pieces_are_counted(data, expected):
    assert content.pieces(data) == expected


def test_pieces_are_counted_part_by_part(monkeypatch):
    data = b"0.25, 0.75; " * 1000
    whole = content.pieces(data)
    monkeypatch.setattr(content, "STEP_BYTES", 1024)
    assert whole <= content.pieces(data) <= whole + 2  # a word at the border may count twice


def write_and_unpack(net, folder):
    write(net, folder / "net.json.gz")
    return gzip.decompress((folder / "net.json.gz").read_bytes())


def test_what_is_stored_may_be_read(tmp_path, monkeypatch):
    """A piece per byte of the packed file: what does not pack well is no bomb."""
    monkeypatch.setattr(content, "MAX_PIECES", 100)
    net = Network()
    net.add("A", states=2_000, cpt=np.random.default_rng(0).dirichlet(np.ones(2_000)))
    assert content.pieces(write_and_unpack(net, tmp_path)) > 300
    assert read(tmp_path / "net.json.gz") == net
    net = Network()
    for i in range(14):
        net.add(f"P{i}", cpt=[0.5, 0.5])
    net.add("B", list(net), cpt=np.full((2,) * 15, 0.5))
    write(net, tmp_path / "net.json.gz")
    with pytest.raises(FormatError, match=r"net\.json\.gz: unpacks to [\d,]+ pieces \(limit [\d,]+\); unpack it first"):
        read(tmp_path / "net.json.gz")
    write(net, tmp_path / "net.json")
    assert read(tmp_path / "net.json") == net


@pytest.mark.parametrize("suffix", ["bif", "net", "xmlbif", "uai", "json.gz", "bif.gz"])
def test_a_file_of_too_many_nodes_is_refused(tmp_path, monkeypatch, suffix):
    net = Network("four")
    for name in "ABCD":
        net.add(name, cpt=[0.5, 0.5])
    write(net, tmp_path / f"net.{suffix}")
    monkeypatch.setattr(content, "MAX_NODES", 4)
    assert read(tmp_path / f"net.{suffix}") == net
    monkeypatch.setattr(content, "MAX_NODES", 3)
    with pytest.raises(FormatError, match=rf"net\.{suffix}: .*at least 4 nodes \(limit 3\); a larger"):
        read(tmp_path / f"net.{suffix}")
    write(net, tmp_path / "net.json")
    assert read(tmp_path / "net.json") == net  # what is saved can be loaded


@pytest.mark.parametrize(
    ("suffix", "text", "place"),
    [
        ("bif", "probability(a){}probability(b){}probability(c){", "line 1, column 45"),
        ("net", "".join(f"potential({name}){{data=(1);}}" for name in "abc"), "line 1, column 56"),
        ("dne", "bnet b {" + "".join(f"node {n} {{states=(x);probs=(1);}}" for n in "abc"), "line 1, column 74"),
        ("xml", "<NETWORK>\n" + "".join(DEFINITION.replace("a<", f"{n}<") + "\n" for n in "abc"), "line 4, column 25"),
        ("erg", "3 /* of which nothing is read */ " + "1 " * 20, "line 1, column 1"),
        ("uai", "BAYES 3 # of which nothing is read\n" + "1 " * 20, "line 1, column 7"),
    ],
)  # fmt: skip
def test_cpts_are_counted_before_their_nodes_are_looked_for(tmp_path, monkeypatch, suffix, text, place):
    monkeypatch.setattr(content, "MAX_NODES", 2)
    (tmp_path / f"net.{suffix}").write_text(text)
    with pytest.raises(FormatError, match=rf"net\.{suffix}: {place}: at least 3 nodes \(limit 2\)"):
        read(tmp_path / f"net.{suffix}")


def chain(nodes):
    rng = np.random.default_rng(0)
    net = Network("chain")
    net.add("X0", cpt=[0.5, 0.5])
    for i in range(1, nodes):
        net.add(f"X{i}", [f"X{i - 1}"], cpt=rng.dirichlet([1, 1], 2))
    return net


def test_limits_admit_large_networks():
    """20,000 nodes, by a tenth of them; and four million numbers, though they pack to nothing."""
    for format in (
        tacit.io.formats.bif,
        tacit.io.formats.hugin,
        tacit.io.formats.json,
        tacit.io.formats.xmlbif,
        tacit.io.formats.uai,
    ):
        text = format.compose(chain(2_000)).encode()
        assert 10 * content.pieces(text) < content.MAX_PIECES
    assert content.pieces(b"0.0 1.0 " * 2_000_000) < content.MAX_PIECES
