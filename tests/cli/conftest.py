"""Commands run in a folder of their own, which may hold the network of the paper's first example."""

import pytest

import tacit


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def abc():
    net = tacit.examples.abc()
    tacit.save(net, "abc.json")
    return net
