"""States as people spell them, at every border."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tacit import EvidenceError, examples
from tacit.cli.shared.values import value_of
from tacit.evidence.codes import UNKNOWN
from tacit.evidence.read import AmbiguousEvidenceError, read, read_column
from tacit.evidence.states import code_in_any_case, label_of, numbers_spelled
from tacit.evidence.tables.columns import spelled
from tacit.model.elements.variable import Variable
from tests.helpers import close

OF = Variable("N", ("0", "1"))  # as BIF files have them


def test_where_values_have_types_floats_are_likelihoods_though_labels_spell_numbers():
    for values in (np.array([0.25, 1.0]), [0.25, 1.0], pd.Series([0.25, 1.0])):
        column, _ = read_column(OF, values)
        close(column.likelihoods(), [[0.25, 1.0], [0.75, 0.0]])
    column, broadcasts = read_column(OF, 0.25)
    assert broadcasts
    close(column.likelihoods(), [[0.25], [0.75]])


def test_codes_are_not_mistaken_for_likelihoods_where_labels_spell_numbers():
    with pytest.raises(AmbiguousEvidenceError, match=r"row 0: 1 may be a code or the likelihood of the first state"):
        read(pd.DataFrame({"N": [1.0, np.nan, 0.0]}), [OF])
    with pytest.raises(EvidenceError, match="1 is not a state"):
        read_column(OF, np.array([1, 0]))


@pytest.mark.parametrize("column", [["1", "0.0"], ["1.0", "0"], [1.0, 0.0], [1, 0], [True, False]])
def test_in_files_a_number_is_the_label_that_spells_it(column):
    assert spelled(OF, pa.array(column)).to_pylist() == ["1", "0"]


def test_in_files_and_commands_other_numbers_are_no_likelihoods():
    for values in (spelled(OF, pa.array([0.25])), value_of(OF, "0.25")):
        with pytest.raises(EvidenceError, match=r"'0\.25' is not a state"):
            read_column(OF, values)
    assert (value_of(OF, "1.0"), value_of(OF, "true"), value_of(Variable("B"), "0.25")) == ("1", "1", 0.25)


@pytest.mark.parametrize("number", [1, 1.0])
def test_in_json_a_number_is_the_label_that_spells_it(number):
    given = pytest.importorskip("tacit.serve.given", reason="starlette is not installed")
    assert given._column(OF, [number, None]).codes.tolist() == [1, -1]
    with pytest.raises(EvidenceError, match=r"row 1: 0\.25 is not a state"):
        given._column(OF, [number, 0.25])


def test_text_names_a_state_as_it_stands_or_in_any_case():
    of = Variable("A", ("Yes", "YES", "no", " odd "))
    assert [label_of(of, text) for text in ("YES", "yes", "NO", " no ", "ODD")] == ["YES", None, "no", "no", " odd "]
    assert [code_in_any_case(of, text) for text in ("No ", "yes", 1)] == [2, UNKNOWN, UNKNOWN]


def test_labels_that_spell_one_number_are_told_apart_by_their_text_only():
    of = Variable("A", ("1", "1.0", "nan", "true", "2"))
    assert numbers_spelled(of) == {1: None, 2: "2"}
    assert [label_of(of, text) for text in ("1", "1.0", "1.00", "2.0", "nan")] == ["1", "1.0", None, "2", "nan"]


def test_all_wrong_columns_are_named_in_one_error():
    net = examples.abc()
    rows = {"A": ["true", "yes"], "B": ["true", "false"], "C": ["low", "hi"]}
    with pytest.raises(EvidenceError) as caught:
        net.log_likelihood(rows)
    first, second = str(caught.value).splitlines()
    assert first.startswith("evidence on 'A', row 1: 'yes'")
    assert second.startswith("also evidence on 'C', row 0: 'low'")
    assert [other.variable for other in caught.value.others] == ["C"]
    moved = caught.value.at("rows.csv", first=10)
    assert (moved.row, moved.others[0].row) == (11, 10)
    assert "also evidence on 'C', row 10" in str(moved)
