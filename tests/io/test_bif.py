"""The BIF reader: both layouts of a table, and every refusal names the file's line and the node."""

import gzip

import numpy as np
import pytest

from tacit import FormatError
from tacit.io.bif import read_bif
from tests.helpers import close

HEAD = """network test { property "by hand"; }
variable a { type discrete [ 2 ] { yes, no }; }  // line 2
variable b { type discrete [2] { "lo" "hi" }; property "x = 1"; }
variable c { type discrete [ 3 ] { u, v, w }; }
"""
A = "probability ( a ) { table 0.2, 0.8; }\n"
B = "probability ( b | a ) { (yes) 0.6, 0.4; (no) 0.05, 0.95; }\n"
C = "probability ( c | a, b ) { table 1 .2 .3 .4  0 .3 .3 .6  0 .5 .4 0; }\n"


@pytest.fixture
def read(tmp_path):
    def from_text(text):
        path = tmp_path / "net.bif"
        path.write_text(text)
        return read_bif(path)

    return from_text


def test_rows_and_tables_are_read_parents_first(read):
    net = read(HEAD + C + B + A)
    assert net.name == "net"
    assert net.variables == ("a", "b", "c")
    assert (net.parents("c"), net.states("b")) == (("a", "b"), ("lo", "hi"))
    close(net.cpt("a").table, [0.2, 0.8])
    close(net.cpt("b").table, [[0.6, 0.4], [0.05, 0.95]])


def test_in_a_table_the_nodes_own_states_vary_slowest(read):
    """As in the dog problem of JavaBayes, the format's first program: light-on given family-out."""
    table = "probability (b|a) { table 0.6 0.05 0.4 0.95; }\n"
    close(read(HEAD + A + table + C).cpt("b").table, [[0.6, 0.4], [0.05, 0.95]])
    close(
        read(HEAD + A + table + C).cpt("c").table,
        [[[1, 0, 0], [0.2, 0.3, 0.5]], [[0.3, 0.3, 0.4], [0.4, 0.6, 0]]],
    )


def test_rows_that_miss_1_by_rounding_are_scaled(read):
    net = read(HEAD + A + B + "probability (c) { table 0.3333 0.3333 0.3333; }")
    close(net.cpt("c").table, np.full(3, 1 / 3))


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "small.bif.gz"
    path.write_bytes(gzip.compress((HEAD + A + B + C).encode()))
    assert read_bif(path).variables == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (A + C + "probability (b|a) { (yes) .6 .4;\n (no) .5 .4; }", "line 8: node 'b': row (no) sums to 0.9"),
        (A + C + "probability (b|a) { (yes) 0 0; (no) 0 1; }", "line 7: node 'b': row (yes) sums to 0, expected 1"),
        (A + C + "probability (b|a) { table .6 .4 .05 .95; }", "line 7: node 'b': row (yes) sums to 0.65, expected 1"),
        (A + C + "probability (b|a) { (yes) .6 x; (no) 0 1; }", "line 7: node 'b': 'x' is not a probability"),
        (A + C + "probability (b|a) { (yes) nan 1; (no) 0 1; }", "node 'b': 'nan' is not a probability"),
        (A + C + "probability (b|a) { (yes) 1.5 -.5; (no) 0 1; }", "node 'b': '-.5' is not a probability"),
        (A + C + "probability (b|a) { (yes) 1; (no) 0 1; }", "node 'b': row (yes) has 1 number, expected 2"),
        (A + C + "probability (b|a) { table 1 0; }", "node 'b': the table has 2 numbers, expected 4"),
        (A + C + "probability (b|a) { (yes) 0 1; }", "line 7: node 'b': row (no) is missing"),
        (A + C + "probability (b|a) { (yes) 0 1; (yes) 0 1; }", "node 'b': row (yes) is given twice"),
        (A + C + "probability (b|a) { table 1 1 0 0; (yes) 0 1; }", "node 'b' has both a table and rows"),
        (A + C + "probability (b|a) {}", "node 'b': row (yes) is missing"),
        (A + C + "probability (b|a) { (maybe) 0 1; }", "node 'b': row (maybe) is not a state of the parents ['a']"),
        (A + C + "probability (b|a) { default 0 1; }", "node 'b': unexpected 'default', expected 'table' or a row"),
        (A + C + "probability (b|z) { table 1 0; }", "line 7: node 'b': there is no variable 'z'"),
        (A + C + "probability (b|a, a) { table 1 1 1 1 0 0 0 0; }", "line 7: node 'b'"),
        (A + B + C + "probability (z) { table 1 0; }", "line 8: node 'z': there is no variable 'z'"),
        (A + B + C + A, "line 8: node 'a' has two probability blocks"),
        (A + B, "node 'c' has no probability block"),
        (B + C + "probability (a|c) { table 1 1 1 0 0 0; }", "the parents form a cycle: "),
        (A + C + "probability (b|b) { table 1 1 0 0; }", "the parents form a cycle: b -> b"),
        (A + B + C + "variable a { type discrete [1] { x }; }", "line 8: variable 'a' is declared twice"),
        (A + B + C + "variable d { type continuous { x }; }", "line 8: variable 'd' is not discrete"),
        (A + B + C + "variable d { }", "line 8: unexpected '}', expected '{'"),
        (A + B + C + "utility (d) {}", "line 8: unexpected 'utility', expected 'variable' or 'probability'"),
        (A + B + C + "probability () {}", "line 8: a probability block names no variable"),
        (A + B + "probability (c) { table 1 0 0", "the file ends too early"),
    ],
)
def test_what_is_wrong_is_refused_with_line_and_node(read, text, message):
    with pytest.raises(FormatError) as error:
        read(HEAD + text)
    assert message in str(error.value)
