"""Netica DNE: what its files may hold, and refusals that name line, column and node."""

import numpy as np
import pytest

from tacit import FormatError, Network, semantics
from tests.helpers import close

HEAD = """// ~->[DNET-1]->~
// File created by a program

bnet wet_grass {
autoupdate = TRUE;
comment = "with \\"bnet { and ;\\" and // in it\\
    on two lines";
visual V1 {
    nodefont = font {shape= "Arial"; size= 10;};
    NodeSet Nature {BuiltIn = 1; Color = 0x00F8EED2;};
    PrinterSetting A { margins = (1270, 1270, 1270, 1270); };
};
node rain {
    kind = NATURE;
    discrete = TRUE;
    chance = CHANCE;
    states = (yes, no);
    parents = ();
    probs =
        // yes          no
          (0.25,        7.5e-1);
    numcases = 1;
    title = "It (really) rains; or {not";
    whenchanged = 0;
    visual V1 { center = (174, 72); height = 17; };
    };
"""
SPRINKLER = """node sprinkler {
    kind = NATURE;
    discrete = TRUE;
    states = (off, low, high);
    inputs = (, rain);
    parents = (rain);
    probs = ((.5, .25, .25),   // yes
             (1, 0, 0));       // no ;
    };
"""
WET = """node wet {
    kind = NATURE;
    discrete = TRUE;
    chance = DETERMIN;
    states = (dry, damp, wet);
    parents = (rain, sprinkler);
    functable = ((damp, wet, wet), (#0, damp, "wet"));
    equation = "wet (rain, sprinkler) = 1";
    evidence = wet;
    };
"""


@pytest.fixture
def read_dne(read_as):
    return lambda text, name="grass.dne": read_as(name, text)


def test_the_last_parents_states_vary_faster_and_the_nodes_own_fastest(read_dne):
    net = read_dne(HEAD + WET + SPRINKLER + "};")
    assert (net.name, net.variables) == ("wet_grass", ("rain", "sprinkler", "wet"))
    assert (net.states("sprinkler"), net.parents("wet")) == (("off", "low", "high"), ("rain", "sprinkler"))
    close(net.table("rain"), [0.25, 0.75])
    close(net.table("sprinkler"), [[0.5, 0.25, 0.25], [1, 0, 0]])
    close(net.table("wet"), np.eye(3)[[[1, 2, 2], [0, 1, 2]]])


def test_tables_may_be_flat_and_blocks_need_no_semicolon(read_dne):
    flat = SPRINKLER.replace("((.5", "(.5").replace("25),", "25,").replace("(1, 0, 0))", "1, 0, 0)").replace("};", "}")
    net = read_dne(HEAD + flat + WET.replace("((", "(").replace("))", ")").replace("), (", ", ") + "}", "grass.dnet")
    assert net == read_dne(HEAD + SPRINKLER + WET + "};")


def test_states_may_be_counted(read_dne):
    counted = SPRINKLER.replace("states = (off, low, high)", "numstates = 3")
    net = read_dne(HEAD + counted + WET.replace("states = (dry, damp, wet)", "numstates = 3").replace("damp", "#1")
                   .replace('"wet"', "#2").replace("wet, wet", "#2, #2") + "};")  # fmt: skip
    assert net.states("sprinkler") == net.states("wet") == (0, 1, 2)
    close(net.table("wet"), np.eye(3)[[[1, 2, 2], [0, 1, 2]]])


def test_levels_are_intervals_or_values(read_dne):
    dose = "node dose { discrete = %s; levels = (0, 1.5, INFINITY); parents = (); probs = (%s); };};"
    net = read_dne(HEAD + dose % ("FALSE", ".5, .5"))
    assert net.states("dose") == ("[0, 1.5)", "[1.5, inf)")
    assert net.bins("dose") == (0, 1.5, float("inf"))
    assert net.posterior("dose", {"dose": 1.5}).tolist() == [[0, 1]]
    wrong = dose.replace("0, 1.5, INFINITY", "3, 2, 1")
    with pytest.raises(FormatError, match="node 'dose' has levels that are not edges of intervals: edge 1 of bins"):
        read_dne(HEAD + wrong % ("FALSE", ".5, .5"))
    assert read_dne(HEAD + dose % ("TRUE", ".5, .25, .25")).states("dose") == ("0", "1.5", "INFINITY")
    named = (dose % ("FALSE", ".5, .5")).replace("levels", "states = (low, high); levels")
    assert read_dne(HEAD + named).states("dose") == ("low", "high")


def test_constants_label_a_drawing(read_dne):
    label = 'node TITLE1 { kind = CONSTANT; discrete = FALSE; title = "Rain"; parents = (); };'
    assert read_dne(HEAD + label + "};").variables == ("rain",)
    with pytest.raises(FormatError, match=r"line 33, .*node 'sprinkler' has the constant 'TITLE1' as a parent"):
        read_dne(HEAD + label + SPRINKLER.replace("parents = (rain)", "parents = (TITLE1)") + "};")


