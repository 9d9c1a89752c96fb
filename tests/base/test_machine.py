"""What a process may use: cores, memory and threads, within the limits of containers and of the user."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tacit
from tacit import Network, TooLargeError, examples
from tacit.base import machine
from tacit.base.machine import Quota
from tacit.compiler import contraction, strategy
from tacit.engines.arrays import numpy_engine
from tacit.engines.circuit.circuit_tape import CircuitTape
from tacit.engines.tape import assemble
from tacit.learn.fitting import run as running

GB = 2**30
CORES = 8  # that the process is bound to, in these tests
MACHINE = 64 * GB


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A function that writes the files of a system, and gives its root."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(CORES)), raising=False)
    monkeypatch.setattr(machine, "_machine_memory", lambda: float(MACHINE))

    def write(cgroup, **files):
        for path, text in {"proc/self/cgroup": cgroup, **files}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        return tmp_path

    return write


def v2(limits):
    return {f"sys/fs/cgroup/{path}": text for path, text in limits.items()}


@pytest.mark.parametrize(
    ("limits", "cores"),
    [
        ({}, CORES),
        ({"cpu.max": "max 100000"}, CORES),
        ({"cpu.max": "200000 100000"}, 2),
        ({"cpu.max": "150000 100000"}, 2),  # a part of a core is a thread's
        ({"cpu.max": "5000 100000"}, 1),
        ({"cpu.max": "9900000 100000"}, CORES),
        ({"cpu.max": "garbage"}, CORES),
        ({"cpu.max": "100000"}, CORES),
        ({"pod/cpu.max": "max 100000", "pod/job/cpu.max": "300000 100000"}, 3),
        ({"pod/cpu.max": "300000 100000", "pod/job/cpu.max": "max 100000"}, 3),
        ({"cpu.max": "600000 100000", "pod/cpu.max": "300000 100000", "pod/job/cpu.max": "500000 100000"}, 3),
        ({"other/cpu.max": "100000 100000", "pod/job/inner/cpu.max": "100000 100000"}, CORES),  # not ours
    ],
)
def test_cores_are_the_fewest_of_all_levels(system, limits, cores):
    assert machine.usable_cores(system("0::/pod/job", **v2(limits))) == cores


@pytest.mark.parametrize(
    ("limits", "memory"),
    [
        ({}, MACHINE),
        ({"pod/memory.max": "max"}, MACHINE),
        ({"pod/memory.max": str(GB)}, GB),
        ({"pod/memory.max": str(3 * GB), "pod/job/memory.max": str(5 * GB)}, 3 * GB),
        ({"memory.max": str(2 * GB), "pod/job/memory.max": str(5 * GB)}, 2 * GB),
        ({"memory.max": str(2 * MACHINE)}, MACHINE),
    ],
)
def test_memory_is_the_least_of_all_levels(system, limits, memory):
    assert machine.memory(system("0::/pod/job", **v2(limits))) == memory


VERSION_1 = "5:memory:/docker/a1\n4:cpu,cpuacct:/docker/a1\n1:name=systemd:/docker/a1"


@pytest.mark.parametrize("place", ["docker/a1/", "docker/", ""])  # at last: what a container sees as its root
@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
def test_version_1_of_cgroups_has_its_own_files(system, place, mount):
    files = {
        f"sys/fs/cgroup/{mount}/{place}cpu.cfs_quota_us": "250000",
        f"sys/fs/cgroup/{mount}/{place}cpu.cfs_period_us": "100000",
        f"sys/fs/cgroup/memory/{place}memory.limit_in_bytes": str(GB),
    }
    root = system(VERSION_1, **files)
    assert (machine.usable_cores(root), machine.memory(root)) == (3, GB)


def test_version_1_without_limits(system):
    files = {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    }
    root = system(VERSION_1, **files)
    assert (machine.usable_cores(root), machine.memory(root)) == (CORES, MACHINE)


def test_both_versions_side_by_side(system):
    root = system(f"{VERSION_1}\n0::/user", **{"sys/fs/cgroup/unified/user/memory.max": str(GB)})
    assert machine.memory(root) == GB


def test_a_cgroup_outside_of_the_namespace_is_the_mounted_one(system):
    root = system("0::/../../elsewhere", **v2({"memory.max": str(GB), "../memory.max": "1"}))
    assert machine.memory(root) == GB


def test_without_cgroups(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_machine_memory", lambda: float(MACHINE))
    assert machine.memory(tmp_path) == MACHINE
    assert machine.usable_cores(tmp_path) >= 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_address_space_is_memory(system, monkeypatch):
    import resource

    limits = {resource.RLIMIT_AS: (2 * GB, 3 * GB)}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    assert machine.memory(system("0::/")) == 2 * GB
    limits[resource.RLIMIT_AS] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert machine.memory(system("0::/")) == MACHINE


def test_this_machine_has_memory():
    assert 2**26 < machine.memory() <= machine._machine_memory()


# threads ------------------------------------------------------------------------------------------------------


def test_threads_are_those_asked_for_or_of_the_environment_or_of_the_cores(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 5)
    monkeypatch.delenv("TACIT_THREADS", raising=False)
    assert (machine.threads(), machine.threads(3), machine.threads(np.int64(2))) == (5, 3, 2)
    monkeypatch.setenv("TACIT_THREADS", " 4 ")
    assert (machine.threads(), machine.threads(7)) == (4, 7)
    monkeypatch.setenv("TACIT_THREADS", "")
    assert machine.threads() == 5


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, "2", True, [1], float("nan")])
def test_a_wrong_number_of_threads_is_refused(value):
    with pytest.raises(tacit.TacitError, match=r"threads is .*, expected a whole number >= 1, or None"):
        tacit.compile(examples.abc(), "B", threads=value)


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "1e3", "²", "0x2"])
def test_a_wrong_number_in_the_environment_is_refused(monkeypatch, value):
    monkeypatch.setenv("TACIT_THREADS", value)
    with pytest.raises(tacit.TacitError, match=r"variable TACIT_THREADS is .*, expected a whole number"):
        tacit.compile(examples.abc(), "B")
    tacit.compile(examples.abc(), "B", threads=1)  # where it is given, nobody looks


@pytest.mark.parametrize("engine", ["numpy", "tape", "torch"])
def test_the_number_reaches_the_engines(engine, monkeypatch):
    if engine == "torch":
        pytest.importorskip("torch")
    monkeypatch.setenv("TACIT_THREADS", "3")
    for threads, expected in ((2, 2), (None, 3)):
        tac = tacit.compile(examples.abc(), "B", ["A"], engine=engine, threads=threads)
        tac.marginals({"A": 0.3})
        (companion,) = tac._companions.values()
        assert tac.engine().threads == companion.engine().threads == expected
    assert CircuitTape(tac.circuit()).threads == 3


def test_the_number_reaches_the_restarts_of_fit(monkeypatch):
    pools = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, size):
            pools.append(size)
            super().__init__(size)

    monkeypatch.setattr(running, "ThreadPoolExecutor", Pool)
    net = Network()
    net.add("E", cpt=[0.5, 0.5])
    net.add("Q", ["E"])
    x = np.linspace(0, 1, 20)
    fit = tacit.fit(tacit.compile(net, "Q", ["E"], threads=3), {"E": x}, x, steps=2, restarts=2, progress=False)
    assert set(pools) == {3}
    assert fit.tac.options.threads == 3


def wide():
    """A network with a table of 4096 bytes, and the table's parents."""
    net, names = Network(), [f"R{i}" for i in range(8)]
    for name in names:
        net.add(name, cpt=[0.5, 0.5])
    net.add("C", names, cpt=np.full((2,) * 9, 0.5))
    return net, names


