"""Hugin NET: what its files may hold, and refusals that name line, column and node."""

import pytest

from tacit import Network
from tacit.io import write
from tests.helpers import close

NET = """% a net { in a comment
net { node_size = (80 40); name = "my net"; HR_Desc = "with % and ; and {"; }
node a { states = ("yes" "no"); label = "A"; position = (1.5 -2); }
discrete node b { label = ""; states = (lo "hi (x)"); }
node c
{
  states = ("u" "v" "w");
}
"""
A = "potential (a) { data = (0.2 0.8); }\n"
B = "potential (b | a) { data = ((0.6 0.4) % yes\n (0.05 0.95)); }\n"
C = "potential (c | a b) { data = (((1 0 0) (.2 .3 .5)) ((.3 .3 4e-1) (.4 .6 0))); }\n"


@pytest.fixture
def read_net(read_as):
    return lambda text: read_as("hugin.net", text)


def test_the_last_parents_states_vary_faster_and_the_nodes_own_fastest(read_net):
    net = read_net(NET + C + B + A)
    assert (net.name, net.variables) == ("my net", ("a", "b", "c"))
    assert net.states("b") == ("lo", "hi (x)")
    close(net.table("b"), [[0.6, 0.4], [0.05, 0.95]])
    close(net.table("c"), [[[1, 0, 0], [0.2, 0.3, 0.5]], [[0.3, 0.3, 0.4], [0.4, 0.6, 0]]])


def test_comments_attributes_and_white_space_may_be_anywhere(read_net):
    text = """/* net */net{}//x
    node%a
    a{states=("a;b"%"
    "}");temporal=();x="a=b" "c";}potential(a|){experience=(1 2 3(4));data=(/**/.25%.5
    ,75E-2);y=1;}"""
    net = read_net(text)
    assert (net.name, net.states("a")) == ("hugin", ("a;b", "}"))
    close(net.table("a"), [0.25, 0.75])


@pytest.mark.parametrize("data", ["(0.6 0.4 0.05 0.95)", "((((0.6) (0.4)) 0.05 0.95))", "(0.6 0.4) (0.05 0.95)"])
def test_parentheses_may_be_nested_in_any_way(read_net, data):
    net = read_net(NET + A + C + f"potential (b | a) {{ data = {data}; }}")
    close(net.table("b"), [[0.6, 0.4], [0.05, 0.95]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (A + C + B.replace("0.05", "0.5"), "line 12, column 2: node 'b': row a='no' sums to 1.45, expected 1"),
        (A + C + B.replace("0.05", "-0.05"), "line 12, column 2: node 'b': row a='no' holds -0.05, which is not a"),
        (A + C + B.replace("0.05", "normal"), "line 12, column 3: unexpected 'normal', expected a number, '(', ')'"),
        (A + C + B.replace("0.05 ", ""), "line 11, column 11: node 'b': the table has 3 numbers, expected 4"),
        (A + C + B.replace("));", ");"), "line 12, column 13: '(' without its ')'"),
        (A + C + B.replace("));", ")));"), "line 12, column 14: ')' without its '('"),
        (A + C + B.replace("));", "))}"), "line 12, column 14: unexpected '}', expected a number, '(', ')' or ';'"),
        (A + C + "potential (b | a) { }", "line 11, column 11: node 'b' has no data; tables given by a model are not"),
        (A + C + "potential (b | a) { model_data = (1); }", "node 'b' has no data; tables given by a model are not"),
        (A + C + "potential (b a) { data = (1 0); }", "line 11, column 11: a potential of 2 nodes, expected one"),
        (A + C + "potential () { data = (1 0); }", "line 11, column 11: a potential of 0 nodes, expected one"),
        (A + C + "potential (b | z) { data = (1 0); }", "node 'b': there is no variable 'z'"),
        (A + C + "potential (b | b) { data = (1 0 1 0); }", "the parents form a cycle: 'b' -> 'b'"),
        (A + B + C + B, "node 'b' has two CPTs"),
        (A + B, "line 5, column 6: node 'c' has no CPT"),
        (A + B + C + "node a { states = (x); }", "line 13, column 6: variable 'a' is declared twice"),
        (A + B + C + "node d { }", "line 13, column 6: variable 'd' has no states"),
        (A + B + C + "node d { states = (x x); }", "variable 'd' has a state twice"),
        (A + B + C + "node d { states (x y); }", "line 13, column 17: unexpected '(', expected '='"),
        (A + B + C + "node d { (x y); }", "line 13, column 10: unexpected '(', expected an attribute or '}'"),
        (A + B + C + 'node d { label = "x; }', "line 13, column 18: a quotation mark that does not end"),
        (A + B + C + "node d { label = x", "line 13, column 19: the file ends too early"),
        (
            A + B + C + "continuous node d { }",
            "line 13, column 1: 'continuous': only networks of discrete chance nodes",
        ),
        (A + B + C + "utility d { }", "line 13, column 1: 'utility': only networks of discrete chance nodes are read"),
        (A + B + C + "class d { }", "line 13, column 1: 'class': only networks of discrete chance nodes are read"),
        (A + B + C + "noodle d { }", "line 13, column 1: unexpected 'noodle', expected 'net', 'node' or 'potential'"),
    ],
)
def test_what_is_wrong_is_refused_with_line_column_and_node(refuses, text, message):
    refuses("hugin.net", NET + text, message)


def test_deep_nesting_is_no_recursion(read_net):
    deep = "(" * 100_000 + "0.5 0.5" + ")" * 100_000
    close(read_net(f"net {{}} node a {{ states = (x y); }} potential (a) {{ data = {deep}; }}").table("a"), [0.5, 0.5])


def test_the_file_is_what_other_programs_expect(tmp_path):
    net = Network("rain & wet")
    net.add("rain", states=["yes; 50%", "no"], cpt=[0.25, 0.75])
    net.add("wet grass", ["rain"], 2, [[0.9, 0.1], [1e-5, 1 - 1e-5]])
    write(net, tmp_path / "wet.net")
    assert (tmp_path / "wet.net").read_text() == (
        'net\n{\n    name = "rain & wet";\n}\n\n'
        'node rain\n{\n    states = ("yes; 50%" "no");\n}\n\n'
        'node wet_grass\n{\n    states = ("0" "1");\n'
        '    tacit_name = "%22wet grass%22";\n    tacit_states = "[0, 1]";\n}\n\n'
        "potential (rain)\n{\n    data = (0.25 0.75);\n}\n\n"
        "potential (wet_grass | rain)\n{\n    data = ((0.9 0.1)\n            (1e-05 0.99999));\n}\n"
    )
