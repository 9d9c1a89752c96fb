"""XMLBIF: what its documents may hold, entities and other attacks, and our properties."""

import pytest

from tacit import FormatError, Network
from tacit.io import write
from tests.helpers import close

# The dog problem of the format's specification, in part.
DOG = """<?xml version="1.0" encoding="US-ASCII"?>
<!-- Bayesian network in XMLBIF v0.3 -->
<!DOCTYPE BIF [
    <!ELEMENT BIF ( NETWORK )*>
    <!ATTLIST BIF VERSION CDATA #REQUIRED>
    <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
    <!ELEMENT VARIABLE ( NAME, ( OUTCOME |  PROPERTY )* ) >
    <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
<BIF VERSION="0.3">
<NETWORK>
<NAME>Dog-Problem</NAME>
<PROPERTY>credal-set constant-density-bounded 1.1</PROPERTY>
<VARIABLE TYPE="nature">
    <NAME>light-on</NAME>
    <OUTCOME>true</OUTCOME>
    <OUTCOME>false</OUTCOME>
    <PROPERTY>position = (218, 195)</PROPERTY>
</VARIABLE>
<VARIABLE>
    <NAME> family-out </NAME>
    <OUTCOME>yes &amp; &#x6e;&#111;</OUTCOME><!-- a comment --><OUTCOME><![CDATA[<no>]]></OUTCOME>
    <OTHER><OUTCOME>ignored</OUTCOME></OTHER>
</VARIABLE>
<VARIABLE><NAME>dog-out</NAME><OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME></VARIABLE>
<DEFINITION>
    <FOR>dog-out</FOR>
    <GIVEN>light-on</GIVEN>
    <GIVEN>family-out</GIVEN>
    <TABLE>0.99 0.01 0.97 0.03 <!-- halfway -->
    9e-1 .1
    +0.3 0.7</TABLE>
</DEFINITION>
<DEFINITION><FOR>light-on</FOR><GIVEN>family-out</GIVEN><TABLE>0.6 0.4 0.05 0.95</TABLE></DEFINITION>
<PROBABILITY><FOR>family-out</FOR><TABLE>0.15 0.85</TABLE></PROBABILITY>
</NETWORK>
</BIF>
"""
SMALL = """<BIF><NETWORK><NAME>n</NAME>
<VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>
<VARIABLE><NAME>b</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>
<DEFINITION><FOR>a</FOR><TABLE>0.5 0.5</TABLE></DEFINITION>
<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>0.5 0.5 1 0</TABLE></DEFINITION>
</NETWORK></BIF>
"""


@pytest.fixture
def read_xml(read_as):
    return lambda text: read_as("net.xmlbif", text)


