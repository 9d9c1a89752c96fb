"""BIF: both layouts of a table, odd but legal files, and refusals that name line, column and node."""

import numpy as np
import pytest

from tacit import CPT, FormatError, Network, NoisyOr
from tacit.io import RoundingWarning, read, write
from tacit.io.formats import bif
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
def read_bif(read_as):
    return lambda text: read_as("net.bif", text)


def test_rows_and_tables_are_read_parents_first(read_bif):
    net = read_bif(HEAD + C + B + A)
    assert net.name == "test"
    assert net.variables == ("a", "b", "c")
    assert (net.parents("c"), net.states("b")) == (("a", "b"), ("lo", "hi"))
    close(net.table("a"), [0.2, 0.8])
    close(net.table("b"), [[0.6, 0.4], [0.05, 0.95]])


def test_in_a_table_the_nodes_own_states_vary_slowest(read_bif):
    """As in the dog problem of JavaBayes, the format's first program: light-on given family-out."""
    table = "probability (b|a) { table 0.6 0.05 0.4 0.95; }\n"
    net = read_bif(HEAD + A + table + C)
    close(net.table("b"), [[0.6, 0.4], [0.05, 0.95]])
    close(net.table("c"), [[[1, 0, 0], [0.2, 0.3, 0.5]], [[0.3, 0.3, 0.4], [0.4, 0.6, 0]]])


def test_nodes_keep_the_order_of_their_declarations_where_parents_allow_it(read_bif):
    net = read_bif(
        "variable d { type discrete [1] { x }; } variable c { type discrete [1] { x }; }"
        "variable b { type discrete [1] { x }; } variable a { type discrete [1] { x }; }"
        "probability (a) { table 1; } probability (b) { table 1; } probability (c | a) { table 1; }"
        "probability (d) { table 1; }"
    )
    assert net.variables == ("d", "a", "c", "b")


def test_default_stands_for_the_rows_not_given_wherever_it_is(read_bif):
    rows = "(no, lo) 1 0 0; default .2 .3 .5; (yes, hi) 0 1 0;"
    net = read_bif(HEAD + A + B + f"probability (c | a, b) {{ {rows} }}")
    close(net.table("c"), [[[0.2, 0.3, 0.5], [0, 1, 0]], [[1, 0, 0], [0.2, 0.3, 0.5]]])
    close(read_bif(HEAD + A + B + "probability (c) { default 1 0 0; }").table("c"), [1, 0, 0])


def test_comments_properties_and_white_space_may_be_anywhere(read_bif):
    text = """
    /* a network { in a comment } */ network "my // net" // {
    { property author = someone { with } odd , signs ; property "quoted" ; }
    variable/* a */"a b"{type/**/discrete[02]{ //one
      "x;y", "//z" }; property position = (1, 2); }
    variable <c>{ property p; type discrete [ 3 ] { 10%, >=7.5 Asy/Patch } ; }
    probability(<c>|"a b"){property x;
      // (x) 1;
      ("x;y")1E0/* one */0,+.0e-3;("//z"),.25
      2.5e-1/*;*/5e-1;property y;}probability("a b"){table .5.
    """.replace(".5.", ".5 .5;}")
    net = read_bif(text)
    assert (net.name, net.variables) == ("my // net", ("a b", "<c>"))
    assert net.states("a b") == ("x;y", "//z")
    assert net.states("<c>") == ("10%", ">=7.5", "Asy/Patch")
    close(net.table("<c>"), [[1, 0, 0], [0.25, 0.25, 0.5]])


def test_a_network_without_a_name_has_the_files(read_as):
    text = "variable a { type discrete [1] { x }; } probability (a) { table 1; }"
    assert read_as("my.alarm.bif", text).name == "my.alarm"
    assert read_as("alarm.bif", "network unknown {}" + text).name == "alarm"


def test_latin_1_and_a_byte_order_mark_are_understood(read_bif):
    text = "variable é { type discrete [1] { ü }; } probability (é) { table 1; }"
    for content in (text.encode("latin-1"), text.encode("utf-8"), text.encode("utf-8-sig")):
        assert read_bif(content).states("é") == ("ü",)


# sums ------------------------------------------------------------------------------------------------------


