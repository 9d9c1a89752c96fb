"""What compiling costs, and what the plans and circuits that come out of it cost.

`python -m bench compile` runs all sections and writes docs/bench-compile.md; `python -m bench compile 3 5` only
prints sections 3 and 5.
"""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import tacit
from bench.networks import NAMES, leaves, network, widest_root
from bench.tables import Ratio, Seconds, Section, at_least, at_most, missed, timed, write
from bench.textbook import plain_min_fill
from tacit import TAC, Network, TestingCPT, examples
from tacit.base.errors import TooLargeError
from tacit.compiler import price, trace
from tacit.compiler.order.tree import ROWS
from tacit.compiler.program import Program
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.lower import lower
from tacit.model.rules import Mux

PAGE = Path(__file__).parent.parent / "docs" / "bench-compile.md"
INTRO = """\
Written by `python -m bench compile` on a machine of 2 cores that others were using. Times are the median of three
runs (section 7: five) and depend on what else was running; everything else is counted, and the same on every machine.
*Multiply-adds* are those that depend on evidence and so are done once per row; *once* are those that only depend on
parameters."""

MAX_LOWERED = 6_000_000  # multiply-adds of the programs that are written out as circuits
SEARCHED = ("insurance", "hailfinder", "mildew", "water", "barley", "diabetes")  # with effort="high", too
FEWER = {"hailfinder": 8.0, "insurance": 12.0}  # times fewer multiply-adds than plain min-fill; others: 1
FOLDED = {"water": 50.0, "pathfinder": 5.0}  # times fewer nodes
MEDIUM = ("alarm", "hailfinder", "win95pts")


# 1 --------------------------------------------------------------------------------------------------------


def chains() -> Section:
    """A chain of testing nodes must cost linearly much."""
    section = Section(
        "1. Chain of m testing nodes, soft evidence on every node",
        "m = 1,000 costs at most 12x what m = 100 costs; m = 2,000 compiles within 10 s",
        ["query", "m", "operations", "multiply-adds", "circuit nodes", "compile", "against m = 100", "verdict"],
    )
    for place in ("first", "middle", "last"):
        base = (0, 0, 0)
        for m in (100, 1000, 2000):
            net = _chain(m)
            query = {"first": "T1", "middle": f"T{m // 2}", "last": f"T{m}"}[place]
            seconds, tac = timed(lambda net=net, query=query: tacit.compile(net, query, list(net)))
            figures = (len(tac.program), tac.program.cost.multiply_adds, len(tac.circuit()))
            base = base if base[0] else figures
            growth = max((Ratio(a, b) for a, b in zip(figures, base, strict=True)), key=float)
            section.add(place, m, *figures, seconds, growth, _chain_verdict(m, growth, seconds))
    section.notes.append("The growth is that of the worst of the three counts.")
    return section


def _chain(m: int, seed: int = 0) -> Network:
    rng = np.random.default_rng(seed)
    net = Network(f"chain of {m} testing nodes")
    net.add("T0", cpt=_rows(rng))
    for i in range(1, m + 1):
        net.add(f"T{i}", [f"T{i - 1}"], cpt=_testing(rng, 2))
    return net


def _chain_verdict(m: int, growth: Ratio, seconds: Seconds) -> str:
    match m:
        case 1000:
            return at_most(float(growth), 12)
        case 2000:
            return at_most(seconds.median, 10)
        case _:
            return ""


# 2 --------------------------------------------------------------------------------------------------------


def random_queries() -> Section:
    """Whatever is asked of the repository's networks is answered, or refused, soon."""
    section = Section(
        "2. Random queries on the networks of the bnlearn repository",
        "compiled, or refused with TooLargeError, within 10 s",
        ["network", "query", "evidence", "compile", "width", "multiply-adds", "once", "verdict"],
    )
    for name in NAMES:
        for draw in range(3):
            net, query, evidence = _draw(name, draw)
            seconds, made = timed(lambda net=net, query=query, evidence=evidence: _attempt(net, query, evidence))
            if isinstance(made, TAC):
                cost = made.program.cost
                figures = [cost.width, cost.multiply_adds, cost.static_multiply_adds]
            else:
                figures = ["", "too large", ""]
                section.notes.append(f"{name}, {query}: {made}.")
            section.add(name, query, len(evidence), seconds, *figures, at_most(seconds.median, 10))
    section.notes.append("The query and 5 to 15 evidence variables (as many as there are) are drawn with a fixed seed.")
    return section


def _draw(name: str, draw: int) -> tuple[Network, str, list[str]]:
    net, rng = network(name), np.random.default_rng((NAMES.index(name), draw))
    query, *others = rng.permutation(list(net)).tolist()
    return net, query, others[: int(rng.integers(5, 16))]


