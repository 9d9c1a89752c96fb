"""Engines on a GPU: agreement with the NumPy engine, and rows per second.

`python -m bench.gpu FOLDER` saves the networks to a folder, `python -m bench.gpu FOLDER PAGE` reads them from there and
writes the page. The latter needs torch and a GPU, and no pgmpy.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.networks import network, widest_root
from bench.tables import Section, at_most, write
from tacit.evidence.column import Column
from tacit.evidence.read import read
from tacit.model.cpt import CPT, TestingCPT
from tacit.query.network import Network

NAMES = ("alarm", "hailfinder", "insurance", "win95pts")
GENERATED = {"alarm": 15, "win95pts": 10, "hailfinder": 4}  # how much faster generated kernels have to be
RESIDENT, STREAMED = 1_000_000, 10_000_000
BANDWIDTH = 2e12  # bytes of evidence and answers a second, of alarm
TRAINING = 5 * 45e6  # rows a second: 5 times what the torch engine was recorded at
FROM_HOST = 30e6
ROWS = (1_024, 100_000, 1_000_000)
CHECKED = 20_000  # rows on which the engines are compared
TIE = 1e-6
BARS = {"float64": 1e-12, "float32": 1e-5}
INTRO = (
    "Written by `python -m bench.gpu`. One NVIDIA H200. The query is the root with the most descendants, with soft "
    "evidence on all other variables, random in every row. Times are medians of several runs, after warm-up."
)


@dataclass(frozen=True, eq=False)
class Case:
    """A query with soft evidence on all other variables."""

    name: str
    net: Network

    @cached_property
    def query(self) -> str:
        return widest_root(self.net)

    @cached_property
    def evidence(self) -> list[str]:
        return [n for n in self.net if n != self.query]

    @cache  # noqa: B019 - a handful of cases that live as long as the program
    def tac(self, engine: str, dtype: str = "float64") -> tacit.TAC:
        return tacit.compile(self.net, self.query, self.evidence, engine=engine, dtype=dtype)

    def engine(self, dtype: str = "float64", device: str = "cuda", graphs: bool = True) -> Any:
        from tacit.engines.arrays.torch_engine import TorchEngine

        own: Any = self.tac("numpy", dtype).engine()
        return TorchEngine(own.program, own.parameters, own.gammas, dtype, device, graphs)

    def likelihoods(self, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
        rng, found = np.random.default_rng(seed), {}
        for name in self.evidence:
            table = rng.random((rows, len(self.net.states(name)))) + 1e-3
            found[name] = table / table.sum(axis=1, keepdims=True)
        return found

    def columns(self, rows: int) -> dict[str, Column]:
        return dict(read(self.likelihoods(rows), [self.net.variable(n) for n in self.net]).columns)


def save(folder: Path) -> None:
    """Write the networks where a machine without pgmpy can read them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        tacit.save(network(name), folder / f"{name}.json")


@cache
def cases(folder: Path) -> list[Case]:
    """The networks, and alarm with every third table turned into a testing one."""
    found = [_case(folder, name) for name in NAMES[:3]]
    alarm = found[0].net
    return [*found, Case("alarm, tests", _with_tests(alarm, None)), Case("alarm, sigmoids", _with_tests(alarm, 16.0))]


@cache
def _case(folder: Path, name: str) -> Case:
    return Case(name, tacit.load(folder / f"{name}.json"))


def _with_tests(net: Network, gamma: float | None) -> Network:
    rng, made = np.random.default_rng(0), Network(net.name)
    for i, name in enumerate(net):
        cpt, parents = net.cpt(name), net.parents(name)
        if i % 3 == 0 and parents and isinstance(cpt, CPT):
            minus = rng.dirichlet(np.ones(cpt.table.shape[-1]), cpt.table.shape[:-1])
            thresholds = rng.random(cpt.table.shape[:-1]) / np.prod(cpt.table.shape[:-1])
            cpt = TestingCPT(cpt.table, minus, thresholds, gamma=gamma)
        made.add(name, parents, net.states(name), cpt)
    return made


# agreement ------------------------------------------------------------------------------------------------


