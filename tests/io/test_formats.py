"""All formats together: nothing is lost, other programs agree, damage is found, and files cannot exhaust us."""

import gzip
import itertools
import random
import tracemalloc
import warnings

import numpy as np
import pyagrum
import pytest
from bench.networks import NAMES, folder, network
from hypothesis import assume, given

from tacit import CPT, FormatError, Gaussian, Network, NoisyOr, TacitError, TooLargeError, UnsetError, examples
from tacit.io import LostBinsWarning, RoundingWarning, load, read, save, write
from tacit.io.formats.uai import read_evidence, write_evidence
from tacit.io.parsing import content
from tests import conformance_files
from tests.helpers import close, tries
from tests.io import test_ergo, test_net, test_netica, test_uai, test_xmlbif
from tests.io.support import every_kind
from tests.strategies import networks, tied_networks

nan = np.nan
EXTENDED = ["json", "xmlbif", "net"]  # hold all of a network
PLAIN = ["bif", "uai"]  # hold tables
FORMATS = [*EXTENDED, *PLAIN]


def classical():
    """A network of plain tables, with odd names and numbers."""
    net = Network("classical")
    net.add("A", states=["yes", "no"], cpt=[1 / 3, 2 / 3])
    net.add('B "b" ;', ["A"], 3, [[1, 0, 0], [1e-300, 0.25, 0.75]])
    net.add("C", ['B "b" ;', "A"], ["0", 0, "x y"], np.full((3, 2, 3), 1 / 3))
    return net


# round trips -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder_for_all(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@pytest.mark.parametrize("suffix", [*EXTENDED, "xmlbif.gz"])
@tries(25)
@given(net=networks(unset=True) | tied_networks(unset=True))
def test_any_network_comes_back(folder_for_all, suffix, net):
    path = folder_for_all / f"net.{suffix}"
    write(net, path)
    found = read(path)
    assert found == net
    assert _labels(found) == _labels(net)


@pytest.mark.parametrize("suffix", [*PLAIN, "bif.gz"])
@tries(25)
@given(net=networks(testing=False))
def test_any_network_of_tables_comes_back(folder_for_all, suffix, net):
    path = folder_for_all / f"net.{suffix}"
    write(net, path)
    found = read(path)
    assert found == net.with_cpts({name: net.table(name) for name in net})
    assert _labels(found) == _labels(net)


def _labels(net):
    """Labels with their types: 1, 1.0 and True are equal."""
    return [(type(label), label) for name in net for label in net.states(name)]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    "name", [None, "", "unknown", "abc", "a b", 'quote " back \\ slash', "é", "lone \udc80", "x;y\n"]
)
def test_names_of_networks_come_back(tmp_path, suffix, name):
    net = Network(name)
    net.add("A" if name in (None, "") else name, states=2, cpt=[0.5, 0.5])
    for given_net in (net, Network(name)):
        write(given_net, tmp_path / f"file.{suffix}")
        assert read(tmp_path / f"file.{suffix}") == given_net


@pytest.mark.parametrize("suffix", EXTENDED)
@pytest.mark.parametrize("net", [every_kind(), examples.hmm(4), examples.layer(3)], ids=lambda net: repr(net.name))
def test_every_kind_of_cpt_comes_back(tmp_path, suffix, net):
    write(net, tmp_path / f"net.{suffix}")
    assert read(tmp_path / f"net.{suffix}") == net


@pytest.mark.parametrize("suffix", EXTENDED)
def test_the_networks_of_the_conformance_files_come_back(tmp_path, suffix):
    path = tmp_path / f"net.{suffix}"
    for case in conformance_files.read("cases.json")["cases"][::5]:
        net = conformance_files.network(case["network"])
        write(net, path)
        assert read(path) == net


LARGE = {"barley", "diabetes", "link", "mildew", "munin", "munin1", "munin2", "munin3", "munin4", "pathfinder"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE)) for n in NAMES])
def test_the_networks_of_the_bnlearn_repository_come_back(tmp_path, name):
    net = network(name)
    for suffix in [FORMATS[NAMES.index(name) % len(FORMATS)]] if name in LARGE else FORMATS:
        write(net, tmp_path / f"{name}.{suffix}")
        assert read(tmp_path / f"{name}.{suffix}") == net


