"""Studies in cells: what is stored is not computed again, and an interrupted run goes on."""

import json
from dataclasses import asdict, dataclass

from paper import cells


@dataclass(frozen=True)
class Square:
    number: int

    @property
    def file(self):
        return f"{self.number}.json"

    @property
    def effort(self):
        return 1.0


@dataclass(frozen=True)
class Result:
    value: int


def square(cell):
    return Result(cell.number**2)


def test_cells_are_computed_once_and_stored_one_by_one(tmp_path, monkeypatch):
    wanted, computed = [Square(n) for n in (3, 1, 2)], []

    def one_by_one(missing, compute, workers):
        for cell in missing:
            computed.append(cell)
            yield cell, compute(cell)
            assert json.loads((tmp_path / cell.file).read_text()) == asdict(compute(cell))

    monkeypatch.setattr(cells, "computed", one_by_one)
    (tmp_path / "1.json").write_text('{"value": 10}')
    expected = {Square(3): Result(9), Square(1): Result(10), Square(2): Result(4)}
    for _ in range(2):
        found = cells.run(wanted, square, Result, tmp_path, 1)
        assert list(found.items()) == list(expected.items())
    assert computed == [Square(3), Square(2)]


def test_processes_return_every_cell_with_its_result(capsys):
    wanted = [Square(n) for n in range(5)]
    assert dict(cells.computed(wanted, square, 1)) == {cell: square(cell) for cell in wanted}
    assert capsys.readouterr().out.startswith("5/5  ")
