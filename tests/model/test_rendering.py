"""Networks as text, HTML and Graphviz."""

import pytest
from hypothesis import given

from tacit import Mux, Network, examples
from tacit.base.html import LEFT
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
    plain = html.replace(LEFT, "")
    assert "<td>B</td><td>true, false</td><td>A</td><td>testing (sigmoid, gamma=16), 2 thresholds</td>" in plain
    assert "<td>C</td><td>lo, hi</td><td>A</td><td>4 parameters</td>" in plain


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
    assert html.count("<tr") == 1 + 60
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