def _attempt(net: Network, query: str, evidence: Sequence[str]) -> TAC | TooLargeError:
    try:
        return tacit.compile(net, query, evidence)
    except TooLargeError as error:
        return error


# 3 --------------------------------------------------------------------------------------------------------


def plans() -> Section:
    """Our plan against textbook variable elimination, and against our own bucket elimination."""
    ratio_names = ["plain/ours", "fused/ours", "soft/ours", "buckets/ours", f"plain/ours at {ROWS}"]
    section = Section(
        "3. Multiply-adds per row: soft evidence on all leaves, query the root with most descendants",
        "hailfinder 8x, insurance 12x, no network below 1x against plain min-fill",
        ["network", "compile", "ours", "once", "plain", "soft steps", "our buckets", *ratio_names, "bar", "verdict"],
    )
    lowest: dict[str, list[float]] = {}
    for name in NAMES:
        net, query, evidence = _leaves_to_root(name)
        seconds, tac = timed(lambda net=net, query=query, evidence=evidence: tacit.compile(net, query, evidence))
        cost, plain = tac.program.cost, plain_min_fill(net, query, evidence)
        ours, once = cost.multiply_adds, cost.static_multiply_adds
        # an order that names nothing: buckets in min-fill order
        buckets = tacit.compile(net, query, evidence, order=()).program.cost.multiply_adds
        ratios = [Ratio(n, ours) for n in (plain.total, plain.fused, plain.soft, buckets)]
        ratios.append(Ratio(plain.total, ours + once / ROWS))
        for header, ratio in zip(ratio_names, ratios, strict=True):
            lowest.setdefault(header, []).append(float(ratio))
        bar = FEWER.get(name, 1.0)
        verdict = at_least(float(ratios[0]), bar)
        section.add(name, seconds, ours, once, plain.total, plain.soft, buckets, *ratios, f"{bar:g}x", verdict)
    section.notes += _plan_notes(lowest)
    return section


def _plan_notes(lowest: dict[str, list[float]]) -> list[str]:
    return [
        "*plain*: textbook variable elimination in min-fill order, all of it once per row. Each product and each sum "
        "counts the states of all the variables it runs over.",
        "*fused*: the same, but the last product of a bucket and its sum count as one multiply-add, as they do in our "
        "own figures. *soft steps*: only the steps of *plain* that depend on evidence. *our buckets*: min-fill bucket "
        "elimination on the factors that our plan has, cheapest pair first, batched multiply-adds.",
        f"*at {ROWS}*: *once* is shared by a batch of {ROWS} rows and added to ours.",
        "Lowest ratio of each kind: " + ", ".join(f"{h} {min(r):.2f}x" for h, r in lowest.items()) + ".",
    ]


def searches() -> Section:
    """What some seconds of search add."""
    section = Section(
        "3b. The same, by effort of the search",
        "none",
        [
            "network",
            "effort",
            "compile",
            "multiply-adds",
            "once",
            "plain/ours",
            "vs auto",
            "price vs auto",
        ],
    )
    for name in SEARCHED:
        net, query, evidence = _leaves_to_root(name)
        plain = plain_min_fill(net, query, evidence).total
        auto = tacit.compile(net, query, evidence).program
        for effort in ("low", "auto", "high"):
            seconds, tac = timed(lambda n=net, q=query, e=evidence, x=effort: tacit.compile(n, q, e, effort=x))
            found, fewest = tac.program.cost, auto.cost.multiply_adds
            ratios = Ratio(fewest, found.multiply_adds), Ratio(price(auto), price(tac.program))
            counts = [found.multiply_adds, found.static_multiply_adds, Ratio(plain, found.multiply_adds)]
            section.add(name, effort, seconds, *counts, *ratios)
    section.notes.append(f"{'With' if find_spec('cotengra') else 'Without'} cotengra.")
    section.notes.append(
        "*vs auto*: how many times fewer multiply-adds than with effort='auto'; below 1x there are more. *price*: the "
        f"same for what programs are compared by, `compiler.price`: {ROWS} rows, work done once, entries written and "
        "the overhead of an operation included."
    )
    return section


def _leaves_to_root(name: str) -> tuple[Network, str, list[str]]:
    net = network(name)
    return net, widest_root(net), leaves(net)


# 4 --------------------------------------------------------------------------------------------------------


