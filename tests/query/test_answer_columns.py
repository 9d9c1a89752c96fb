"""The columns that answer a question about every row, as pyarrow arrays."""

import pytest

import tacit

pytest.importorskip("pyarrow")

from tacit.query.answer_columns import LogEvidence, MostProbable, PosteriorColumns, SampleColumns


@pytest.mark.parametrize(
    "wanted",
    [
        PosteriorColumns((("B",), ("A",)), argmax=True, log_evidence=True),
        PosteriorColumns((("A", "B"),), argmax=True),
        MostProbable(("A", "B"), log_evidence=True),
        MostProbable(),
        LogEvidence(),
        SampleColumns((0,)),
    ],
)
@pytest.mark.parametrize("rows", [0, 3])
def test_there_are_as_many_columns_as_fields_whatever_the_rows(wanted, rows):
    net = tacit.examples.abc()
    tacs = [tacit.compile(net, query, ["C"]) for query in wanted.queries]
    known = tacs[0].read({"C": ["lo"] * rows})
    columns = wanted.columns(net, tacs, known)
    assert [column.type for column in columns] == [kind for _, kind in wanted.fields(net)]
    assert {len(column) for column in columns} == {rows}
