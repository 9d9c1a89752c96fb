"""What a notebook shows of the things that users hold: small, escaped, and legible on light and dark ground."""

import copy
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest

import tacit
from tacit import Network, TestingCPT
from tacit.base import html as html_table
from tacit.base.html import LEFT

NAME = "<b>&'\""


class Reader(HTMLParser):
    """The cells of tables, and the tags, of which none may be left open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


@pytest.fixture(scope="module")
def net():
    made = Network("odd")
    made.add(NAME, cpt=[0.3, 0.7])
    made.add("T", [NAME], states=["<no>", "yes"], cpt=TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.5, 0.4]))
    return made


@pytest.fixture(scope="module")
def things(net):
    tac = tacit.compile(net, "T", [NAME])
    rows = {NAME: ["true", "false", None, "true"], "T": ["yes", "<no>", "yes", None]}
    learnable = net.learnable()
    fit = tacit.fit(
        tacit.compile(learnable, "T", [NAME]), {NAME: [0.1, 0.5, 0.9]}, [0.2, 0.4, 0.8], steps=3, restarts=2, seed=1
    )
    return {
        "network": net,
        "tac": tac,
        "program": tac.program,
        "fit": fit,
        "estimate": tacit.estimate(learnable, rows, progress=False),
        "explanation": tac.explain({NAME: 0.8}),
        "pieces": tacit.theory.pieces(tac),
        "sensitivity": tac.sensitivity({NAME: 0.8}),
        "mpe": tac.mpe({NAME: [0.8, 0.1]}),
        "samples": tac.sample({NAME: ["true", "false"]}, n=3),
        "prior samples": net.sample(100),
    }


KINDS = ["network", "tac", "program", "fit", "estimate", "explanation", "pieces", "sensitivity", "mpe", "samples"]
KINDS += ["prior samples"]


@pytest.mark.parametrize("kind", KINDS)
def test_views_are_small_escaped_and_legible(things, kind):
    html = things[kind]._repr_html_()
    assert len(html) < 8_000
    found = Reader(html)
    assert found.tags <= {"b", "table", "thead", "tbody", "tr", "th", "td", "br", "div", "svg", "polyline"}
    assert "color:" not in html.replace("background-color:", "")  # that of the notebook
    if kind not in ("fit", "estimate"):
        assert any(NAME in cell for cell in found.cells)


def test_a_program_is_a_table_with_a_row_per_operation(things):
    program = things["program"]
    assert things["program"]._repr_html_().count("<tr") == 1 + len(program)
    assert repr(program) == f"Program({len(program)} operations, width 1, 10 multiply-adds per row)"
    long = tacit.compile(tacit.examples.hmm(60), "H60", [f"E{i}" for i in range(1, 61)]).program
    assert len(long) > 200
    assert long._repr_html_().count("<tr") == 1 + 61


def test_sensitivity_lists_the_entries_that_matter_most(things):
    found = things["sensitivity"]
    cells = Reader(found._repr_html_()).cells
    assert cells[:4] == ["entry", "value", "derivative", "decision changes at"]
    assert cells[4:8] == list(found.entries()[0].cells)
    assert "As long as tests come out as they do now" in found._repr_html_()


@pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
def test_sensitivity_to_nothing_is_a_sentence():
    net = Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"], cpt=[[0.5, 0.5]] * 2)
    found = tacit.compile(net, "B", ["A"]).sensitivity({"A": "false"})
    assert found._repr_html_() == f"<div>{found}</div>"


def test_a_query_names_what_it_takes():
    net = tacit.examples.diamond()
    tac = tacit.compile(net, ["B", "D"], ["A"], hard=["C"])
    cells = Reader(tac._repr_html_()).cells
    assert cells[:6] == ["query", "B, D", "evidence", "A", "always observed", "C"]
    assert "given" not in cells
    given = tacit.compile(net, "D", given={"A": "true"}, do=["B"])
    assert Reader(given._repr_html_()).cells[2:6] == ["set by intervention", "B", "given", "A=true"]


def test_learning_shows_its_numbers_and_how_it_went(things):
    fit, estimate = Reader(things["fit"]._repr_html_()), Reader(things["estimate"]._repr_html_())
    assert fit.cells[:2] == ["loss", f"{things['fit'].loss:,.6g}"]
    assert estimate.cells[:2] == ["log-likelihood", f"{things['estimate'].log_likelihood:,.6g}"]
    assert "BIC" in estimate.cells
    assert "svg" in estimate.tags


def test_samples_are_dictionaries_that_show_their_first_rows(things, net):
    drawn = things["samples"]
    assert isinstance(drawn, dict)
    assert drawn[NAME].shape == (2, 3)
    assert drawn.keys() == pickle.loads(pickle.dumps(drawn)).keys() == copy.copy(drawn).keys()
    html = drawn._repr_html_()
    assert html.startswith("<b>3 samples of 2 rows, 2 variables</b>")
    assert Reader(html).cells[:4] == ["row", "sample", NAME, "T"]
    assert html.count("<tr") == 1 + 6
    many = things["prior samples"]._repr_html_()
    assert many.startswith("<b>100 samples, 2 variables</b>")
    assert many.count("<tr") == 1 + 10
    assert many.endswith("<div>... and 90 rows more</div>")


def test_wide_tables_are_cut():
    html = tacit.examples.hmm(20).sample(3)._repr_html_()
    assert html.count("<th") == 1 + 12  # thead
    assert html.endswith("<div>... and 28 columns more</div>")


def test_drawings_stay_in_their_cell():
    drawing = tacit.drawing.draw(tacit.examples.abc())
    assert 'style="max-width:100%;height:auto;background:#fff"' in drawing._repr_svg_()
    assert drawing._repr_svg_().replace(' style="max-width:100%;height:auto;background:#fff"', "") == drawing.svg


def test_curves():
    assert html_table.curve([1.0]) == html_table.curve([1.0, np.nan, np.inf]) == ""
    assert "points='0.0,38.0 180.0,2.0'" in html_table.curve([1.0, 2.0])
    assert "points='0.0,2.0 180.0,2.0'" in html_table.curve([1.0, 1.0])
    assert html_table.curve(list(range(100_000))).count(",") < 250


def test_numbers_are_on_the_right_and_texts_on_the_left():
    html = html_table.table(["name", "value"], [["a", 0.25], ["b", float("nan")]])
    assert f"<th{LEFT}>name</th><th>value</th>" in html
    assert f"<td{LEFT}>a</td><td>0.25</td>" in html
    assert f"<td{LEFT}>b</td><td></td>" in html


def test_new_axes_say_nothing_but_given_ones_are_let_be():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    tac = tacit.compile(tacit.examples.etq(), "Q", ["E"])
    new, given = tacit.plot.curve(tac), tacit.plot.curve(tac, ax=pyplot.figure().add_subplot())
    assert new._ipython_display_() is None
    assert not hasattr(given, "_ipython_display_")
    pickle.loads(pickle.dumps(new.figure))
    pyplot.close("all")
