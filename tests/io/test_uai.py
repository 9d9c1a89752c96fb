"""UAI: networks and evidence, as the competitions define them, and names in our comment."""

import numpy as np
import pytest

import tacit
from tacit import EvidenceError, FormatError, Network
from tacit.io import RoundingWarning, read, write
from tacit.io.formats.uai import read_evidence, write_evidence
from tests.helpers import close

UAI = """BAYES
3
2 2 3
3
1 0
2 0 1
3 0 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

12
 0.210 0.333 0.457
 0.811 0.000 0.189
 1 0 0
 0 .5 5e-1
"""


@pytest.fixture
def read_uai(read_as):
    return lambda text: read_as("net.uai", text)


def test_the_last_variable_is_the_node_and_varies_fastest_then_its_last_parent(read_uai):
    net = read_uai(UAI)
    assert (net.name, net.variables) == ("net", ("x0", "x1", "x2"))
    assert (net.parents("x2"), net.states("x2")) == (("x0", "x1"), (0, 1, 2))
    close(net.table("x1"), [[0.128, 0.872], [0.92, 0.08]])
    close(net.table("x2"), [[[0.21, 0.333, 0.457], [0.811, 0, 0.189]], [[1, 0, 0], [0, 0.5, 0.5]]])


def test_line_breaks_and_comments_do_not_matter(read_uai):
    words = UAI.split()
    assert read_uai(" ".join(words)) == read_uai("\r\n".join(words)) == read_uai(UAI)
    assert read_uai("# 1 2\n" + "# a\n".join(words) + "# tacitly") == read_uai(UAI)


def test_children_may_come_before_their_parents(read_uai):
    net = read_uai("BAYES 3  2 2 2  3  2 2 0  1 1  1 2  4 .1 .9 .2 .8  2 .3 .7  2 .4 .6")
    assert net.variables == ("x2", "x0", "x1")
    close(net.table("x0"), [[0.1, 0.9], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("BAYES", "MARK", "line 1, column 1: 'MARK' is neither 'BAYES' nor 'MARKOV', with which UAI networks begin"),
        ("BAYES\n3", "BAYES\n1000000000000", "line 2, column 1: '1000000000000' is not the number of variables in"),
        ("BAYES\n3", "BAYES\nx", "line 2, column 1: 'x' is not the number of variables in the file"),
        ("BAYES\n3", "BAYES\n-3", "line 2, column 1: '-3' is not the number of variables in the file"),
        ("2 2 3\n", "2 0 3\n", "line 3, column 3: '0' is not the number of a variable's states"),
        ("2 2 3\n", "2 999999999999 3\n", "line 3, column 3: '999999999999' is not the number of a variable's states"),
        ("2 2 3\n", f"2 {'9' * 5000} 3\n", f"line 3, column 3: '{'9' * 37}...' is not the number of a variable's"),
        ("2 2 3\n3", "2 2 3\n4", "line 4, column 1: 4 CPTs, expected 3: one per variable"),
        ("2 0 1", "0", "line 6, column 1: '0' is not the number of variables of a CPT"),
        ("2 0 1\n", "2 0 3\n", "line 6, column 5: '3' is not a variable; expected a number below 3"),
        ("2 0 1\n", "2 1 0\n", "line 12, column 1: node 'x0' has two CPTs"),
        ("2 0 1\n", "2 2 1\n", "line 12, column 1: '4' is not the size of x1's table, 6"),
        ("1 0\n2 0 1\n", "2 1 0\n2 0 1\n", "line 9, column 1: '2' is not the size of x0's table, 4"),
        ("\n4\n", "\n1000000000000\n", "line 12, column 1: '1000000000000' is not the size of x1's table, 4"),
        ("0.920", "0.92x", "line 14, column 2: '0.92x' is not a number"),
        ("0.920", "0,920", "line 14, column 2: '0,920' is not a number"),
        ("0.920", "nan", "line 14, column 2: 'nan' is not a number"),
        ("0.920", "0.930", "line 14, column 2: node 'x1': row x0=1 sums to 1.01, expected 1"),
        ("0.920 0.080", "-1 2", "line 14, column 2: node 'x1': row x0=1 holds -1, which is not a probability"),
        ("5e-1", "", "line 21, column 1: the file ends too early"),
        ("5e-1", "5e-1 1", "line 20, column 12: unexpected '1' after the last table"),
        ("BAYES", "", "line 2, column 1: '3' is neither 'BAYES' nor 'MARKOV'"),
        (UAI, "", "line 1, column 1: the file ends too early"),
        (UAI, "BAYES 2 2 2 2 2 1 0 2 0 1 4 1 0 1 0 4 1 0 1 0", "the parents form a cycle: 'x0' -> 'x1' -> 'x0'"),
    ],
)
def test_what_is_wrong_is_refused_with_line_and_column(refuses, old, new, message):
    refuses("net.uai", UAI.replace(old, new, 1), message)


