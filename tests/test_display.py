"""Networks as text, HTML and Graphviz."""

import pytest
from hypothesis import given

from tacit import Mux, Network, compile, examples
from tacit.display import bars, large, program_table
from tests.strategies import networks


@pytest.mark.parametrize(
    ("net", "text"),
    [
        (examples.abc(), "Network('abc': 3 nodes, 2 edges, 1 testing, 14 parameters, 2 thresholds)"),
        (examples.abc(testing=False), "Network('abc': 3 nodes, 2 edges, 10 parameters)"),
        (Network(), "Network(0 nodes, 0 edges, 0 parameters)"),
    ],
)
def test_repr_is_one_line_of_counts(net, text):
    assert repr(net) == text


def test_html_has_a_row_per_variable_and_shades_the_testing_ones():
    html = examples.abc().with_gamma(16)._repr_html_()
    assert html.count("<tr") == 1 + 3
    assert html.count("background") == 1
    assert "<td>B</td><td>true, false</td><td>A</td><td>testing (sigmoid, gamma=16), 2 thresholds</td>" in html
    assert "<td>C</td><td>lo, hi</td><td>A</td><td>4 parameters</td>" in html


def test_html_escapes_names_and_labels_and_shows_factored_cpts():
    net = Network("<b>")
    net.add("<i>", states=["<", "&"], cpt=[0.5, 0.5])
    net.add("x", cpt=[0.5, 0.5])
    net.add("y", cpt=[0.5, 0.5])
    net.add("m", cpt=Mux("<i>", ["x", "y"]))
    html = net._repr_html_()
    assert "<i>" not in html
    assert "&lt;, &amp;" in html
    assert "Mux(selector=" in html


def test_html_of_a_large_network_is_cut():
    html = examples.hmm(100)._repr_html_()
    assert html.count("<tr") == 1 + 60 + 1
    assert "... and 140 more" in html


def test_dot_has_every_edge_and_shades_testing_nodes():
    assert examples.abc().to_dot() == (
        'digraph "abc" {\n'
        '  node [shape=ellipse, fontname="Helvetica"];\n'
        '  "A";\n'
        '  "B" [style=filled, fillcolor=lightgrey];\n'
        '  "C";\n'
        '  "A" -> "B";\n'
        '  "A" -> "C";\n'
        "}\n"
    )


def test_dot_quotes_odd_names():
    net = Network()
    net.add('a"b\\c\nd', cpt=[0.5, 0.5])
    assert '"a\\"b\\\\c\\nd";' in net.to_dot()


@given(networks(unset=True))
def test_any_network_can_be_shown(net):
    assert repr(net).startswith("Network(")
    assert net._repr_html_().count("<tr") == 1 + len(net)
    assert net.to_dot().count("->") >= net.counts().edges


@pytest.mark.parametrize(("number", "text"), [(1, "1"), (12345, "12,345"), (2**2000, "about 10^602")])
def test_large_numbers_are_rounded_to_a_power_of_ten(number, text):
    assert large(number) == text


def test_bars_are_as_long_as_the_probabilities():
    assert bars(["yes", 0], [0.75, 0.25], width=4) == "yes  0.750000  ███\n  0  0.250000  █"


@pytest.mark.parametrize("limit", [0, 1, 4, 5])
def test_a_long_program_is_cut_in_the_middle(limit):
    program = compile(examples.abc(), "C", evidence=["A", "B"]).program
    *whole, cost = program_table(program).splitlines()
    header, *body, last = program_table(program, limit).splitlines()
    names = [f"v{i}" for i in range(len(program.operations))]
    first = limit // 2
    assert header.split() == whole[0].split()
    assert [line.split()[0] for line in whole[1:]] == names
    assert [line.split()[0] for line in body] == [*names[:first], "...", *names[len(names) - limit + first :]]
    assert body[first].split() == ["...", str(len(names) - limit), "more"]
    assert last == cost


def test_every_operation_says_what_it_works_on():
    text = program_table(compile(examples.abc(), "C", evidence=["B"], hard=["A"]).program)
    for part in ("parameter C.table", "likelihood B", "slice v", " at A", "select B: v", "contract v", "normalise v"):
        assert part in text