# what other programs see -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["xmlbif", "net"])
def test_others_see_tables(tmp_path, suffix):
    """Without our properties: `plus`, tables written out, equal shares of what a row leaves to be learned."""
    path = tmp_path / f"net.{suffix}"
    net = every_kind()
    write(net, path)
    path.write_text(path.read_text().replace("tacit_cpt", "other"))
    seen = read(path)
    close(seen.table("B"), [[0.2, 0.4, 0.4], [0.5, 0.25, 0.25]])
    close(seen.table(" C\0"), [[0.9, 0.1], [1, 0]])
    for name in "ADEF":
        close(seen.table(name), net.table(name))


@pytest.mark.parametrize("suffix", ["xmlbif", "net"])
def test_a_table_changed_by_another_program_is_noticed(tmp_path, suffix):
    path = tmp_path / f"net.{suffix}"
    write(examples.abc(), path)
    text = path.read_text()
    start = text.rindex("0.7 0.3")
    path.write_text(text[:start] + "0.6 0.4" + text[start + 7 :])
    with pytest.raises(FormatError, match="node 'B': the table is not that of its property tacit_cpt; if another"):
        read(path)


@pytest.mark.parametrize("suffix", PLAIN)
def test_formats_of_tables_refuse_what_they_cannot_hold(tmp_path, suffix):
    name = suffix.upper()
    with pytest.raises(FormatError, match=rf"node 'B' is testing, which {name} cannot hold; write \.json, \.xmlbif or"):
        write(examples.abc(), tmp_path / f"net.{suffix}")
    net = Network()
    net.add("A", cpt=CPT([nan, nan]))
    with pytest.raises(UnsetError, match=rf"node 'A' has unset numbers \(NaN\), which {name} cannot hold"):
        write(net, tmp_path / f"net.{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["erg", "dne"])
def test_some_formats_are_not_written(tmp_path, suffix):
    with pytest.raises(FormatError, match=rf"\.{suffix} is read, not written; write \.net"):
        write(examples.abc(), tmp_path / f"abc.{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [*PLAIN, "xmlbif", "net"])
def test_a_table_too_large_for_others_is_refused(tmp_path, suffix):
    net = Network()
    for i in range(30):
        net.add(f"cause {i}", cpt=[0.1, 0.9])
    net.add("disease", cpt=NoisyOr(dict.fromkeys(net, 0.2)))
    problem = r"node 'disease': its table would have 2,147,483,648 entries .* write \.json, which keeps"
    with pytest.raises(TooLargeError, match=problem):
        write(net, tmp_path / f"net.{suffix}")
    assert list(tmp_path.iterdir()) == []


def dyadic(seed, max_parents=3):
    """A network of plain names whose numbers are sixteenths, which a float32 and five digits can hold."""
    rng = np.random.default_rng(seed)
    net = Network("dyadic")
    for i in range(8):
        parents = [f"X{j}" for j in rng.permutation(i)[: rng.integers(0, max_parents + 1)]]
        card = int(rng.integers(2, 5))
        shape = [len(net.states(p)) for p in parents]
        table = rng.multinomial(16, np.full(card, 1 / card), shape) / 16
        net.add(f"X{i}", parents, [f"s{k}" for k in range(card)], table)
    return net


def peers_table(peer, names):
    """A table of pyAgrum's with the axes in this order."""
    cpt = peer.cpt(names[-1])
    theirs = list(reversed(cpt.names))  # the order of the axes of toarray()
    return cpt.toarray().transpose([theirs.index(name) for name in names])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", ["bif", "bifxml", "net"])
def test_pyagrum_reads_what_we_write(tmp_path, suffix, seed):
    net = dyadic(seed)
    write(net, tmp_path / f"net.{suffix}")
    peer = pyagrum.loadBN(str(tmp_path / f"net.{suffix}"))
    assert peer.names() == set(net)
    for name in net:
        assert peer.variable(name).labels() == net.states(name)
        close(peers_table(peer, [*net.parents(name), name]), net.table(name))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", ["bif", "bifxml", "net"])
def test_we_read_what_pyagrum_writes(tmp_path, suffix, seed):
    write(dyadic(seed), tmp_path / "net.bifxml")
    peer = pyagrum.loadBN(str(tmp_path / "net.bifxml"))
    pyagrum.saveBN(peer, str(tmp_path / f"peer.{suffix}"))
    net = read(tmp_path / f"peer.{suffix}")
    assert set(net) == peer.names()
    for name in net:
        assert net.states(name) == peer.variable(name).labels()
        close(net.table(name), peers_table(peer, [*net.parents(name), name]))


@pytest.mark.parametrize("seed", range(5))
def test_pyagrum_and_we_read_each_others_uai(tmp_path, seed):
    """With one parent at most: pyAgrum 3.3 has the first parent vary fastest, against the definition of UAI."""
    ours = dyadic(seed, max_parents=1)
    write(ours, tmp_path / "net.uai")
    peer = pyagrum.loadBN(str(tmp_path / "net.uai"))
    pyagrum.saveBN(peer, str(tmp_path / "peer.uai"))
    theirs = read(tmp_path / "peer.uai")
    for name in ours:
        scope = [n[1:] for n in (*ours.parents(name), name)]
        close(peers_table(peer, scope), ours.table(name))
        close(theirs.table(f"x{name[1:]}"), ours.table(name))
        assert theirs.parents(f"x{name[1:]}") == tuple(f"x{number}" for number in scope[:-1])


@pytest.mark.parametrize("suffix", ["bif", "bifxml", "net"])
@tries(20)
@given(net=networks(testing=False))
def test_pyagrum_reads_odd_names_and_any_numbers(folder_for_all, suffix, net):
    """Names are changed, but the nodes stay in order. pyAgrum reads BIF and NET as float32, hence the tolerance."""
    assume(all(len(net.states(name)) > 1 for name in net))  # pyAgrum knows no variable of one state
    path = folder_for_all / f"peer.{suffix}"
    write(net, path)
    peer = pyagrum.loadBN(str(path))
    called = dict(zip(net, (peer.variable(i).name() for i in sorted(peer.nodes())), strict=True))
    for name in net:
        found = peers_table(peer, [called[n] for n in (*net.parents(name), name)])
        close(found, net.table(name), 1e-12 if suffix == "bifxml" else 1e-7)


@pytest.mark.parametrize("name", ["asia", "alarm", "insurance", "hepar2"])
def test_we_read_real_files_as_pyagrum_does(tmp_path, name):
    (tmp_path / f"{name}.bif").write_bytes(gzip.decompress((folder() / f"{name}.bif.gz").read_bytes()))
    peer, net = pyagrum.loadBN(str(tmp_path / f"{name}.bif")), read(tmp_path / f"{name}.bif")
    for node in net:
        close(net.table(node), peers_table(peer, [*net.parents(node), node]), 1e-7)  # theirs are float32


# files -----------------------------------------------------------------------------------------------------


def test_the_suffix_tells_the_format_in_any_case(tmp_path):
    for name in ("a.BIF", "a.b.Bif.GZ", "a.XML", "a.bifxml.gz", "a.JSON", "a.json.gz"):
        write(classical(), tmp_path / name)
        assert read(str(tmp_path / name)) == classical()
        assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.lower().endswith(".gz")


@pytest.mark.parametrize("name", ["net", "net.txt", "net.gz", ".bif", "net.txt.gz", "bif"])
def test_another_suffix_is_refused(tmp_path, name):
    for use in (read, lambda path: write(classical(), path)):
        with pytest.raises(FormatError, match=r"unknown file suffix .*; expected one of \.bif, \.xmlbif, \.bifxml, "):
            use(tmp_path / name)


@pytest.mark.parametrize("name", ["few.csv", "few.csv.gz", "few.parquet"])
def test_a_table_is_no_network(tmp_path, name):
    data = b"node,other\n1,2\n" if "csv" in name else b"PAR1\x15\xff"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for reading in (load, read):
        with pytest.raises(FormatError, match=r"few\..*; tacit.discover makes a network of a table"):
            reading(tmp_path / name)


def test_save_and_load_go_by_the_suffix_too(tmp_path):
    for name in ("a.bif", "a.bif.gz", "a.uai", "a.xmlbif", "a.net"):
        save(classical(), tmp_path / name)
        assert load(tmp_path / name) == read(tmp_path / name) == classical()
    for name in ("model", "model.tacit", "model.gz"):  # JSON, as ever
        save(examples.abc(), tmp_path / name)
        assert load(tmp_path / name) == examples.abc()
    with pytest.raises(FormatError, match="node 'B' is testing, which BIF cannot hold"):
        save(examples.abc(), tmp_path / "abc.bif")


@pytest.mark.parametrize("suffix", [".bif", ".xmlbif", ".uai", ".net", ".json"])
def test_a_file_with_the_suffix_of_another_format_is_told_so(tmp_path, suffix):
    write(classical(), tmp_path / f"net{suffix}")
    for other in {".bif", ".xmlbif", ".uai", ".net", ".json"} - {suffix}:
        path = (tmp_path / "other").with_suffix(other)
        path.write_bytes((tmp_path / f"net{suffix}").read_bytes())
        for use in (read, load):
            with pytest.raises(
                FormatError, match=rf"seems to be a \{suffix} file: give it a name that ends in \{suffix}$"
            ):
                use(path)


def test_a_damaged_file_is_not_taken_for_another_format(tmp_path):
    (tmp_path / "net.bif").write_text("network n { } variable")
    with pytest.raises(FormatError) as error:
        read(tmp_path / "net.bif")
    assert "seems to be" not in str(error.value)
    (tmp_path / "net.json").write_text("/* c */ " * 10_000 + "nothing")  # no time is lost on comments
    with pytest.raises(FormatError, match=r"Expecting value$"):
        read(tmp_path / "net.json")


def test_only_networks_are_written_and_only_files_are_read(tmp_path):
    with pytest.raises(TacitError, match="cannot write a dict; expected a Network"):
        write({}, tmp_path / "net.bif")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "net.bif")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "net.bif.gz")


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "net.bif.gz"
    write(classical(), path)
    with pytest.raises(FormatError, match="testing"):
        write(examples.abc(), path)
    assert read(path) == classical()
    assert [p.name for p in tmp_path.iterdir()] == ["net.bif.gz"]


