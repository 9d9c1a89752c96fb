"""`TACModule` under DistributedDataParallel: two processes learn what one learns."""

import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit import TestingCPT

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms import Join  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from tacit.torch import TACModule  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "torch-distributed.md"
PATIENCE = 60  # seconds that anything may take: a machine that is busy needs them, and nothing waits longer
ROWS = 8


# two processes --------------------------------------------------------------------------------------------


def enter(rank, store, seconds=PATIENCE / 2):
    torch.set_num_threads(1)
    where = {"init_method": f"file://{store}", "rank": rank, "world_size": 2}
    dist.init_process_group("gloo", **where, timeout=timedelta(seconds=seconds))


def unpacked(work, rank, packed):
    """Tensors that multiprocessing packs itself are shared: both ranks would write to the same weights."""
    return work(rank, *pickle.loads(packed))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A function that calls another one on both ranks, with the rank first, and gives what they return."""
    store, spawn = tmp_path_factory.mktemp("store") / "file", multiprocessing.get_context("spawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_THREADS", "1")
        with spawn.Pool(1, enter, (0, store)) as first, spawn.Pool(1, enter, (1, store)) as second:

            def call(work, *args):
                packed = pickle.dumps(args)
                waiting = [pool.apply_async(unpacked, (work, i, packed)) for i, pool in enumerate((first, second))]
                try:
                    return [answer.get(PATIENCE) for answer in waiting]
                except BaseException:  # the other rank waits for this one: no later test should
                    first.terminate()
                    second.terminate()
                    raise

            yield call


# what they learn ------------------------------------------------------------------------------------------


def classical():
    net = tacit.Network()
    net.add("A", states=["a", "b", "c"])
    net.add("B", ["A"], cpt=[[0.2, 0.8], [np.nan, np.nan], [0.0, 1.0]])
    net.add("Q", ["A", "B"], states=["l", "m", "h"])
    return net


def selecting(gamma=6.0):
    rng, net = np.random.default_rng(0), tacit.Network()
    net.add("A", states=["a", "b", "c"])
    plus, minus = rng.dirichlet(np.ones(2), (2, 3))
    net.add("B", ["A"], cpt=TestingCPT(plus, minus, [0.3, np.nan, 0.4], [">=", "<", ">"], gamma, learn=True))
    net.add("Q", ["A", "B"], states=["l", "m", "h"], testing=True, gamma=gamma)
    return net


NETWORKS = {"classical": classical, "testing": selecting, "hard tests": lambda: selecting(None)}
kinds = pytest.mark.parametrize("kind", NETWORKS)
engines = pytest.mark.parametrize("engine", ["auto", "torch"])


def module_of(kind, engine="auto", seed=0):
    return TACModule(tacit.compile(NETWORKS[kind](), "Q", ["A", "B"], engine=engine), seed=seed)


def data(rows=ROWS):
    rng = np.random.default_rng(1)
    evidence = {name: torch.tensor(rng.dirichlet(np.ones(k), rows)) for name, k in (("A", 3), ("B", 2))}
    return evidence, torch.tensor(rng.dirichlet(np.ones(3), rows))


def loss_of(model, rows, of=ROWS, ranks=1):
    """The part of some rows in the mean over all of them, times the number of ranks."""
    evidence, wanted = data()
    found = model({name: column[rows] for name, column in evidence.items()})
    return -(wanted[rows] * found.log()).sum() * ranks / of


def half(rank):
    return slice(rank * ROWS // 2, (rank + 1) * ROWS // 2)


def numbers(tensor):
    return tensor.detach().numpy().copy()


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def agree(found, expected):
    """Both ranks have the same bits, and they are what was expected."""
    np.testing.assert_array_equal(found[0], found[1])
    close(found[0], expected)


# gradients and steps --------------------------------------------------------------------------------------


def gradient(rank, module, rows, **options):
    model = DistributedDataParallel(module, **options)
    loss_of(model, rows[rank], ranks=2).backward()
    return numbers(module.weights.grad)


def gradient_as_view(rank, module, rows):
    return gradient(rank, module, rows, gradient_as_bucket_view=True, find_unused_parameters=True)


@kinds
@engines
def test_two_processes_give_the_gradient_of_one(both, kind, engine):
    module = module_of(kind, engine)
    loss_of(module, slice(None)).backward()  # it has run before it is sent
    expected = numbers(module.weights.grad)
    assert abs(expected).max() > 1e-3
    module.weights.grad = None
    agree(both(gradient, module, [half(0), half(1)]), expected)
    agree(both(gradient, module, [slice(0, 7), slice(7, ROWS)]), expected)
    agree(both(gradient_as_view, module, [half(0), half(1)]), expected)


def mean_of_the_half(rank, module):
    model = DistributedDataParallel(module)  # it must live until the gradients are sent
    loss_of(model, half(rank), ROWS // 2).backward()
    return numbers(module.weights.grad)


def test_means_of_equal_halves_make_the_mean(both):
    module = module_of("testing")
    found = both(mean_of_the_half, module)
    loss_of(module, slice(None)).backward()
    agree(found, numbers(module.weights.grad))


def trained(model, rows, ranks=1, steps=5):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, rows, ranks=ranks).backward()
        optimizer.step()


def steps(rank, module):
    trained(DistributedDataParallel(module), half(rank), ranks=2)
    return numbers(module.weights), module.network()


@kinds
@engines
def test_two_processes_learn_what_one_learns(both, kind, engine):
    module = module_of(kind, engine)
    start = numbers(module.weights)
    (first, net), (second, other) = both(steps, module)
    trained(module, slice(None))
    agree((first, second), numbers(module.weights))
    assert abs(first - start).max() > 0.01
    assert net == other


def accumulated(rank, module):
    model = DistributedDataParallel(module)
    for row in range(half(rank).start, half(rank).stop):
        with model.no_sync() if row + 1 < half(rank).stop else nullcontext():
            loss_of(model, slice(row, row + 1), ranks=2).backward()
    return numbers(module.weights.grad)


def test_gradients_of_several_batches_are_added_without_sending_them(both):
    module = module_of("testing")
    found = both(accumulated, module)
    loss_of(module, slice(None)).backward()
    agree(found, numbers(module.weights.grad))


def start(rank, kind):
    module = module_of(kind, seed=rank)
    before = numbers(module.weights)
    module(data()[0])  # an engine that was made before must take the numbers that come
    model = DistributedDataParallel(module)
    return before, numbers(module.weights), numbers(model(data()[0]))


@kinds
def test_all_start_from_the_numbers_of_the_first(both, kind):
    (start0, weights0, found0), (start1, weights1, found1) = both(start, kind)
    assert (start0 != start1).any()
    np.testing.assert_array_equal(weights0, start0)
    np.testing.assert_array_equal(weights1, start0)
    np.testing.assert_array_equal(found0, found1)


# what may differ between ranks ----------------------------------------------------------------------------


def uneven(rank, module, counts):
    model = DistributedDataParallel(module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with Join([model]):
        for i in range(counts[rank]):
            optimizer.zero_grad()
            loss_of(model, slice(2 * i + rank, 2 * i + rank + 1)).backward()
            optimizer.step()
    return numbers(module.weights)


@pytest.mark.parametrize("counts", [(4, 2), (0, 3)])
def test_a_rank_that_has_fewer_batches_joins(both, counts):
    module = module_of("testing")
    found = both(uneven, module, counts)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for i in range(max(counts)):
        optimizer.zero_grad()
        for rank in range(2):
            if i < counts[rank]:
                (loss_of(module, slice(2 * i + rank, 2 * i + rank + 1)) / 2).backward()
        optimizer.step()
    agree(found, numbers(module.weights))


def without_gradient(rank, module, rows):
    model = DistributedDataParallel(module, find_unused_parameters=False)
    for _ in range(2):  # the second waits where the first left a gradient out
        module.weights.grad = None
        model(rows if rank else {})[:, 0].nansum().backward()
    return numbers(module.weights.grad)


@engines
@pytest.mark.parametrize("reason", ["observed", "impossible"])
def test_a_rank_whose_rows_say_nothing_takes_part(both, reason, engine):
    net = tacit.Network()
    net.add("A")
    net.add("K", ["A"], cpt=[[0.0, 1.0], [0.0, 1.0]])
    module = TACModule(tacit.compile(net, "A", ["A", "K"], engine=engine))
    rows = {"observed": {"A": torch.tensor([1.0, 0.0])}, "impossible": {"K": torch.tensor([1.0, 1.0])}}[reason]
    found = both(without_gradient, module, rows)
    (module()[:, 0] / 2).sum().backward()
    assert abs(module.weights.grad).max() > 0.01
    agree(found, numbers(module.weights.grad))


# as a part of other things --------------------------------------------------------------------------------


def perception(engine):
    """A neural network below a query in which everything is known, so that its only tensor is an empty buffer."""
    torch.manual_seed(0)
    layer = TACModule(tacit.compile(tacit.examples.abc().with_gamma(8.0), "B", ["A", "C"], engine=engine))
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sigmoid(), layer).double()


def seen(model, rows):
    x = torch.rand((ROWS, 3), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    model(x[rows])[:, 0].mean().backward()


def perceived(rank, engine):
    model = DistributedDataParallel(perception(engine))
    for _ in range(2):
        model.zero_grad()
        seen(model, half(rank))
    return numbers(model.module[0].weight.grad)


@engines
def test_a_layer_of_knowledge_in_a_larger_model(both, engine):
    model = perception(engine)
    seen(model, slice(None))
    agree(both(perceived, engine), numbers(model[0].weight.grad))


def stored(rank, module, path):
    model = DistributedDataParallel(module)
    trained(model, half(rank), ranks=2, steps=2)
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    again = DistributedDataParallel(module_of("testing", seed=7))
    again.load_state_dict(torch.load(path))
    trained(again, half(rank), ranks=2, steps=2)
    return numbers(again.module.weights)


def test_stored_weights_go_on_in_two_processes_and_in_one(both, tmp_path):
    module, path = module_of("testing"), tmp_path / "weights.pt"
    found = both(stored, module, path)
    trained(module, slice(None), steps=2)
    weights = torch.load(path)["module.weights"]
    close(weights, numbers(module.weights))
    module.load_state_dict({"weights": weights})
    trained(module, slice(None), steps=2)
    agree(found, numbers(module.weights))


def threads(rank, module):
    DistributedDataParallel(module)(data()[0])
    return module._backend().engine.threads


def test_every_process_keeps_to_its_threads(both):
    module = module_of("testing")
    assert both(threads, module) == [1, 1]  # TACIT_THREADS
    wide = TACModule(tacit.compile(selecting(), "Q", ["A", "B"], threads=3))
    assert both(threads, wide) == [3, 3]


# errors ---------------------------------------------------------------------------------------------------


def failing(rank, store, module):
    enter(rank, store, seconds=10 * PATIENCE)
    model = DistributedDataParallel(module)
    sign = -1 if rank else 1
    try:
        model({"A": sign * data()[0]["A"]}).sum().backward()
    except tacit.EvidenceError as error:
        store.with_name("error").write_text(str(error))
        raise


def test_a_rank_that_fails_ends_the_other(tmp_path):
    arguments = tmp_path / "file", module_of("testing")
    processes = torch.multiprocessing.spawn(failing, arguments, 2, join=False)
    try:
        with pytest.raises(torch.multiprocessing.ProcessRaisedException):
            processes.join(PATIENCE)
        assert not any(process.is_alive() for process in processes.processes)
        assert re.match("evidence on 'A', row 0: .* negative", (tmp_path / "error").read_text())
    finally:
        for process in processes.processes:
            process.kill()
            process.join(PATIENCE)


# the page -------------------------------------------------------------------------------------------------


def test_the_page_runs_as_it_stands(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    script, batches = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^```text\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^TACIT_THREADS=1 torchrun (.*) train.py$", text, flags=re.MULTILINE)
    last = "del model  # it holds the group\ndist.destroy_process_group()\n"
    assert script.endswith(last)
    (tmp_path / "train.py").write_text(script.removesuffix(last) + batches + last, encoding="utf-8")
    environment = {**os.environ, "TACIT_THREADS": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *command.split(), "train.py"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as torchrun:  # fmt: skip
        try:
            found, errors = torchrun.communicate(timeout=3 * PATIENCE)
        finally:
            torchrun.terminate()  # it ends its own processes, which a kill would leave behind
    assert torchrun.returncode == 0, errors
    assert found == printed
    assert tacit.load(tmp_path / "trained.json").cpt("Q")
