"""Ergo: the examples of those who describe its format, both ways to count parents, and refusals."""

import pytest

from tacit import FormatError
from tests.helpers import close

FROM_0 = """3
2 2 3
0
1 0
1 1

/* Probabilities */
2
 0.436 0.564
4
 0.128 0.872
 0.920 0.080
6
 0.210 0.333 0.457
 0.811 0.000 0.189

/* Names */
X
Y
Z

/* Labels */
no yes
0 1
low middle high
"""
FROM_1 = """2
2 3
0
1 1
/* Probabilities */
2
0.2 0.8
6
0.4 0.4 0.2 0.1 0.3 0.6
/* Names */
Success Forecast
/* Labels */
Success Failure
Good Moderate Poor
/* Centers */
98 159
98 253
"""


@pytest.fixture
def read_erg(read_as):
    return lambda text: read_as("net.erg", text)


def test_parents_may_be_counted_from_0(read_erg):
    net = read_erg(FROM_0)
    assert (net.name, net.variables) == ("net", ("X", "Y", "Z"))
    assert (net.states("Z"), net.states("Y"), net.parents("Z")) == (("low", "middle", "high"), ("0", "1"), ("Y",))
    close(net.table("Y"), [[0.128, 0.872], [0.92, 0.08]])
    close(net.table("Z"), [[0.21, 0.333, 0.457], [0.811, 0, 0.189]])


def test_parents_may_be_counted_from_1(read_erg):
    net = read_erg(FROM_1)
    assert (net.variables, net.parents("Forecast")) == (("Success", "Forecast"), ("Success",))
    close(net.table("Forecast"), [[0.4, 0.4, 0.2], [0.1, 0.3, 0.6]])


def test_the_last_parents_states_vary_faster(read_erg):
    tables = "2 .5 .5  3 .2 .3 .5  12 " + " ".join(f"{i / 10} {1 - i / 10}" for i in range(6))
    net = read_erg(f"3  2 3 2  0 0 2 0 1 {tables}")
    assert (net.variables, net.states("x1"), net.parents("x2")) == (("x0", "x1", "x2"), (0, 1, 2), ("x0", "x1"))
    close(net.table("x2")[..., 0], [[0, 0.1, 0.2], [0.3, 0.4, 0.5]])


def test_sizes_of_tables_tell_how_parents_are_counted(read_erg):
    counted = "4  3 2 2 2  0 0 0 1 %d  3 .2 .3 .5  2 .5 .5  2 .5 .5  %s"
    assert read_erg(counted % (1, "6 .1 .9 .1 .9 .1 .9")).parents("x3") == ("x0",)
    assert read_erg(counted % (0, "6 .1 .9 .1 .9 .1 .9")).parents("x3") == ("x0",)
    with pytest.raises(FormatError, match="line 1, column 1: parents may be counted from 0 or from 1: the file makes"):
        read_erg(counted % (2, "4 .1 .9 .1 .9"))


def test_nothing_needs_to_be_told_without_parents(read_erg):
    assert read_erg("2 2 1 0 0 2 .5 .5 1 1 /* Names */ b a").variables == ("b", "a")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3\n2 2", "x\n2 2", "line 1, column 1: 'x' is not the number of variables in the file"),
        ("2 2 3", "2 0 3", "line 2, column 3: '0' is not the number of a variable's states"),
        ("\n1 1\n", "\n3 1\n", "line 5, column 1: '3' is not the number of a node's parents"),
        ("\n1 1\n", "\n1 4\n", "line 5, column 3: '4' is not a variable; expected a number up to 3"),
        ("\n1 1\n", "\n1 3\n", "line 1, column 1: parents have numbers from 0 to 3, which are 4 variables"),
        ("\n1 1\n", "\n1 2\n", "line 13, column 1: the parents form a cycle: 'Z' -> 'Z'"),
        ("\n6\n", "\n5\n", "line 13, column 1: a table of 5 numbers for a node with 3 states"),
        ("\n6\n", "\n600\n", "line 13, column 1: '600' is not the number of entries of a table"),
        ("0.872", "nan", "line 11, column 8: 'nan' is not a number"),
        ("0.872", "0.972", "line 11, column 2: node 'Y': row X='no' sums to 1.1, expected 1"),
        ("0.872", "-0.872", "line 11, column 2: node 'Y': row X='no' holds -0.872, which is not a probability"),
        ("0.189\n", "0.189 1\n", "line 15, column 20: unexpected '1' after the last table"),
        ("X\nY", "X", "line 18, column 1: 2 names, expected 3"),
        ("X\nY", "X\nX", "variable 'X' is declared twice"),
        ("no yes", "no", "line 23, column 1: 6 labels, expected 7"),
        ("no yes", "no no", "variable 'X' has a state twice"),
        ("/* Labels */\n", "/* Labels\n", "line 22, column 1: a comment that does not end"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_line_and_column(refuses, old, new, message):
    assert FROM_0.count(old) == 1
    refuses("net.erg", FROM_0.replace(old, new), message)


@pytest.mark.parametrize("end", range(1, 100, 7))
def test_a_file_cut_short_is_refused(read_erg, end):
    with pytest.raises(FormatError, match=r"net\.erg: line \d+, column \d+: "):
        read_erg(FROM_0[:end])