def test_packed_files_are_the_same_every_time(tmp_path):
    for name in ("a.net.gz", "b.net.gz"):
        write(classical(), tmp_path / name)
    assert (tmp_path / "a.net.gz").read_bytes() == (tmp_path / "b.net.gz").read_bytes()


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-9], lambda d: d[:40] + b"\0" + d[41:], lambda d: b"no gzip", lambda d: d[:5]]
)
def test_damaged_packing_is_refused(tmp_path, damage):
    path = tmp_path / "net.bif.gz"
    write(classical(), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FormatError, match=r"net\.bif\.gz: the gzip data is damaged: "):
        read(path)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MAX_UNPACKED", 2**20)
    path = tmp_path / "net.bif.gz"
    path.write_bytes(gzip.compress(b" " * 2**26))
    with pytest.raises(FormatError, match=r"net\.bif\.gz: unpacks to more than 1,048,576 bytes; unpack it first"):
        assert _peak(lambda: read(path)) < 2**23


# what is wrong in any format ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in ("a.bif", "a.net", "a.dne") for content in ("", b"\x00\xff\xfe")),
        *[("a.bif", " \n"), ("a.bif", "// nothing"), ("a.bif", b"\x1f\x8b")],
        *[("a.net", "% nothing"), ("a.dne", "// nothing"), ("a.dne", "bnet"), ("a.dne", "bnet x")],
    ],
)
def test_what_is_no_network_is_refused(read_as, name, content):
    line = "[12]" if content == " \n" else "1"
    with pytest.raises(FormatError, match=rf"{name}: line {line}, column \d"):
        read_as(name, content)