def test_the_specifications_example_is_read(read_xml):
    net = read_xml(DOG)
    assert net.name == "Dog-Problem"
    assert net.variables == ("family-out", "light-on", "dog-out")
    assert net.states("family-out") == ("yes & no", "<no>")
    close(net.table("light-on"), [[0.6, 0.4], [0.05, 0.95]])
    close(net.table("dog-out"), [[[0.99, 0.01], [0.97, 0.03]], [[0.9, 0.1], [0.3, 0.7]]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1", "cp1252"])
def test_the_declared_encoding_is_used(read_xml, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + SMALL.replace(">x<", ">é<")
    assert read_xml(text.encode(encoding)).states("b") == ("é", "y")


def test_a_network_without_a_name_has_the_files(read_as):
    assert read_as("dog.xml", SMALL.replace("<NAME>n</NAME>", "")).name == "dog"
    assert read_as("dog.bifxml", SMALL.replace(">n<", "> <")).name == "dog"


# refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.5 0.5 1", "0.5 0.4 1", "line 5, column 41: node 'b': row a='x' sums to 0.9, expected 1"),
        ("0.5 0.5 1", "0.5 0,5 1", "line 5, column 41: node 'b': '0,5' is not a number"),
        ("0.5 0.5 1", "0.5 nan 1", "node 'b': 'nan' is not a number"),
        ("0.5 0.5 1", "0.5 1", "node 'b': the table has 3 numbers, expected 4"),
        ("0.5 0.5 1", "-1 2 1", "node 'b': row a='x' holds -1, which is not a probability"),
        ("<GIVEN>a<", "<GIVEN>c<", "node 'b': there is no variable 'c'"),
        ("<GIVEN>a<", "<GIVEN>b<", "the parents form a cycle: 'b' -> 'b'"),
        ("<FOR>a</FOR>", "", "line 4, column 1: 0 elements FOR, expected one"),
        ("<FOR>a</FOR>", "<FOR>a</FOR><FOR>b</FOR>", "line 4, column 1: 2 elements FOR, expected one"),
        ("<FOR>a<", "<FOR>b<", "line 5, column 41: node 'b' has two CPTs"),
        ("<NAME>b</NAME>", "", "line 3, column 1: 0 elements NAME, expected one"),
        ("<NAME>b<", "<NAME>a<", "line 3, column 1: variable 'a' is declared twice"),
        ("<NAME>b<", "<NAME><", "line 3, column 1: node '' has no CPT"),
        ("<OUTCOME>x</OUTCOME>", "", "the table has 2 numbers, expected 1"),
        ("<OUTCOME>y<", "<OUTCOME>x<", "line 2, column 1: variable 'a' has a state twice"),
        (
            "<VARIABLE>",
            '<VARIABLE TYPE="utility">',
            "line 2, column 1: a variable of type 'utility'; expected 'nature'",
        ),
        ("</NETWORK>", "</NETWORK><NETWORK></NETWORK>", "line 6, column 11: a second NETWORK; expected one"),
        ("</NETWORK>", "", "line 6, column 3: mismatched tag"),
        ("</NETWORK></BIF>", "", "line 7, column 1: no element found"),
        ("NETWORK", "NETWORKS", "there is no element NETWORK"),
        ("<BIF>", "\x00<BIF>", "not well-formed (invalid token)"),
        ("<BIF>", '<?xml version="1.0" encoding="bogus"?><BIF>', "line 1, column 1: unknown encoding: bogus"),
        ("<BIF>", '<?xml version="1.0" encoding="utf-7"?><BIF>', "multi-byte encodings are not supported"),
    ],
)
def test_what_is_wrong_is_refused_with_line_and_column(refuses, old, new, message):
    refuses("net.xmlbif", SMALL.replace(old, new), message)


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (f'<!DOCTYPE BIF [<!ENTITY l0 "ha">{LAUGHS}]>' + SMALL.replace(">x<", ">&l11;<"), "entity 'l0': declared"),
        ('<!DOCTYPE BIF [<!ENTITY q SYSTEM "file:///etc/passwd">]>' + SMALL, "entity 'q': declared entities are not"),
        ('<!DOCTYPE BIF [<!ENTITY % q SYSTEM "http://x/"> %q;]>' + SMALL, "entity 'q': declared entities are not"),
        ('<!DOCTYPE BIF SYSTEM "bif.dtd">' + SMALL.replace(">x<", ">&eacute;<"), "entity 'eacute': declared entities"),
        (SMALL.replace(">x<", ">&eacute;<"), "line 2, column 34: undefined entity"),
        ("<BIF>" * 100_000, "no element found"),
        ("<BIF><NETWORK>" + "<VARIABLE>" * 100_000 + "</VARIABLE>" * 100_000 + "</NETWORK></BIF>", "0 elements NAME"),
    ],
)
def test_attacks_are_refused(refuses, document, message):
    refuses("net.xmlbif", document, message)


# what only we understand -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tacit_name", "%22", "line 2, column 1: line 1, column 1: Unterminated string"),
        ("tacit_name", "%FF", "'%FF' does not encode a text"),
        ("tacit_name", "[]", "a node's name must be a non-empty string"),
        ("tacit_name", "%22b%22", "node 'b' is in the network already"),
        ("tacit_states", "[1]", "tacit_states must be a list of 2 labels"),
        ("tacit_states", "2", "tacit_states must be a list of 2 labels"),
        ("tacit_states", "[1, [2]]", "state [2] is not a label"),
        ("tacit_cpt", "1", "tacit_cpt is an integer, expected an object"),
        ("tacit_cpt", "%7B%22kind%22: 1%7D", "tacit_cpt.kind is an integer, expected a string"),
        ("tacit_cpt", "%7B%22kind%22: %22mux%22, %22selector%22: %22b%22, %22inputs%22: [%22c%22]%7D", "node 'a': "),
        ("tacit_cpt", "[" * 100_000, "maximum recursion depth exceeded"),
    ],
)
def test_damaged_properties_are_refused(read_xml, key, value, message):
    place = "</OUTCOME></VARIABLE>"
    with pytest.raises(FormatError) as error:
        read_xml(SMALL.replace(place, f"</OUTCOME><PROPERTY>{key} = {value}</PROPERTY></VARIABLE>", 1))
    assert "net.xmlbif: line " in str(error.value)
    assert message in str(error.value)


def test_names_are_plain_text(tmp_path):
    net = Network("my <net>")
    net.add("ä & b", states=["<no>", "ja; nein"], cpt=[0.5, 0.5])
    write(net, tmp_path / "net.xmlbif")
    assert (tmp_path / "net.xmlbif").read_text(encoding="utf-8") == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<BIF VERSION="0.3">\n'
        "<NETWORK>\n"
        "<NAME>my &lt;net&gt;</NAME>\n"
        '<VARIABLE TYPE="nature">\n'
        "<NAME>ä &amp; b</NAME>\n"
        "<OUTCOME>&lt;no&gt;</OUTCOME>\n"
        "<OUTCOME>ja; nein</OUTCOME>\n"
        "</VARIABLE>\n"
        "<DEFINITION>\n"
        "<FOR>ä &amp; b</FOR>\n"
        "<TABLE>0.5 0.5</TABLE>\n"
        "</DEFINITION>\n"
        "</NETWORK>\n"
        "</BIF>\n"
    )