# a quota of the process -----------------------------------------------------------------------------------------


@pytest.fixture
def five_cores(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 5)
    monkeypatch.delenv("TACIT_THREADS", raising=False)


def engine_threads(threads=None, engine="numpy"):
    return tacit.compile(examples.abc(), "B", ["A"], engine=engine, threads=threads).engine().threads


@pytest.mark.parametrize("engine", ["numpy", "tape", "torch", "auto"])
def test_engines_made_within_a_quota_keep_to_it(engine, five_cores):
    if engine == "torch":
        pytest.importorskip("torch")
    tac = tacit.compile(examples.abc(), "B", ["A"], engine=engine)
    with machine.within(Quota(threads=1)):
        assert tac.engine().threads == 1
        assert CircuitTape(tac.circuit()).threads == 1
    assert tac.engine().threads == 1  # it was made there
    assert engine_threads(engine=engine) == 5


def test_what_a_user_asked_for_goes_beyond_a_quota(five_cores, monkeypatch):
    with machine.within(Quota(threads=1)):
        assert engine_threads(3) == 3
        monkeypatch.setenv("TACIT_THREADS", "4")
        assert (engine_threads(), engine_threads(3)) == (4, 3)


@pytest.mark.parametrize(("quota", "threads"), [(2, 2), (2.5, 2), (0.5, 1), (7, 5), (np.inf, 5)])
def test_a_quota_is_of_the_cores_and_at_least_one_thread(five_cores, quota, threads):
    with machine.within(Quota(threads=quota)):
        assert engine_threads() == threads