@pytest.mark.parametrize(
    ("name", "content", "message", "node", "number", "row"),
    [
        ("a.erg", test_ergo.FROM_0.replace("0.080", "0.0801"),
         "line 12, column 2: node 'Y': row X='yes' sums to 1.0001;", "Y", 1, [0.92, 0.0801]),
        ("a.net", test_net.NET + test_net.A + test_net.C + test_net.B.replace("0.05", "0.0501"),
         "line 12, column 2: node 'b': row a='no' sums to 1.0001;", "b", 1, [0.0501, 0.95]),
        ("a.dne", test_netica.HEAD + test_netica.SPRINKLER.replace("(1, 0, 0)", "(1, .0001, 0)") + "};",
         "line 34, column 14: node 'sprinkler': row rain='no' sums", "sprinkler", 1, [1, 0.0001, 0]),
        ("a.uai", test_uai.UAI.replace("0.080", "0.0799"),
         "line 14, column 2: node 'x1': row x0=1 sums to 0.9999; scaled", "x1", 1, [0.92, 0.0799]),
        ("a.xmlbif", test_xmlbif.SMALL.replace("0.5 0.5 1", "0.49995 0.5 1"),
         "line 5, column 41: node 'b': row a='x' sums to 0.99995; scaled", "b", 0, [0.49995, 0.5]),
    ],
    ids=lambda value: value if str(value).startswith("a.") else "",
)  # fmt: skip
def test_rough_rows_are_scaled_with_a_warning(read_as, name, content, message, node, number, row):
    with pytest.warns(RoundingWarning) as caught:
        net = read_as(name, content)
    assert f"{name}: {message}" in str(caught[0].message)
    close(net.table(node)[number], np.array(row) / sum(row))