def agreement(folder: Path) -> Section:
    """Posteriors against the NumPy engine, gradients against torch on the CPU."""
    section = Section(
        f"1. Agreement on {CHECKED:,} rows",
        "posteriors within 1e-12 of the NumPy engine in float64, 1e-5 in float32",
        ["network", "dtype", "near ties", "first run, error", "third run, error", "gradient, error", "verdict"],
    )
    for case in cases(folder):
        evidence = case.likelihoods(CHECKED)
        expected, clear = case.tac("numpy").posterior(evidence), _clear(case, evidence)
        gradient = _gradient(case, "float64", "cpu")
        for dtype, bar in BARS.items():
            tac: Any = case.tac("torch", dtype)
            errors = [float(np.abs(tac.posterior(evidence) - expected)[clear].max()) for _ in range(3)]
            assert all(slot.recorded for slot in tac.engine()._slots.values()), "nothing was recorded"
            relative = float(np.abs(_gradient(case, dtype, "cuda") - gradient).max() / np.abs(gradient).max())
            near = CHECKED - int(clear.sum())
            section.add(case.name, dtype, near, errors[0], errors[-1], relative, at_most(max(errors), bar))
    section.notes += [
        "The third run replays recorded kernels. *Near ties*: rows in which some hard test compares numbers closer "
        f"than {TIE:g}, which float32 may decide otherwise; they are left out.",
        "The gradient is that of the mean of the squared posterior of the first state, by all tables, on 1,000 rows, "
        "against torch on the CPU in float64, relative to its largest entry.",
    ]
    return section


def _clear(case: Case, evidence: dict[str, np.ndarray]) -> np.ndarray:
    """The rows in which no hard test is close to a tie."""
    clear = np.ones(CHECKED, dtype=bool)
    for name, selected in case.tac("numpy").selected(evidence).items():
        cpt = case.net.cpt(name)
        assert isinstance(cpt, TestingCPT)
        if cpt.gamma is None:
            distance = np.abs(selected.posterior - cpt.thresholds)
            clear &= distance.reshape(CHECKED, -1).min(axis=1) > TIE
    return clear


def _gradient(case: Case, dtype: str, device: str) -> np.ndarray:
    import torch

    engine = case.engine(dtype, device)
    soft = {n: torch.tensor(c.likelihoods()) for n, c in case.columns(1000).items()}
    step, _ = _training(engine, soft)
    return torch.cat([g.flatten() for g in step()[1]]).double().cpu().numpy()


def _training(engine: Any, soft: dict[str, Any]) -> tuple[Callable[[], tuple[Any, Any]], dict[Any, Any]]:
    """One step of learning: the loss and its gradients by all tables."""
    import torch

    tables = {key: t.clone().requires_grad_() for key, t in engine._own.items() if key[1] in ("table", "plus", "minus")}

    def step() -> tuple[Any, Any]:
        mantissa, _, _ = engine.forward(soft, {}, tables)
        loss = (mantissa[0] / mantissa.sum(dim=0)).square().mean()
        made = torch.autograd.grad(loss, list(tables.values()), allow_unused=True, materialize_grads=True)
        return loss, made

    return step, tables


# speed ----------------------------------------------------------------------------------------------------


def resident(folder: Path) -> Section:
    """Evidence and answers stay on the GPU."""
    section = Section(
        "2. Rows per second, evidence already on the GPU",
        "none",
        ["network", "dtype", "rows", "forward", "forward, recorded", "with gradients", "with gradients, recorded"],
    )
    for case in cases(folder):
        for dtype in BARS if case.name == "alarm" else ("float64",):
            for rows in ROWS:
                section.add(case.name, dtype, rows, *_speeds(case, dtype, rows))
    section.notes.append(
        "*Recorded*: the kernels are recorded once as a CUDA graph for a block of rows and replayed, which spares the "
        "launches. *With gradients*: one step of learning, forward and backward by all tables."
    )
    return section


def _speeds(case: Case, dtype: str, rows: int) -> list[str]:
    import torch

    engine = case.engine(dtype)
    size = min(rows, engine.chunk)
    rng = torch.Generator("cuda").manual_seed(0)
    cards = [engine.program.sizes[n] for n in engine.soft]
    everything = torch.rand((sum(cards), rows), dtype=engine.dtype, device="cuda", generator=rng) + 1e-3
    block = torch.ones((sum(cards), size), dtype=engine.dtype, device="cuda")
    soft = dict(zip(engine.soft, block.split(cards), strict=True))
    step, _ = _training(engine, soft)

    def forward() -> Any:
        with torch.no_grad():
            return engine.forward(soft, {})

    return [_rate(_over_blocks(f, everything, block), rows) for f in (forward, _record(forward), step, _record(step))]


def _over_blocks(run: Callable[[], Any], everything: Any, block: Any) -> Callable[[], None]:
    """Copy block after block of the rows to where `run` reads them; the last one may hold rows of the one before."""
    rows, size = everything.shape[1], block.shape[1]

    def work() -> None:
        for start in range(0, rows, size):
            part = everything[:, start : start + size]
            block[:, : part.shape[1]].copy_(part)
            run()

    return work


