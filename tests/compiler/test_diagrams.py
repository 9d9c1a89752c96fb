"""Decision diagrams whose ends are numbers of a circuit."""

import numpy as np

from tacit.compiler.diagrams import diagram_kernels as kernels
from tacit.compiler.diagrams.elimination import Alphabet, DiagramElimination


def test_a_diagram_of_any_depth_gets_other_ends():
    """The parity of very many axes: a function that calls itself for each level would run out of stack."""
    depth = 30_000
    alphabet = Alphabet()
    even, odd = (-1 - alphabet.symbols(2, degree=2)).tolist()
    elimination = DiagramElimination(alphabet, [2] * depth, range(depth), 2**18, most_factors=2)
    store = elimination._store
    for level in reversed(range(depth)):
        below = [(even, odd), (odd, even)]
        even, odd = (made(store, level, children) for children in below)
    renamed = elimination._renamed(elimination._look(even), rescaled=True)
    (boundary,) = elimination._boundaries
    assert elimination._look(renamed.root).size == 2 * depth - 1
    ends = np.empty(4, dtype=np.int64)
    kernels.look(store, renamed.root, np.zeros(depth, dtype=np.bool_), ends)
    assert sorted(set(ends.tolist())) == boundary.symbols.tolist()


def made(store, level, children):
    store.work[: len(children)] = children
    return int(kernels.node(store, level, 0, len(children)))