# hostile files ---------------------------------------------------------------------------------------------


def _peak(work):
    """Bytes allocated at most at one time."""
    tracemalloc.start()
    try:
        work()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


PARENTS = "".join(
    f"variable p{i} {{ type discrete [2] {{ x, y }}; }} probability (p{i}) {{ table 1 0; }}" for i in range(70)
)
MANY = ", ".join(f"p{i}" for i in range(40))
HUGE = {
    "states.bif": "variable a { type discrete [ 1000000000000 ] { x, y }; } probability (a) { table 1 0; }",
    "missing.bif": f"{PARENTS} variable a {{ type discrete [1] {{ x }}; }} probability (a | {MANY}) {{ }}",
    "default.bif": f"{PARENTS} variable a {{ type discrete [1] {{ x }}; }} probability (a | {MANY}) {{ default 1; }}",
    "table.bif": f"{PARENTS} variable a {{ type discrete [1] {{ x }}; }} probability (a | {MANY}) {{ table 1; }}",
    "parents.bif": f"{PARENTS} variable a {{ type discrete [1] {{ x }}; }}"
    f"probability (a | {', '.join(f'p{i}' for i in range(70))}) {{ default 1; }}",
    "quotes.bif": 'network "' + "x" * 100_000,
    "blanks.bif": " " * 100_000 + "/*",
    "name.bif": "network " + "x" * 100_000 + "}",
    "table.uai": "BAYES 2 1000000 1000000 2 1 0 2 0 1 1000000 1",
    "cards.uai": "BAYES 3 9 9 9 3 3 0 1 2 3 1 2 0 3 2 0 1 729 1",
    "count.uai": "BAYES 1000000000000",
    "open.net": "net {} node a { states = (x y); } potential (a) { data = " + "(" * 10_000,
    "value.net": "net { x = " + "y " * 100_000,
    "deep.json": '{"format":' * 100_000,
    "deep.xml": "<BIF>" * 100_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_what_a_file_declares_is_not_allocated(read_as, name):
    def refused():
        with pytest.raises(FormatError) as error:
            read_as(name, HUGE[name])
        assert len(str(error.value)) < 1500

    assert _peak(refused) < 2**25


def test_many_one_state_parents_are_refused_at_once(read_as):
    names = [f"p{i}" for i in range(2_000)]
    text = "".join(f"variable {n} {{ type discrete [1] {{ x }}; }} probability ({n}) {{ table 1; }}\n" for n in names)
    text += f"variable a {{ type discrete [1] {{ x }}; }} probability (a | {' '.join(names)}) {{ table 1; }}"
    with pytest.raises(FormatError, match="node 'a' has 2,000 parents; at most 63 are read"):
        read_as("net.bif", text)


# damaged files ---------------------------------------------------------------------------------------------


def mutants(data, count, seed):
    """Files with flipped bits, cut, swapped, repeated or replaced parts."""
    rng = random.Random(seed)
    parts = [
        b"",
        b"0",
        b"9" * 30,
        b"-1",
        b"1e999",
        b"nan",
        b"{",
        b"}",
        b"(",
        b")",
        b'"',
        b"<",
        b";",
        b"%",
        b"\xff",
        b"[]",
    ]
    for kind in itertools.islice(itertools.cycle(["flip", "cut", "swap", "repeat", "replace"]), count):
        i, j = sorted(rng.randrange(len(data)) for _ in range(2))
        match kind:
            case "flip":
                yield data[:i] + bytes([data[i] ^ 1 << rng.randrange(8)]) + data[i + 1 :]
            case "cut":
                yield data[:i] if rng.random() < 0.5 else data[:i] + data[min(j, i + 20) :]
            case "swap":
                yield data[:i] + data[j : j + 5] + data[i + 5 : j] + data[i : i + 5] + data[j + 5 :]
            case "repeat":
                yield data[:j] + data[i:j] + data[j:]
            case "replace":
                yield data[:i] + rng.choice(parts) + data[i + rng.randrange(4) :]


def complaint(use, path):
    """What is refused in a file, or None."""
    try:
        with warnings.catch_warnings(action="ignore", category=RoundingWarning):
            use(path)
    except FormatError as error:
        return str(error)
    return None


def read_and_compare(path):
    net = read(path)
    assert Network.from_dict(net.to_dict()) == net


@pytest.mark.parametrize("suffix", [*FORMATS, "bif.gz"])
def test_damaged_files_are_refused_or_networks(tmp_path, suffix):
    path = tmp_path / f"net.{suffix}"
    write(every_kind() if suffix in EXTENDED else classical(), path)
    found = []
    for data in mutants(path.read_bytes(), 200, seed=0):
        path.write_bytes(data)
        found.append(complaint(read_and_compare, path))
    assert all(message is None or f"net.{suffix}: " in message for message in found)
    assert 20 < sum(message is not None for message in found) < 201 - (suffix != "bif.gz")


def test_damaged_evidence_files_are_refused_or_evidence(tmp_path):
    path = tmp_path / "net.evid"
    write_evidence(classical(), {"A": ["yes", "no", None], "C": ["0", 0, "x y"]}, path)
    found = []
    for data in mutants(path.read_bytes(), 200, seed=1):
        path.write_bytes(data)
        found.append(complaint(read_evidence, path))
    assert all(message is None or "net.evid: line " in message for message in found)
    assert 20 < sum(message is not None for message in found) < 200


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "net", "uai"])
def test_bins_that_a_format_cannot_hold_are_told(tmp_path, suffix):
    net = Network("ages")
    net.add("Age", bins=[0, 18, 65], cpt=[0.4, 0.6])
    net.add("Ill", ["Age"], cpt=[[0.1, 0.9], [0.2, 0.8]])
    with pytest.warns(LostBinsWarning, match="no bins: Age will have the names of intervals as states"):
        write(net, tmp_path / f"ages.{suffix}")
    write(net, tmp_path / "ages.json")  # without a warning, which would be an error
    assert read(tmp_path / "ages.json").bins("Age") == (0, 18, 65)
    net.add("Heat", ["Age"], cpt=Gaussian(mean=[36, 37], sd=[1, 1]))
    with pytest.raises(FormatError, match="density"):  # and nothing about bins
        write(net, tmp_path / f"ages.{suffix}")
