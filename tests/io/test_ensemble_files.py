"""Files of ensembles give back every number; damaged ones and other structures are refused."""

import numpy as np
import pytest
from hypothesis import given

import tacit
from tacit import Ensemble, FormatError, NetworkError, TacitError
from tests.helpers import tries
from tests.query.test_ensembles import ensembles


@tries(40)
@given(case=ensembles(functions=False))
def test_a_file_gives_back_the_networks(tmp_path_factory, case):
    ensemble = Ensemble.of(case[0])
    path = tmp_path_factory.mktemp("files") / "some.npz"
    ensemble.save(path)
    loaded = Ensemble.load(path)
    assert list(loaded) == list(ensemble)
    assert loaded.network == ensemble.network


def estimated():
    net = tacit.Network()
    net.add("A", cpt=tacit.CPT([np.nan, np.nan], tie="t"))
    net.add("B", cpt=tacit.CPT([np.nan, np.nan], tie="t"))
    return tacit.estimate(net, {"A": ["true"] * 3, "B": ["false"] * 3}).draws(5)


def test_a_file_keeps_what_tables_were_drawn_from(tmp_path):
    ensemble = estimated()
    ensemble.save(tmp_path / "draws.npz")
    loaded = Ensemble.load(tmp_path / "draws.npz")
    assert [own.keys for own in loaded.dirichlets] == [(("A", "table"), ("B", "table"))]
    assert (loaded.dirichlets[0].alpha == ensemble.dirichlets[0].alpha).all()
    assert loaded.parts["A", "table"] is loaded.parts["B", "table"]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "draws.npz"
    estimated().save(path)
    content = path.read_bytes()
    path.write_bytes(content[:400] + bytes([content[400] ^ 1]) + content[401:])
    with pytest.raises(FormatError, match="is not a file of an ensemble"):
        Ensemble.load(path)
    tacit.save(tacit.examples.abc(), tmp_path / "abc.json")
    with pytest.raises(FormatError, match=r"tacit\.load reads a network"):
        Ensemble.load(tmp_path / "abc.json")


def test_files_of_networks_and_of_ensembles_are_told_apart(tmp_path):
    with pytest.raises(TacitError, match=r"ensemble\.save\(path\) writes"):
        tacit.save(estimated(), tmp_path / "draws.json")
    estimated().save(tmp_path / "draws.npz")
    with pytest.raises(FormatError, match=r"tacit\.Ensemble\.load reads"):
        tacit.load(tmp_path / "draws.npz")


def test_an_ensemble_of_another_structure_is_refused():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A"])
    with pytest.raises(NetworkError, match="node 'B' differs in states, parents"):
        tac.credible({"A": "true"}, estimated())