# names -----------------------------------------------------------------------------------------------------


def named():
    net = Network("named")
    net.add("rain", states=["yes", "no"], cpt=[0.25, 0.75])
    net.add("wet # grass", ["rain"], ["0", 0.5, True], [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    return net


def test_names_and_labels_are_kept_in_a_comment_at_the_end(tmp_path):
    write(named(), tmp_path / "net.uai")
    *lines, comment = (tmp_path / "net.uai").read_text().splitlines()
    assert lines == [
        *["BAYES", "2", "2 3", "2", "1 0", "2 0 1", ""],
        *["2", " 0.25 0.75", "", "6", " 0.5 0.25 0.25", " 0.1 0.2 0.7", ""],
    ]
    assert comment == (
        '# tacit {"name": "named", "variables": [{"number": 0, "name": "rain", "states": ["yes", "no"]}, '
        '{"number": 1, "name": "wet # grass", "states": ["0", 0.5, true]}]}'
    )
    assert read(tmp_path / "net.uai") == named()


def test_the_selection_is_kept_where_it_is_not_ancestral(tmp_path):
    """It decides what testing nodes see that are added later."""
    net = Network("named", selection="general")
    net.add("A", cpt=[0.5, 0.5])
    write(net, tmp_path / "net.uai")
    assert '"selection": "general"' in (tmp_path / "net.uai").read_text()
    assert read(tmp_path / "net.uai").selection == "general"
    assert read(tmp_path / "net.uai") == net


def test_without_the_comment_there_are_only_numbers(tmp_path, read_uai):
    write(named(), tmp_path / "net.uai")
    net = read_uai((tmp_path / "net.uai").read_text().partition("#")[0])
    assert (net.name, net.variables, net.states("x1")) == ("net", ("x0", "x1"), (0, 1, 2))
    close(net.table("x1"), named().table("wet # grass"))


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("{", "line 22, column 1: the comment '# tacit': line 1, column 2: Expecting property name"),
        ("[]", "the comment '# tacit': comment is a list, expected an object"),
        ('{"name": 1, "variables": []}', "the comment '# tacit': comment.name is an integer"),
        ('{"name": null, "variables": [{"number": 0}]}', "the comment '# tacit': variables[0] has no 'name'"),
        ('{"name": null, "selection": "all", "variables": []}', "comment.selection is 'all', expected 'ancestral' or"),
        ('{"name": null, "variables": [{"number": 7, "name": "a", "states": []}]}', "names other variables than the"),
    ],
)
def test_a_damaged_comment_is_refused(refuses, comment, message):
    refuses("net.uai", f"{UAI}\n# tacit {comment}\n", message)


def test_a_comment_must_fit_the_states(read_uai):
    items = ", ".join(f'{{"number": {i}, "name": "v{i}", "states": ["a", "b"]}}' for i in range(3))
    with pytest.raises(FormatError, match=r"line 3, column 5: tacit_states must be a list of 3 labels"):
        read_uai(f'{UAI}\n# tacit {{"name": null, "variables": [{items}]}}\n')


def test_a_network_of_numbers_keeps_them(tmp_path, read_uai):
    """Variables called x0, x1, ... keep their numbers, whatever their order, so that evidence files still fit."""
    net = read_uai("BAYES 2 2 2 2 2 1 0 1 1 4 .1 .9 .2 .8 2 .3 .7")
    assert net.variables == ("x1", "x0")
    write(net, tmp_path / "again.uai")
    assert (tmp_path / "again.uai").read_text().startswith("BAYES\n2\n2 2\n2\n2 1 0\n1 1\n")
    write_evidence(net, {"x0": 1}, tmp_path / "again.uai.evid")
    assert (tmp_path / "again.uai.evid").read_text().startswith("1 0 1\n")