def test_rows_that_miss_1_by_rounding_are_scaled_with_one_warning(read_bif):
    text = HEAD + A + "probability (c) { table 0.3333 0.3333 0.3333; }\n"
    text += "probability (b | a) { (yes) .1 .9;\n (no) .33335 .66666; }"
    with pytest.warns(RoundingWarning) as caught:
        net = read_bif(text)
    close(net.table("c"), np.full(3, 1 / 3))
    close(net.table("b"), [[0.1, 0.9], [0.33335 / 1.00001, 0.66666 / 1.00001]])
    message = str(caught[0].message)
    assert len(caught) == 1
    assert "net.bif: line 8, column 2: node 'b': row a='no' sums to 1.00001; scaled to sum to 1 (and 1 other" in message
    assert caught[0].filename == __file__.replace("test_bif", "conftest")  # the caller of `read`


def test_a_number_just_above_1_is_rounding_too(read_bif):
    with pytest.warns(RoundingWarning, match="node 'a': the table sums to 1.00005; scaled to sum to 1$"):
        close(read_bif(HEAD + B + C + "probability (a) { table 1.00005 0; }").table("a"), [1, 0])


def test_rows_within_the_tolerance_of_tables_are_scaled_without_a_warning(read_bif):
    close(read_bif(HEAD + B + C + "probability (a) { table 0.333333 0.666666; }").table("a"), [1 / 3, 2 / 3])


# refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            A + C + "probability (b|a) { (yes) .6 .4;\n (no) .5 .4; }",
            "line 8, column 2: node 'b': row a='no' sums to 0.9",
        ),
        (A + C + "probability (b|a) { (yes) 0 0; (no) 0 1; }", "node 'b': row a='yes' sums to 0, expected 1"),
        (A + C + "probability (b|a) { table .6 .4 .05 .95; }", "line 7, column 21: node 'b': row a='yes' sums to 0.65"),
        (A + C + "probability (b|a) { (yes) .6 x; (no) 0 1; }", "column 30: unexpected 'x', expected a number or ';'"),
        (A + C + "probability (b|a) { (yes) .6 .4.1; (no) 0 1; }", "line 7, column 30: '.4.1' is not a number"),
        (A + C + "probability (b|a) { (yes) 1e-5 - 1; }", "line 7, column 32: '-' is not a number"),
        (A + C + "probability (b|a) { (yes) nan 1; (no) 0 1; }", "unexpected 'nan', expected a number or ';'"),
        (A + C + "probability (b|a) { (yes) 1_0 1; }", "unexpected '_0', expected a number or ';'"),
        (A + C + "probability (b|a) { (yes) 1.5 -.5; (no) 0 1; }", "row a='yes' holds 1.5, which is not a probability"),
        (A + C + "probability (b|a) { (yes) 1 -.5; (no) 0 1; }", "row a='yes' holds -0.5, which is not a probability"),
        (A + C + "probability (b|a) { (yes) 0 1; (no) 1e999 0; }", "row a='no' holds inf, which is not a probability"),
        (A + C + "probability (b|a) { (yes) 1; (no) 0 1; }", "node 'b': row (yes) has 1 number, expected 2"),
        (A + C + "probability (b|a) { default 1; }", "node 'b': default has 1 number, expected 2"),
        (A + C + "probability (b|a) { table 1 0; }", "node 'b': the table has 2 numbers, expected 4"),
        (A + C + "probability (b|a) { (yes) 0 1; }", "line 7, column 14: node 'b': row (no) is missing"),
        (A + C + "probability (b|a) { (yes) 0 1; (yes) 0 1; }", "column 32: node 'b': row (yes) is given twice"),
        (A + C + "probability (b|a) { table 1 1 0 0; (yes) 0 1; }", "node 'b' has both a table and rows"),
        (A + C + "probability (b|a) { table 1 1 0 0; default 0 1; }", "node 'b' has both a table and rows"),
        (A + C + "probability (b|a) {}", "node 'b': row (yes) is missing"),
        (A + C + "probability (b|a) { (maybe) 0 1; }", "node 'b': row (maybe) is not a state of the parents ['a']"),
        (A + C + "probability (b|a) { (yes, lo) 0 1; }", "row (yes, lo) is not a state of the parents ['a']"),
        (A + C + "probability (b|a) { rows 0 1; }", "unexpected 'rows', expected '(' or 'table' or 'default'"),
        (A + C + "probability (b|z) { table 1 0; }", "line 7, column 14: node 'b': there is no variable 'z'"),
        (A + C + "probability (b|a, a) { table 1 1 1 1 0 0 0 0; }", "parent 'a' is listed twice"),
        (A + B + C + "probability (z) { table 1 0; }", "line 8, column 14: node 'z': there is no variable 'z'"),
        (A + B + C + A, "line 8, column 15: node 'a' has two probability blocks"),
        (A + B, "line 4, column 10: node 'c' has no CPT"),
        (B + C + "probability (a|c) { table 1 1 1 0 0 0; }", "the parents form a cycle: "),
        (A + C + "probability (b|b) { table 1 1 0 0; }", "the parents form a cycle: 'b' -> 'b'"),
        (A + B + C + "variable a { type discrete [1] { x }; }", "line 8, column 10: variable 'a' is declared twice"),
        (A + B + C + "variable d { type discrete [2] { x x }; }", "variable 'd' has a state twice"),
        (A + B + C + "variable d { type discrete [0] { }; }", "line 8, column 10: variable 'd' has no states"),
        (
            A + B + C + "variable d { type discrete [2] { a b, c }; }",
            "line 8, column 32: 3 states, but '2' are declared",
        ),
        (A + B + C + "variable d { type continuous { x }; }", "unexpected 'continuous', expected 'discrete'"),
        (A + B + C + "variable d { }", "line 8, column 10: variable 'd' has no states"),
        (A + B + C + "variable my name { }", "line 8, column 13: unexpected 'name', expected '{'"),
        (A + B + C + "utility (d) {}", "line 8, column 1: unexpected 'utility', expected 'network' or 'variable'"),
        (A + B + C + "probability () {}", "line 8, column 14: unexpected ')', expected a name"),
        (A + B + "probability (c) { table 1 0 0", "line 7, column 30: the file ends too early"),
        (A + B + "probability (c) { property x", "line 7, column 19: the file ends before a ';'"),
        (A + B + 'probability ("c) { table 1 0 0; }', "line 7, column 14: a quotation mark that does not end"),
        (A + B + "probability (c) /* { table 1 0 0; }", "line 7, column 17: a comment that does not end"),
        (A + B + C + "}", "line 8, column 1: unexpected '}'"),
    ],
)
def test_what_is_wrong_is_refused_with_line_column_and_node(refuses, text, message):
    refuses("net.bif", HEAD + text, message)