def _record(run: Callable[[], Any]) -> Callable[[], None]:
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    kept = []  # what the graph writes to must stay
    with torch.cuda.graph(graph):
        kept.append(run())

    def replay() -> None:
        assert kept
        graph.replay()

    return replay


def _rate(work: Callable[[], Any], rows: int, most: float = 0.4) -> str:
    import torch

    spent: list[float] = []
    begin = time.perf_counter()
    while len(spent) < 4 or (time.perf_counter() - begin < most and len(spent) < 50):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
    return _readable(rows / statistics.median(spent[2:]))


def _readable(rate: float) -> str:
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e3:,.0f} k"


def from_host(folder: Path) -> Section:
    """Evidence comes from NumPy arrays, answers go back there: what a user of `TAC` sees."""
    section = Section(
        "3. Rows per second, from NumPy arrays to NumPy arrays",
        "none",
        ["network", "dtype", "rows", "NumPy engine", "torch run", "torch run, recorded", "`tac.posterior`"],
    )
    for case in cases(folder):
        for dtype in BARS if case.name == "alarm" else ("float64",):
            for rows in ROWS if case.name == "alarm" else ROWS[:2]:
                section.add(case.name, dtype, rows, *_speeds_from_host(case, dtype, rows))
    section.notes.append(
        "*Run* takes checked evidence; `tac.posterior` also checks and normalises it, on one CPU core. The NumPy "
        "engine runs on the CPU of the same machine, measured on up to 100,000 rows."
    )
    return section


def _speeds_from_host(case: Case, dtype: str, rows: int) -> list[str]:
    evidence, columns = case.likelihoods(rows), case.columns(rows)
    few = min(rows, ROWS[1])
    reference = case.tac("numpy", dtype).engine()
    rates = [_rate(_run(reference, case.columns(few), few), few, 0)]
    rates += [_rate(_run(case.engine(dtype, graphs=graphs), columns, rows), rows) for graphs in (False, True)]
    tac = case.tac("torch", dtype)
    return [*rates, _rate(lambda: tac.posterior(evidence), rows)]


def _run(engine: Any, columns: dict[str, Column], rows: int) -> Callable[[], None]:
    def work() -> None:
        for start in range(0, rows, engine.chunk):
            stop = min(start + engine.chunk, rows)
            engine.run({n: c.block(start, stop) for n, c in columns.items()}, stop - start)

    return work


# generated kernels ----------------------------------------------------------------------------------------


class Resident:
    """A query with likelihoods on the GPU (states, rows), and the kernels for it."""

    def __init__(self, case: Case, dtype: str, rows: int) -> None:
        import torch

        from tacit.engines.cuda.tensors import DeviceQuery

        self.case, self.rows = case, rows
        self.engine: Any = case.tac("cuda", dtype).engine()
        self.query = DeviceQuery(self.engine)
        cards = [self.engine.program.sizes[n] for n in self.query.tape.inputs]
        self.everything = torch.rand((sum(cards), rows), dtype=self.query.dtype, device="cuda") + 1e-3
        self.soft = dict(zip(self.query.tape.inputs, self.everything.split(cards), strict=True))
        for own in self.soft.values():
            own /= own.sum(dim=0)
        self.bytes_of_row = (sum(cards) + self.query.tape.states) * self.everything.element_size() + 1
        self.constants = torch.as_tensor(self.engine.constants(self.query.tape), device="cuda")
        self.evidence = self.query.evidence(self.soft, {}, rows)

    def posterior(self) -> Callable[[], None]:
        """Evaluate all rows."""
        import torch

        loaded = self.engine.forward([own.given for own in self.evidence.arguments])
        found = torch.empty((self.rows, self.query.tape.states), dtype=self.query.dtype, device="cuda")
        notes = torch.empty(self.rows, dtype=torch.uint8, device="cuda")
        flag, stream = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.cuda.current_stream().cuda_stream
        places = {"posterior": found.data_ptr(), "notes": notes.data_ptr(), "flag": flag.data_ptr()}

        def work() -> None:
            with self.engine.device.current():
                self.engine.fill(loaded, stream)
                for _ in range(REPEATED):
                    self.engine.launch(
                        loaded, self.evidence.arguments, self.rows, stream, outputs_all=0, outputs_stride=0, **places
                    )

        return work

    def step(self) -> None:
        """The mean of the squared posterior of the first state, and its derivatives by all constants."""
        import torch

        joint, _ = self.query.forward(self.constants, self.evidence)
        total = joint.sum(dim=0)
        posterior = joint / total
        posterior[0].square().mean()
        by = torch.zeros_like(posterior)
        by[0] = 2 * posterior[0] / self.rows
        seeds = ((by - (by * posterior).sum(dim=0)) / total).contiguous()
        self.query.backward(self.constants, self.evidence, seeds, inputs=False)