def test_answers_are_those_of_the_network(read_dne):
    net = read_dne(HEAD + SPRINKLER + WET + "};")
    evidence = {"wet": "wet"}
    close(net.posterior("rain", evidence), semantics.posterior(net, "rain", evidence))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPRINKLER.replace("(1, 0", "(1, 1"), "line 34, column 14: node 'sprinkler': row rain='no' sums to 2, exp"),
        (SPRINKLER.replace("(1, 0", "(1, -1"), "line 34, column 14: node 'sprinkler': row rain='no' holds -1, which"),
        (SPRINKLER.replace("(1, 0", "(1, nan"), "line 34, column 18: unexpected 'nan', expected a number, '(', ')' or"),
        (SPRINKLER.replace("(1, 0", "(1, @imposs"), "line 34, column 18: unexpected '@imposs', expected a number"),
        (SPRINKLER.replace("(1, 0, 0)", "(1, 0)"), "line 33, column 11: node 'sprinkler': the table has 5 numbers"),
        (SPRINKLER.replace("(1, 0, 0))", "(1, 0, 0)"), "line 34, column 23: '(' without its ')'"),
        (SPRINKLER.replace("(1, 0, 0))", "(1, 0, 0)))"), "line 34, column 24: ')' without its '('"),
        (SPRINKLER.replace("(rain);\n    probs", "(snow);\n    probs"), "there is no variable 'snow'"),
        (SPRINKLER.replace("(rain);\n    probs = (", "(sprinkler);\n    probs = ((1, 0, 0), "),
         "the parents form a cycle: 'sprinkler' -> 'sprinkler'"),
        (SPRINKLER * 2, "line 36, column 6: variable 'sprinkler' is declared twice"),
        ("node a { states = (x); };" * 2, "line 27, column 31: variable 'a' is declared twice"),
        ("node a { states = (x, x); probs = (1, 0); };", "line 27, column 6: variable 'a' has a state twice"),
        ("node a { states = (); probs = (1, 0); };", "line 27, column 6: variable 'a' has no states"),
        ("node a { };", "line 27, column 6: variable 'a' has no states"),
        ("node a { states = (x, y); };", "line 27, column 6: node 'a' has no CPT"),
        ("node a { kind = DECISION; };", "line 27, column 6: node 'a' is of kind 'DECISION'; only chance nodes"),
        ("node a { kind = UTILITY; };", "line 27, column 6: node 'a' is of kind 'UTILITY'; only chance nodes"),
        ("node a { discrete = FALSE; };", "line 27, column 6: node 'a' is continuous; only nodes with states"),
        ("node a { numstates = many; probs = (1); };", "node 'a' has 'many' states; a number up to 65,536 is read"),
        ("node a { numstates = 99999; probs = (1); };", "node 'a' has '99999' states; a number up to 65,536 is read"),
        ("node a { numstates = 9999; probs = (1); };", "node 'a' has 9,999 states, but probs of 1 number"),
        ("node a { states (x y); };", "line 27, column 17: unexpected '(', expected '='"),
        ("node a { (x y); };", "line 27, column 10: unexpected '(', expected an attribute or '}'"),
        ("node a { states = (x = y); };", "line 27, column 22: unexpected '=', expected a word, '(', ')' or ';'"),
        ("node a { states = (x, y; };", "line 27, column 24: '(' without its ')'"),
        ("node a { states = x, y); };", "line 27, column 23: ')' without its '('"),
        ("node a { title = };", "line 27, column 18: unexpected '}', expected ';'"),
        ('node a { title = "x; };', "line 27, column 18: a quotation mark that does not end"),
        ('node a { title = "x\\";', "line 27, column 18: a quotation mark that does not end"),
        ("visual V1 { a = 1;", "the file ends too early"),
        ("}; bnet more {", "line 27, column 4: unexpected 'bnet', expected the end of the file"),
        (SPRINKLER + WET.replace("(damp", "(moist"), "line 42, column 15: node 'wet': 'moist' in functable is not a"),
        (SPRINKLER + WET.replace("#0", "#3"), "line 42, column 15: node 'wet': '#3' in functable is not a state of it"),
        (SPRINKLER + WET.replace("#0, ", ""), "line 42, column 15: node 'wet': the table has 15 numbers, expected 18"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_line_column_and_node(refuses, text, message):
    refuses("grass.dne", HEAD + text + "};", message)


def test_another_suffix_is_told(read_dne):
    with pytest.raises(FormatError, match=r"it seems to be a \.dne file: give it a name that ends in \.dne"):
        read_dne(HEAD + "};", "grass.net")
    with pytest.raises(FormatError, match=r"it seems to be a \.net file: give it a name that ends in \.net"):
        read_dne("net { }")


def test_functables_share_a_limit(read_dne, monkeypatch):
    monkeypatch.setattr("tacit.io.formats.netica.MAX_DENSE", 20)
    read_dne(HEAD + SPRINKLER + WET + "};")  # 18 entries
    with pytest.raises(FormatError, match=r"tables of functables would have 36 entries \(limit 20\)"):
        read_dne(HEAD + SPRINKLER + WET + WET.replace("node wet", "node wetter") + "};")


def test_deep_nesting_is_no_recursion(read_dne):
    deep = "{" * 100_000 + "}" * 100_000
    assert isinstance(read_dne(HEAD + f"visual V1 {deep};}};"), Network)
