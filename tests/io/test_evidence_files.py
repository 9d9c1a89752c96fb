"""Files of evidence on a network: SamIam's `.inst`, and `.evid` of the UAI competitions with one row."""

import gzip

import pytest

import tacit
from tacit import FormatError, Network, semantics
from tacit.io.formats.uai import write_evidence
from tests.cli.helpers import as_json, tacit_
from tests.helpers import close

INST = """<?xml version="1.0" encoding="UTF-8"?>
<!-- of a program -->
<!DOCTYPE instantiation [ <!ELEMENT instantiation (inst*)> <!ATTLIST inst id CDATA #REQUIRED> ]>
<instantiation date="2005">
<inst id="A" value="true"/>
<inst id="C" value="lo"></inst>
</instantiation>
"""


@pytest.fixture
def numbered():
    net = Network()
    net.add("x1", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("x0", ["x1"], 2, [[0.1, 0.9], [0.2, 0.8], [0.4, 0.6]])
    return net


@pytest.fixture
def read_as(tmp_path):
    def from_content(name, content, net=None):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tacit.read_evidence(path, net or tacit.examples.abc())

    return from_content


def test_samiams_evidence_is_read(read_as):
    assert read_as("seen.inst", INST) == {"A": "true", "C": "lo"}
    assert read_as("seen.inst.gz", gzip.compress(INST.encode())) == {"A": "true", "C": "lo"}
    assert read_as("none.inst", "<instantiation/>") == {}


def test_labels_that_are_numbers_are_meant_by_their_text(read_as, numbered):
    assert read_as("seen.inst", '<instantiation><inst id="x1" value="2"/></instantiation>', numbered) == {"x1": 2}


@pytest.mark.parametrize("content", ["2 0 1 1 2", "1\n2 0 1 1 2\n", "1\n2\n0 1\n1 2", "2\n0 1\n1 2 # comment"])
def test_both_layouts_of_uai_are_read_by_the_numbers_of_the_network(read_as, numbered, content):
    assert read_as("net.uai.evid", content, numbered) == {"x0": 1, "x1": 2}


@pytest.mark.parametrize("content", ["0", "1\n0\n"])
def test_a_row_may_observe_nothing(read_as, numbered, content):
    assert read_as("net.evid", content, numbered) == {}


def test_what_was_written_comes_back_with_its_names(tmp_path):
    abc = tacit.examples.abc()
    write_evidence(abc, {"C": "hi", "A": "false"}, tmp_path / "abc.evid")
    assert tacit.read_evidence(tmp_path / "abc.evid", abc) == {"A": "false", "C": "hi"}


def test_it_is_what_queries_and_given_take(read_as):
    abc, seen = tacit.examples.abc(), read_as("seen.inst", INST)
    expected = semantics.posterior(abc, "B", seen)
    close(tacit.compile(abc, "B", given=seen).posterior(), expected)
    close(tacit.compile(abc, "B", evidence=list(seen)).posterior(seen), expected)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.inst", INST.replace('"C"', '"c"'), "line 6, column 1: the network has no variable 'c'; did you mean 'C'?"),
        ("a.inst", INST.replace('"C"', '"A"'), "line 6, column 1: variable 'A' is observed twice"),
        ("a.inst", INST.replace('"lo"', '"LO"'), "line 6, column 1: 'LO' is not a state of 'C'; expected one of 'lo'"),
        ("a.inst", INST.replace('value="lo"', ""), "line 6, column 1: an inst without value; expected <inst id="),
        ("a.inst", INST.replace('id="C"', ""), "line 6, column 1: an inst without id; expected <inst id="),
        ("a.inst", INST.replace("></inst>", "><inst/></inst>"), "line 6, column 25: unexpected element 'inst'"),
        ("a.inst", "<BIF/>", "line 1, column 1: unexpected element 'BIF', expected an element instantiation"),
        ("a.inst", "<instantiation><a/>", "line 1, column 16: unexpected element 'a', expected an element inst"),
        ("a.inst", INST[:-5], "line 7, column 1: unclosed token"),
        ("a.inst", "", "line 1, column 1: no element found"),
        ("a.inst", '<!DOCTYPE a [<!ENTITY b "c">]><instantiation/>', "entity 'b': declared entities are not read"),
        ("a.evid", "1 3 0", "line 1, column 3: the network has no variable with the number 3"),
        ("a.evid", "1\n2 0 1\n1 2", "line 3, column 3: 'B' has no state 2; it has 2 states"),
        ("a.evid", "2\n1 0 1\n1 1 1", "line 1, column 1: 2 rows of evidence, expected one; tacit.io.formats.uai"),
        ("a.evid", "2 0 1 0 1", "row 0 observes a variable twice"),
        ("a.evid", "3 0 1", "line 1, column 1: the counts do not fit the numbers that follow"),
        ("a.evid", "1 0 x", "line 1, column 5: 'x' is not a number of a variable or state"),
        ("a.evid", "", "line 1, column 1: the file is empty; expected evidence"),
        ("a.csv", "A", "unknown file suffix '.csv'; expected one of .inst, .evid, or one with .gz"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_line_and_column(read_as, name, content, message):
    with pytest.raises(FormatError) as error:
        read_as(name, content)
    assert message in str(error.value)


def test_a_comment_that_names_other_variables_is_refused(tmp_path):
    abc = tacit.examples.abc()
    write_evidence(abc, {"C": "hi"}, tmp_path / "abc.evid")
    (tmp_path / "abc.evid").write_text((tmp_path / "abc.evid").read_text().replace('"name": "C"', '"name": "D"'))
    with pytest.raises(FormatError, match="the network has no variable with the number 2"):
        tacit.read_evidence(tmp_path / "abc.evid", abc)


def test_the_command_line_takes_files_of_evidence(tmp_path):
    model, seen = tmp_path / "abc.json", tmp_path / "seen.inst"
    tacit.write(tacit.examples.abc(), model)
    seen.write_text(INST)
    apart = as_json("query", model, "-q", "B", "-e", "A=true", "-e", "C=lo")
    assert as_json("query", model, "-q", "B", "-e", seen) == apart
    assert "there are two values for A" in tacit_("query", model, "-q", "B", "-e", seen, "-e", "A=true", code=2)
    assert "No such file" in tacit_("mpe", model, "-e", tmp_path / "other.inst", code=1)