REPEATED = 10  # launches that are measured together: one is over before its launch could be timed


def generated(folder: Path) -> Section:
    """Kernels generated for a query, on evidence that is on the GPU."""
    section = Section(
        "4. Generated kernels: millions of rows per second, 1,000,000 rows on the GPU",
        "alarm 15 times, win95pts 10 times, hailfinder 4 times the torch engine; alarm 2 TB/s",
        ["network", "dtype", "torch, recorded", "generated", "ratio", "TB/s", "verdict"],
    )
    for name, bar in GENERATED.items():
        for dtype in BARS:
            case = _case(folder, name)
            resident = Resident(case, dtype, RESIDENT)
            own, torch_rate = _number(resident.posterior(), REPEATED * RESIDENT), _torch_rate(case, dtype)
            speed = own * resident.bytes_of_row
            enough = own >= bar * torch_rate and (name != "alarm" or dtype != "float64" or speed >= BANDWIDTH)
            numbers = (torch_rate / 1e6, own / 1e6, own / torch_rate, speed / 1e12)
            verdict = ("ok" if enough else "MISSED") if dtype == "float64" else ""
            section.add(name, dtype, *(f"{x:,.4g}" for x in numbers), verdict)
    section.notes.append(
        "Likelihoods (states, rows) to posteriors (rows, states). *TB/s* counts the bytes of both; a copy on this GPU "
        "moves 4.3 TB/s."
    )
    return section


def _number(work: Callable[[], Any], rows: int) -> float:
    import torch

    spent: list[float] = []
    for _ in range(12):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
    return rows / statistics.median(spent[2:])


def _torch_rate(case: Case, dtype: str) -> float:
    import torch

    engine = case.engine(dtype)
    cards = [engine.program.sizes[n] for n in engine.soft]
    everything = torch.rand((sum(cards), RESIDENT), dtype=engine.dtype, device="cuda") + 1e-3
    block = torch.ones((sum(cards), min(RESIDENT, engine.chunk)), dtype=engine.dtype, device="cuda")
    soft = dict(zip(engine.soft, block.split(cards), strict=True))

    def forward() -> Any:
        with torch.no_grad():
            return engine.forward(soft, {})

    return _number(_over_blocks(_record(forward), everything, block), RESIDENT)


def uses(folder: Path) -> Section:
    """Training, and evidence that comes from the host."""
    section = Section(
        "5. Generated kernels in use: millions of rows of alarm per second",
        "training 225, from NumPy codes 30",
        ["what", "rows", "rows per second", "verdict"],
    )
    case = _case(folder, "alarm")
    rate = _number(Resident(case, "float64", RESIDENT).step, RESIDENT)
    section.add("one step: loss and gradient by all tables", RESIDENT, _readable(rate), _enough(rate, TRAINING))
    rng, tac = np.random.default_rng(0), case.tac("cuda")
    codes = {n: rng.integers(len(case.net.states(n)), size=100_000, dtype=np.int8) for n in case.evidence}
    columns = {n: Column(case.net.variable(n), np.resize(own, STREAMED)) for n, own in codes.items()}
    engine: Any = tac.engine()
    rate = _number(lambda: engine.posterior(columns, STREAMED), STREAMED)
    section.add("NumPy codes to NumPy posteriors", STREAMED, _readable(rate), _enough(rate, FROM_HOST))
    section.notes.append("The step is forward and back through `DeviceQuery`, with the loss in torch.")
    return section


def _enough(rate: float, bar: float) -> str:
    return "ok" if rate >= bar else "MISSED"


def main(arguments: Sequence[str]) -> None:
    """Save the networks, or measure and write the page."""
    folder = Path(arguments[0])
    if len(arguments) == 1:
        save(folder)
        return
    found = []
    for section in (agreement, resident, from_host, generated, uses):
        found.append(section(folder))
        print(found[-1].text(), flush=True)
        write(Path(arguments[1]), "Benchmark: engines on a GPU", INTRO, found)


if __name__ == "__main__":
    main(sys.argv[1:])