def test_memory_is_that_of_the_quota_or_of_the_container(system):
    root = system("0::/pod", **v2({"pod/memory.max": str(3 * GB)}))
    for quota, memory in ((GB, GB), (5 * GB, 3 * GB)):
        with machine.within(Quota(memory=quota)):
            assert machine.memory(root) == memory
    assert machine.memory(root) == 3 * GB


def test_the_compiler_keeps_to_the_memory_of_a_quota(monkeypatch):
    net, names = wide()
    monkeypatch.setattr(strategy.Diagrams, "possible", False)  # diagrams would be smaller
    with machine.within(Quota(memory=8192)):
        tacit.compile(net, "C", names)
    with machine.within(Quota(memory=8191)), pytest.raises(TooLargeError, match="too wide to compile"):
        tacit.compile(net, "C", names)
    tacit.compile(net, "C", names)


def test_the_inner_of_two_quotas_holds_and_ends_also_by_an_error(five_cores):
    def fail():
        assert engine_threads() == 2
        raise KeyError

    with machine.within(Quota(threads=3, memory=GB)):
        with pytest.raises(KeyError), machine.within(Quota(threads=2)):
            fail()
        assert (engine_threads(), machine.memory() <= GB) == (3, True)
    assert engine_threads() == 5


def test_a_quota_is_that_of_one_thread(five_cores):
    inside = threading.Barrier(3)

    def work(quota):
        with machine.within(quota):
            inside.wait(10)  # all of them are
            found = engine_threads(), machine.memory() <= GB
            inside.wait(10)
        return found

    quotas = [Quota(threads=1), Quota(threads=2, memory=GB), Quota()]
    with machine.within(Quota(threads=4)), ThreadPoolExecutor(3) as pool:
        small = machine._machine_memory() <= GB
        assert list(pool.map(work, quotas)) == [(1, small), (2, True), (5, small)]
        assert pool.submit(engine_threads).result(10) == 5
        assert engine_threads() == 4


# threads that are not ours ------------------------------------------------------------------------------------


class Library:
    """What threadpoolctl knows of a BLAS."""

    def __init__(self, num_threads):
        self.num_threads = num_threads

    def set_num_threads(self, count):
        self.num_threads = count


@pytest.fixture
def blas(monkeypatch):
    libraries = [Library(8), Library(2)]
    monkeypatch.setattr(machine, "_blas_libraries", lambda _: libraries)
    return lambda: [library.num_threads for library in libraries]


def test_blas_is_limited_for_as_long_as_anyone_wants_it(blas):
    first, second = machine.limited(4), machine.limited(1)
    with first:
        assert blas() == [4, 2]  # never more than before
        second.__enter__()
        assert blas() == [1, 1]
    assert blas() == [1, 1]  # the second goes on, though the first began before
    second.__exit__(None, None, None)
    assert blas() == [8, 2]


def test_many_threads_leave_blas_as_it_was(blas):
    def work(limit):
        with machine.limited(limit):
            assert max(blas()) <= limit

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [1, 2, 3, 4] * 200))
    assert blas() == [8, 2]