def folding() -> Section:
    """How far known 0s and 1s shrink the circuit of one and the same trace, and what our own circuit has."""
    counted = ["trace", "folded", "ratio", "trace, inner", "folded, inner", "ratio, inner"]
    section = Section(
        "4. Folding of known 0s and 1s: soft evidence on all leaves, query the root with most descendants",
        "water 50x, pathfinder 5x",
        ["network", *counted, "ours", "ours, soft", "bar", "all nodes", "inner nodes"],
    )
    left_out = []
    for name in NAMES:
        net, query, evidence = _leaves_to_root(name)
        program, tac = trace(net, [query], evidence), tacit.compile(net, query, evidence)
        if max(_work(program), _work(tac.program)) > MAX_LOWERED:
            left_out.append(name)
            continue
        whole, folded, ours = lower(program, net, fold=False), lower(program, net), tac.circuit()
        ratios = Ratio(len(whole), len(folded)), Ratio(whole.internal, folded.internal)
        verdicts = ("", "", "")
        if name in FOLDED:
            bar = FOLDED[name]
            verdicts = (f"{bar:g}x", *(at_least(float(r), bar) for r in ratios))
        counts = [len(whole), len(folded), ratios[0], whole.internal, folded.internal, ratios[1]]
        section.add(name, *counts, len(ours), _on_evidence(ours), *verdicts)
    section.notes.append(
        "*trace*: the paper's trace (evidence entered first, one min-fill order), every node kept. *folded*: the same "
        "program lowered with folding. *ours*: `tac.circuit()`, the circuit of the plan that runs. Inner nodes are "
        "those that are no leaves; *soft*: the inner nodes that depend on evidence."
    )
    section.notes.append(f"Left out, with more than {MAX_LOWERED:,} multiply-adds: {', '.join(left_out)}.")
    return section


def _work(program: Program) -> int:
    return program.cost.multiply_adds + program.cost.static_multiply_adds


def _on_evidence(circuit: Circuit) -> int:
    """How many inner nodes have an input below them."""
    depends = np.zeros(len(circuit), dtype=bool)
    inner = 0
    for begin, end, kind, children, offsets in circuit.iter_blocks():
        if kind in ("input", "slice"):
            depends[begin:end] = True
        elif len(children):
            depends[begin:end] = np.logical_or.reduceat(depends[children], offsets)
        inner += int(depends[begin:end].sum()) if kind != "input" else 0
    return inner


# 5 --------------------------------------------------------------------------------------------------------


