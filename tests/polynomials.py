"""Networks as structured programs, written out entry by entry: slow, and independent of the compiler."""

import numpy as np

from tacit.compiler.operations import ZERO, Gather, Likelihood, Parameter, Rescale, Select, Structured
from tacit.compiler.operations.select import codes
from tacit.compiler.program import ParentMarginal, Program

ONE = ("literal", 1.0)


class Instructing:
    """A structured operation under construction.

    A reference is ("literal", number), ("input", value, entry) or ("result", instruction). A term is a pair of a
    reference that is the same for all rows and one that is not; None stands for 1 there, and for 0 where a term should
    be.
    """

    def __init__(self):
        self.sizes = {}  # entries of the inputs, by value
        self.instructions = []  # their pairs of references, and whether they are linear

    def add(self, pairs, linear):
        self.instructions.append((pairs, linear))
        return "result", len(self.instructions) - 1

    def times(self, *factors):
        product = None
        for factor in factors:
            if factor is not None:
                product = factor if product is None else self.add([(product, factor)], False)
        return product

    def total(self, terms, largest):
        """The sum of some terms, or the largest."""
        terms = [(a, b) for a, b in terms if a != ("literal", 0.0)]
        if not terms:
            return None
        if len(terms) == 1 and terms[0][0][0] == "literal":
            return terms[0]
        if all(b is None for _, b in terms):
            return ("literal", (max if largest else sum)(a[1] for a, _ in terms)), None
        return ONE, self.add([(a, b or ONE) for a, b in terms], True)

    def finish(self, results, axes, largest):
        """The operation whose entries are these terms."""
        wanted = []
        for term in results.ravel():
            a, b = term or (None, None)
            wanted.append(a if b is None else b if a == ONE else self.add([(a, b)], True))
        inputs, named = sorted(self.sizes), [r for pairs, _ in self.instructions for pair in pairs for r in pair]
        numbers = [r[1] for r in (*named, *wanted) if r and r[0] == "literal"]
        literals = {number: i for i, number in enumerate(dict.fromkeys([1.0, *numbers]))}
        after = np.cumsum([0, *(self.sizes[i] for i in inputs)]).tolist()
        first = dict(zip(inputs, after[:-1], strict=True))

        def place(reference):
            match reference:
                case None:
                    return ZERO
                case "literal", number:
                    return after[-1] + literals[number]
                case "input", value, entry:
                    return first[value] + entry
                case _, number:
                    return after[-1] + len(literals) + number

        mantissas, exponents = np.frexp(list(literals))
        lengths = [len(pairs) for pairs, _ in self.instructions]
        return Structured(
            tuple(inputs),
            mantissas,
            exponents.astype(np.int64),
            np.cumsum([0, *lengths])[:-1],
            np.array([place(reference) for reference in named], dtype=np.int64).reshape(-1, 2),
            np.array([linear for _, linear in self.instructions], dtype=np.bool_),
            np.array([place(reference) for reference in wanted], dtype=np.int64).reshape(results.shape),
            axes,
            largest,
        )