def test_no_limit_leaves_blas_alone(blas):
    with machine.limited(None):
        assert blas() == [8, 2]


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_engines_run_within_the_limit(engine, monkeypatch):
    if engine == "torch":
        torch = pytest.importorskip("torch")
        before = torch.get_num_threads()
        torch.set_num_threads(2)
    tac = tacit.compile(examples.abc(), "B", ["A"], engine=engine, threads=1)
    limits, original = [], type(machine._BLAS).limited
    monkeypatch.setattr(type(machine._BLAS), "limited", lambda self, n: limits.append(n) or original(self, n))
    tac.posterior({"A": 0.3})
    made = len(limits)
    tac.posterior({"A": 0.3})
    assert set(limits) == {1}
    assert len(limits) > made > 0
    if engine == "torch":
        assert torch.get_num_threads() == 2
        torch.set_num_threads(before)


def test_torch_is_limited_in_every_thread_and_left_as_it_was():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    inside = threading.Barrier(2)

    def work(limit):
        with machine.limited(limit):
            inside.wait(10)
            seen = torch.get_num_threads()
            inside.wait(10)
        return seen, torch.get_num_threads()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [1, 2])) == [(1, 4), (2, 4)]
    assert torch.get_num_threads() == 4
    torch.set_num_threads(before)


# memory -------------------------------------------------------------------------------------------------------


def test_the_limit_is_half_of_the_memory_of_the_container(monkeypatch):
    net, names = wide()
    monkeypatch.setattr(strategy.Diagrams, "possible", False)  # diagrams would be smaller
    monkeypatch.setattr(contraction, "memory", lambda: 8192.0)
    tacit.compile(net, "C", names)
    monkeypatch.setattr(contraction, "memory", lambda: 8191.0)
    with pytest.raises(TooLargeError, match="too wide to compile"):
        tacit.compile(net, "C", names)


def test_values_that_fit_alone_must_also_fit_together(monkeypatch):
    net, rng = Network(), np.random.default_rng(0)
    net.add("R", cpt=[0.5, 0.5])
    tests = [f"T{i}" for i in range(20)]
    for name in tests:  # their selected tables are all needed at one time
        plus, minus = rng.dirichlet(np.ones(8), (2, 2))
        net.add(name, ["R"], states=8, cpt=tacit.TestingCPT(plus, minus, [0.5, 0.5]))
    cost = tacit.compile(net, "R", ["R", *tests], effort="low").program.cost
    assert cost.live > 10 * cost.peak
    monkeypatch.setattr(contraction, "memory_limit", lambda: 8 * cost.live)
    tacit.compile(net, "R", ["R", *tests], effort="low")
    monkeypatch.setattr(contraction, "memory_limit", lambda: 8 * cost.peak)
    with pytest.raises(TooLargeError, match=r"values of one row that are needed at one time would take .* \(limit"):
        tacit.compile(net, "R", ["R", *tests], effort="low")


def test_marginals_need_no_tape_unless_it_was_asked_for(monkeypatch):
    expected = tacit.compile(examples.abc(), "B", ["A", "C"]).marginals({"A": 0.8})
    monkeypatch.setattr(assemble, "MAX_TERMS", 1)
    for engine in ("numpy", "auto"):
        tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine=engine)
        for name, found in tac.marginals({"A": 0.8}).items():
            np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-12)
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine="tape")
    with pytest.raises(TooLargeError, match="use engine='numpy'"):
        tac.marginals({"A": 0.8})


def test_marginals_keep_the_values_of_few_rows_at_a_time(monkeypatch):
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine="numpy")
    rows = {"A": np.linspace(0.1, 0.9, 50)}
    expected = tac.marginals(rows)
    (companion,) = tac._companions.values()
    monkeypatch.setattr(numpy_engine, "GRADIENT_ELEMENTS", 8 * companion.program.cost.elements)
    tac.set_parameters(tac.network)  # another engine
    blocks, original = [], numpy_engine.NumpyEngine.attempt_gradients

    def counted(self, columns, rows, seeds, through_selection):
        blocks.append(rows)
        return original(self, columns, rows, seeds, through_selection)

    monkeypatch.setattr(numpy_engine.NumpyEngine, "attempt_gradients", counted)
    for name, found in tac.marginals(rows).items():
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-15)
    assert blocks == [8] * 6 + [2]