def test_defaults_cannot_fill_the_memory(read_bif, monkeypatch):
    monkeypatch.setattr(bif, "MAX_BY_DEFAULT", 10)
    text = HEAD + A + "probability (c | a) { default 1 0 0; }\n"
    assert read_bif(text + "probability (b | a) { default 1 0; }").table("b").tolist() == [[1, 0], [1, 0]]
    with pytest.raises(FormatError, match=r"line 7, column 26: node 'b': default makes 18 entries in all \(limit 10\)"):
        read_bif(text + "probability (b | a, c) { default 1 0; }")


# writing ---------------------------------------------------------------------------------------------------


def test_the_file_is_what_other_programs_expect(tmp_path):
    net = Network()
    net.add("smoke", states=["yes", "no"], cpt=[0.5, 0.5])
    net.add("lung cancer", ["smoke"], 2, [[0.1, 0.9], [1e-5, 1 - 1e-5]])
    write(net, tmp_path / "net.bif")
    assert (tmp_path / "net.bif").read_text() == (
        "network unknown {\n"
        "  property tacit_name = null;\n"
        "}\n"
        "variable smoke {\n"
        "  type discrete [ 2 ] { yes, no };\n"
        "}\n"
        "variable lung_cancer {\n"
        "  type discrete [ 2 ] { 0, 1 };\n"
        "  property tacit_name = %22lung cancer%22;\n"
        "  property tacit_states = [0, 1];\n"
        "}\n"
        "probability ( smoke ) {\n"
        "  table 0.5, 0.5;\n"
        "}\n"
        "probability ( lung_cancer | smoke ) {\n"
        "  (yes) 0.1, 0.9;\n"
        "  (no) 1e-05, 0.99999;\n"
        "}\n"
    )
    assert read(tmp_path / "net.bif") == net


def test_names_that_become_alike_are_kept_apart(tmp_path):
    net = Network("unknown")
    for name in ("a b", "a_b", "a-b", "a;b", "é", "è", "table", "1", "1e5", "_", " ", "a_b_3"):
        net.add(name, states=["0", 0.5, "0.5", True, "x y", "x_y", ""], cpt=np.full(7, 1 / 7))
    write(net, tmp_path / "net.bif")
    assert read(tmp_path / "net.bif") == net


def test_factored_cpts_are_written_out_and_settings_are_dropped(tmp_path):
    net = Network("settings")
    net.add("A", cpt=CPT([0.2, 0.8], learn=True, tie="t"))
    net.add("B", cpt=CPT([0.2, 0.8], learn=True, tie="t"))
    net.add("C", cpt=NoisyOr({"A": 0.5, "B": 0.25}, leak=0.125))
    write(net, tmp_path / "net.bif")
    assert read(tmp_path / "net.bif") == net.with_cpts({name: CPT(net.table(name)) for name in net})