# evidence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("2 1 0 2 1", {"x1": [0], "x2": [1]}),
        ("2 0 1 3 1", {"x0": [1], "x3": [1]}),  # would also be two rows, the first without evidence
        ("2\n0\n1 3 1", {"x3": [None, 1]}),
        ("2\n0 1\n3 1", {"x0": [1], "x3": [1]}),
        ("1\n2 1 0 2 1\n", {"x1": [0], "x2": [1]}),
        ("1 2 1 0 2 1", {"x1": [0], "x2": [1]}),
        ("3\n1 0 1\n\n1 0 0 # comment\n2 0 1 2 5\n", {"x0": [1, 0, 1], "x2": [None, None, 5]}),
        ("3 1 0 1 1 0 0 2 0 1 2 5", {"x0": [1, 0, 1], "x2": [None, None, 5]}),
        ("0", {}),
        ("1\n0", {}),
    ],
)
def test_both_layouts_of_evidence_are_read(tmp_path, text, columns):
    (tmp_path / "net.evid").write_text(text)
    assert read_evidence(tmp_path / "net.evid") == columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: the file is empty; expected evidence"),
        ("1", "line 1, column 1: the counts do not fit the numbers that follow"),
        ("2 1 0 2", "the counts do not fit the numbers that follow"),
        ("1 9999999999999999999 1", "line 1, column 3: '9999999999999999999' is not a number of a variable"),
        ("1 0 yes", "line 1, column 5: 'yes' is not a number of a variable or state"),
        ("1 0 -1", "line 1, column 5: '-1' is not a number of a variable or state"),
        ("2 0 1 0 0", "row 0 observes a variable twice"),
    ],
)
def test_damaged_evidence_is_refused(tmp_path, text, message):
    (tmp_path / "net.evid").write_text(text)
    with pytest.raises(FormatError) as error:
        read_evidence(tmp_path / "net.evid")
    assert message in str(error.value)


def test_evidence_read_can_be_used(tmp_path):
    (tmp_path / "net.uai").write_text(UAI)
    (tmp_path / "net.uai.evid").write_text("2\n1 2 0\n2 2 1 0 1\n")
    rows = read_evidence(tmp_path / "net.uai.evid")
    net = read(tmp_path / "net.uai")
    tac = tacit.compile(net, "x1", evidence=["x0", "x2"])
    close(tac.posterior(rows), net.posterior("x1", {"x0": [None, 1], "x2": [0, 1]}))


def test_evidence_is_written_with_names(tmp_path):
    path = tmp_path / "net.evid.gz"
    rows = {"wet # grass": ["0", True, None], "rain": "yes"}
    write_evidence(named(), rows, path)
    assert read_evidence(path) == {"wet # grass": ["0", True, None], "rain": ["yes", "yes", "yes"]}
    write_evidence(named(), rows, tmp_path / "net.evid")
    assert (tmp_path / "net.evid").read_text().splitlines()[:4] == ["3", "2 1 0 0 0", "2 1 2 0 0", "1 0 0"]
    write_evidence(named(), {"rain": "no"}, tmp_path / "net.evid")
    assert (tmp_path / "net.evid").read_text().splitlines()[0] == "1 0 1"


def test_evidence_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "net.evid"
    with pytest.raises(EvidenceError, match="evidence on 'rain' is soft; UAI evidence files hold states only"):
        write_evidence(named(), {"rain": np.array([[0.5, 0.5]])}, path)
    with pytest.raises(EvidenceError, match="'snow', which is not a variable"):
        write_evidence(named(), {"snow": "yes"}, path)
    write_evidence(named(), {"rain": "yes"}, path)
    path.write_text(path.read_text().replace("1 0 0", "1 0 2"))
    with pytest.raises(FormatError, match="row 0: 'rain' has no state 2; it has 2 states"):
        read_evidence(path)


@pytest.mark.parametrize("blank", ["\t", "\x0b", "\x1f", "\x85", "\u2003", "\r\n"])
def test_words_are_parted_by_any_white_space(read_as, blank):
    text = "BAYES 1 2 1 1 0 2 0.25 0.75"
    assert read_as("net.uai", text.replace(" ", blank)).table("x0").tolist() == [0.25, 0.75]
    with pytest.raises(FormatError, match=r"'0\.2\\x01' is not a number"):
        read_as("net.uai", text.replace("0.25", f"0.2\x01{blank}"))


def test_the_first_row_scaled_is_named_whatever_its_length(tmp_path):
    """Rows of the same number of states are scaled together, but told of in the order of the nodes."""
    path = tmp_path / "net.uai"
    path.write_text("BAYES 3\n2 3 2\n3\n1 0\n2 0 1\n1 2\n2 .5 .5\n6\n.3 .3 .4\n.3333 .3333 .3333\n2 .5 .50005\n")
    with pytest.warns(RoundingWarning, match=r"line 10, column 1: node 'x1': row x0=1 sums to 0\.9999; .*1 other row"):
        net = read(path)
    assert net.table("x1")[1].tolist() == pytest.approx([1 / 3] * 3)
    assert net.table("x1")[0].tolist() == [0.3, 0.3, 0.4]
    assert net.table("x2").sum() == pytest.approx(1, abs=1e-15)