def wide_layer() -> Section:
    """Q's table of 16 parents is contracted as a matrix product between two halves of the T's."""
    section = Section(
        "5. The paper's layer of 16 tests: E1, E2 -> T1 ... T16 -> Q",
        "the largest value per row has at most 4 x 2^8 = 1,024 entries",
        ["tests", "compile", "multiply-adds", "once", "largest value", "least possible", "bar", "verdict"],
    )
    for tests in (4, 8, 16):
        net = _filled(examples.layer(tests))
        seconds, tac = timed(lambda net=net: tacit.compile(net, "Q", ["E1", "E2"]))
        cost, bar = tac.program.cost, 4 * 2 ** (tests // 2)
        least = min(2**tests, *(max(4 * 2**a, 4 * 2 ** (tests - a) * 2) for a in range(tests)))
        row = [cost.multiply_adds, cost.static_multiply_adds, cost.peak, least]
        section.add(tests, seconds, *row, bar, at_most(cost.peak, bar) if tests == 16 else "")
    section.notes.append(
        "The bar forgets Q's two states, which double the largest message: no binary plan can do with less than "
        "8 x 2^8 = 2,048. If the first value that meets Q's table holds a < 16 of the T's, it has 4 x 2^a entries (E1 "
        "and E2 stay open), and the result, over E1, E2, the other T's and Q, has 4 x 2^(16-a) x 2: one of the two has "
        "2,048 or more, whatever a is. If it holds all 16, it has 2^16 (which is the better way only for few tests)."
    )
    return section


# 6 --------------------------------------------------------------------------------------------------------


def theorem_1() -> Section:
    """Theorem 1's network: N testing nodes and a multiplexer approximate x^2."""
    section = Section(
        "6. Theorem 1's network for f(x) = x^2",
        "compiled within 5 s; N = 1,000 costs at most 12x what N = 100 costs",
        ["N", "compile", "operations", "multiply-adds", "circuit nodes", "largest error", "against N = 100", "verdict"],
    )
    x = np.linspace(0, 1, 1001)
    base = (0, 0, 0)
    for n in (100, 1000):
        net = _step_function(n)
        seconds, tac = timed(lambda net=net: tacit.compile(net, "Y", ["Z"]))
        figures = (len(tac.program), tac.program.cost.multiply_adds, len(tac.circuit()))
        base = base if base[0] else figures
        growth = max((Ratio(a, b) for a, b in zip(figures, base, strict=True)), key=float)
        error = float(np.abs(tac.posterior({"Z": x})[:, 0] - x**2).max())
        kept = at_most(max(seconds.median / 5, float(growth) / 12), 1)
        section.add(n, seconds, *figures, error, growth, kept)
    section.notes.append("The growth is that of the worst of the three counts. The error should be about 1/N.")
    return section


def _step_function(n: int) -> Network:
    """P*(Y) counts the thresholds f^-1(i/n) that P*(Z) reaches."""
    net = Network(f"Theorem 1, N = {n}")
    net.add("Z", cpt=[0.5, 0.5])
    net.add("I", states=n, cpt=np.full(n, 1 / n))
    same, flipped = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    for i in range(1, n + 1):
        at = math.sqrt(i / n)
        net.add(f"Y{i}", ["Z"], cpt=TestingCPT(same, flipped, thresholds=[at, 1 - at], test=[">=", ">"]))
    net.add("Y", cpt=Mux("I", [f"Y{i}" for i in range(1, n + 1)]))
    return net


# 7 --------------------------------------------------------------------------------------------------------


def compile_times() -> Section:
    """Small queries compile at once."""
    section = Section(
        "7. Compile time",
        "50 ms for the paper's networks; 0.5 s for alarm, hailfinder and win95pts",
        ["network", "query", "evidence", "compile", "fastest", "bar", "verdict"],
    )
    for net, query, evidence in _paper_queries():
        _add_time(section, net, query, evidence, str(net.name), 0.05)
    for name in MEDIUM:
        net, query, evidence = _leaves_to_root(name)
        some = np.random.default_rng(0).choice(evidence, 5, replace=False).tolist()
        for chosen in (some, evidence):
            _add_time(section, net, query, chosen, name, 0.5)
    return section


def _add_time(section: Section, net: Network, query: str, evidence: list[str], name: str, bar: float) -> None:
    seconds, _ = timed(lambda: tacit.compile(net, query, evidence), 5)
    times = [f"{1000 * t:.1f} ms" for t in (seconds.median, seconds.fastest, bar)]
    section.add(name, query, len(evidence), *times, at_most(seconds.median, bar))


def _paper_queries() -> list[tuple[Network, str, list[str]]]:
    learned = [f(n) for f in (examples.chain, examples.layer, examples.split_layer) for n in (4, 8, 16)]
    return [
        (examples.abc(), "B", ["A", "C"]),
        (examples.diamond(), "D", ["A", "B", "C"]),
        (examples.etq(), "Q", ["E"]),
        (examples.noisy_or_classifier(), "Y", ["X1", "X2", "X3"]),
        *((net, "Q", ["E1", "E2"]) for net in learned),
    ]


# 8 --------------------------------------------------------------------------------------------------------


def lowering() -> Section:
    """How fast a program becomes a circuit."""
    section = Section(
        "8. Lowering the trace to a circuit of about a million nodes",
        "none",
        ["network", "fold", "nodes", "edges", "seconds", "nodes per second"],
    )
    for name in ("andes", "pigs"):
        net, query, evidence = _leaves_to_root(name)
        program = trace(net, [query], evidence)
        for fold in (False, True):
            seconds, circuit = timed(lambda p=program, net=net, fold=fold: lower(p, net, fold=fold))
            speed = int(len(circuit) / seconds.median)
            section.add(name, "yes" if fold else "no", len(circuit), circuit.size, seconds, speed)
    return section


# numbers --------------------------------------------------------------------------------------------------


def _rows(rng: np.random.Generator, *parents: int, k: int = 2) -> np.ndarray:
    return rng.dirichlet(np.ones(k), size=parents)


def _testing(rng: np.random.Generator, *parents: int, gamma: float | None = None) -> TestingCPT:
    thresholds = rng.dirichlet(np.ones(math.prod(parents))).reshape(parents)
    return TestingCPT(_rows(rng, *parents), _rows(rng, *parents), thresholds, gamma=gamma)


def _filled(net: Network, seed: int = 0) -> Network:
    """A copy of a network of binary variables with random numbers."""
    rng, copy = np.random.default_rng(seed), Network(net.name)
    for name in net:
        cpt, parents = net.cpt(name), net.parents(name)
        shape = (2,) * len(parents)
        testing = isinstance(cpt, TestingCPT)
        copy.add(name, parents, cpt=_testing(rng, *shape, gamma=cpt.gamma) if testing else _rows(rng, *shape))
    return copy


SECTIONS = {
    "1": chains,
    "2": random_queries,
    "3": plans,
    "3b": searches,
    "4": folding,
    "5": wide_layer,
    "6": theorem_1,
    "7": compile_times,
    "8": lowering,
}


def main(arguments: Sequence[str] = ()) -> None:
    """Run the sections named, or all of them and write the page."""
    unknown = [key for key in arguments if key not in SECTIONS]
    if unknown:
        raise SystemExit(f"unknown section {unknown[0]!r}, expected some of {', '.join(SECTIONS)}")
    found = []
    for key in arguments or SECTIONS:
        found.append(SECTIONS[key]())
        print(found[-1].text(), flush=True)
    print("\n".join(missed(found)))
    if not arguments:
        write(PAGE, "Benchmark: compiling", INTRO, found)
        print(f"\nwritten: {PAGE}")