class Polynomials:
    """The values of a program: a likelihood and a table for every variable, and what is made of them.

    With `literals`, known tables are no inputs, but numbers in the instructions.
    """

    def __init__(self, net, literals=False):
        self.net, self.names, self.literals = net, list(net.variables), literals
        self.sizes = {name: net.variable(name).card for name in self.names}
        self.operations, self.batched, self.selections, self.tables = [], [], {}, {}
        self.likelihoods = {name: self.append(Likelihood(name, (name,))) for name in self.names}
        for name in self.names:
            self.tables[name] = self.selected(name) if net.cpt(name).testing else self.parameter(name, "table", name)

    def append(self, operation):
        self.batched.append(operation.reads_evidence or any(self.batched[i] for i in operation.inputs))
        self.operations.append(operation)
        return len(self.operations) - 1

    def shape(self, names):
        return tuple(self.sizes[name] for name in names)

    def parameter(self, name, part, *own):
        return self.append(Parameter(name, part, (*self.net.parents(name), *own)))

    def selected(self, name):
        """The table of a testing node."""
        parents = tuple(self.net.parents(name))
        marginal = self.structured([n for n in self.names if n in self.net.ancestors(name)], parents)
        inputs = (marginal, *(self.parameter(name, part, name) for part in ("plus", "minus")))
        thresholds = self.parameter(name, "thresholds")
        self.selections[name] = ParentMarginal(marginal, parents)
        tests = codes(self.net.cpt(name).test)
        return self.append(Select(name, (*inputs, thresholds), tests, (), (*parents, name)))

    def structured(self, nodes, keep, largest=False, weighed=None, below=None):
        """The product of the tables of some nodes, and of the likelihoods of those in `weighed` (by default, of all),
        over the states of `keep`; `below` is a value that stands for more tables.
        """
        own, weighed = Instructing(), nodes if weighed is None else weighed
        own.sizes = {self.likelihoods[name]: self.sizes[name] for name in weighed}
        results, memory = np.empty(self.shape(keep), dtype=object), {}
        for states in np.ndindex(results.shape):
            known = dict(zip(keep, states, strict=True))
            results[states] = self._term(own, nodes, known, largest, weighed, below, memory)
        return self.append(own.finish(results, tuple(keep), largest))

    def _term(self, own, nodes, known, largest, weighed, below, memory):
        below_axes = () if below is None else self.operations[below].axes
        needed = {*nodes, *below_axes, *(p for name in nodes for p in self.net.parents(name))}
        known = {name: state for name, state in known.items() if name in needed}
        key = len(nodes), *sorted(known.items())
        if key not in memory:
            memory[key] = self._new_term(own, nodes, known, largest, weighed, below, memory)
        return memory[key]

    def _new_term(self, own, nodes, known, largest, weighed, below, memory):
        if not nodes:
            return ONE, None if below is None else self.entry(own, below, known)
        (name, *rest), terms = nodes, []
        for state in [known[name]] if name in known else range(self.sizes[name]):
            states = {**known, name: state}
            found = self._term(own, rest, states, largest, weighed, below, memory)
            if found is not None:
                (a, b), (c, d) = self._table(own, name, states), found
                likelihood = self.entry(own, self.likelihoods[name], states) if name in weighed else None
                static = c if a == ONE else a if c == ONE else ("literal", a[1] * c[1])
                terms.append((static, own.times(b, likelihood, d)))
        return own.total(terms, largest)

    def _table(self, own, name, states):
        """An entry of the table of a variable, as a term."""
        if self.net.cpt(name).testing:
            return ONE, self.entry(own, self.tables[name], states)
        if self.literals:
            family = (*self.net.parents(name), name)
            return ("literal", float(self.net.table(name)[tuple(states[n] for n in family)])), None
        return self.entry(own, self.tables[name], states), None

    def entry(self, own, value, states):
        axes = self.operations[value].axes
        own.sizes[value] = int(np.prod(self.shape(axes)))
        place = 0
        for axis in axes:
            place = place * self.sizes[axis] + states[axis]
        return "input", value, place

    def program(self, joint, largest):
        return Program(
            tuple(self.operations),
            self.sizes,
            tuple(self.batched),
            query=(),
            joint=joint,
            selections=self.selections,
            states={name: tuple(range(size)) for name, size in self.sizes.items()},
            owners={name: name for name in self.names},
            soft=tuple(self.names),
            largest=largest,
            traced=True,
        )


def everything(net, largest=False, literals=False, split=0):
    """A program that says states of all variables. At variable number `split`, one operation ends and another begins,
    with a rescaled value between them.
    """
    made = Polynomials(net, literals)
    upper, lower = made.names[:split], made.names[split:]
    if not split:
        return made.program(made.structured(lower, (), largest), largest)
    axes = tuple(name for name in upper if any(name in net.parents(below) for below in lower))
    value = made.structured(lower, axes, largest)
    places = np.arange(np.prod(made.shape(axes), dtype=np.int64)).reshape(made.shape(axes))
    turned = made.append(Gather((value,), places.T.copy(), axes[::-1]))
    below = made.append(Rescale((turned,), axes[::-1]))
    return made.program(made.structured(upper, (), largest, below=below), largest)


def some(net, names):
    """A program for the best states of some variables, not all, the others summed out."""
    made = Polynomials(net, literals=True)
    sums = made.structured(made.names, names, weighed=[name for name in made.names if name not in names])
    scaled = made.append(Rescale((sums,), tuple(names)))
    own, terms = Instructing(), []
    for states in np.ndindex(made.shape(names)):
        known = dict(zip(names, states, strict=True))
        likelihoods = [made.entry(own, made.likelihoods[name], known) for name in names]
        terms.append((ONE, own.times(*likelihoods, made.entry(own, scaled, known))))
    best = np.empty((), dtype=object)
    best[()] = own.total(terms, largest=True)
    return made.program(made.append(own.finish(best, (), True)), True)
