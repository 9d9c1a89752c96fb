"""The pictures of the documentation: the paper's figures, made anew, and more.

Writes docs/images/gallery/ and docs/images/discover/, and posteriors.svg, set.svg and doubtful.svg in docs/images/.
Run with: python -m docs.make_images, which needs matplotlib (the extra plot)
and the files inside pgmpy's wheel.
"""

import contextlib
import io
import shutil
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from bench.networks import network
from PIL import Image
from tests.pages import blocks

import tacit
from tacit import drawing, plot, theory
from tacit.views.axes import ACCENT, INK, PALE

PAGES = ("tutorials/table-to-decision.md", "howto/discover.md")  # their own code draws what they show
TARGET = Path(__file__).parent / "images" / "gallery"
DPI = 130
STYLE = {"svg.hashsalt": "tacit", "font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK}


# networks -------------------------------------------------------------------------------------------------


def etq(testing: bool) -> tacit.Network:
    """E -> T -> Q, with jumps that are easy to see."""
    table = [[0.9, 0.1], [0.2, 0.8]]
    test = tacit.TestingCPT([[0.9, 0.1], [0.15, 0.85]], [[0.3, 0.7], [0.75, 0.25]], [0.6, 0.6])
    net = tacit.Network("E-T-Q")
    net.add("E", cpt=[0.4, 0.6])
    net.add("T", ["E"], cpt=test if testing else table)
    net.add("Q", ["T"], cpt=[[0.9, 0.1], [0.15, 0.85]])
    return net


def two_inputs(kind: str) -> tacit.Network:
    """E1 -> T1, E2 -> T2, T1 and T2 -> Q: a smooth surface, one with pieces, or a step."""
    smooth = [[0.95, 0.05], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]
    pieces = (
        tacit.TestingCPT([[0.95, 0.05], [0.3, 0.7]], [[0.4, 0.6], [0.1, 0.9]], [0.6, 0.7]),
        tacit.TestingCPT([[0.1, 0.9], [0.7, 0.3]], [[0.8, 0.2], [0.9, 0.1]], [0.5, 0.75]),
    )
    steps = (_step(0.4), _step(0.6))
    net = tacit.Network("two inputs")
    for i, cpt in enumerate({"smooth": smooth, "pieces": pieces, "step": steps}[kind], start=1):
        net.add(f"E{i}", cpt=[0.5, 0.5])
        net.add(f"T{i}", [f"E{i}"], cpt=cpt)
    net.add("Q", ["T1", "T2"], cpt=[[[0.9, 0.1], [0.55, 0.45]], [[0.3, 0.7], [0.05, 0.95]]])
    return net


def _step(threshold: float) -> tacit.TestingCPT:
    """True from the threshold on, whatever the parent's state is."""
    on, off = [1, 0], [0, 1]
    return tacit.TestingCPT([on, off], [off, on], [threshold, 1 - threshold], test=[">=", ">"])


def below() -> tacit.Network:
    """E1 -> Q -> E2: evidence on E2 is not above the testing node Q."""
    net = tacit.Network("E1-Q-E2")
    net.add("E1", cpt=[0.4, 0.6])
    net.add("Q", ["E1"], cpt=tacit.TestingCPT([[0.9, 0.1], [0.2, 0.8]], [[0.35, 0.65], [0.7, 0.3]], [0.6, 0.6]))
    net.add("E2", ["Q"], cpt=[[0.8, 0.2], [0.3, 0.7]])
    return net


def without_edges(net: tacit.Network) -> tacit.Network:
    """A selected network without the edges from Z, on which nothing depends any more."""
    selected = net.select({"Z": 0.75})
    free = tacit.Network("selected")
    for name in selected:
        parents = [p for p in selected.parents(name) if p != "Z"]
        kept = len(parents) == len(selected.parents(name))
        free.add(name, parents, selected.states(name), selected.cpt(name) if kept else selected.table(name)[0])
    return free


def classical_abc() -> tacit.Network:
    """A -> B, A -> C without a testing node."""
    net = tacit.examples.abc()
    return net.with_cpts({"B": tacit.CPT([[0.9, 0.1], [0.1, 0.9]])})


# pictures -------------------------------------------------------------------------------------------------


def drawings() -> dict[str, tacit.Network | tacit.Circuit]:
    """What `tacit.drawing` draws: networks, testing nodes shaded, and circuits."""
    square = theory.approximate(lambda x: x * x, levels=5)
    wave = theory.approximate(_wave, levels=2, error=0.6)
    abc = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    neuron = theory.from_neural_network([([[2.0, -1.0]], None, "relu")])
    return {
        "fig4a-noisy-or": tacit.examples.noisy_or_classifier(),
        "fig4b-diamond": tacit.examples.diamond(),
        "fig5-network": tacit.examples.abc(),
        "fig5-tac": abc.circuit(fold=False),
        "fig6a-network": square.network,
        "fig6b-circuit": square.circuit(),
        "fig6c-selected": without_edges(square.network),
        "fig8c-network": two_inputs("pieces"),
        "fig9-network": below(),
        "fig12-pieces": wave.network,
        "fig13-ac": tacit.compile(classical_abc(), "B", ["A", "C"]).circuit(fold=False),
        "relu": neuron,
        "simpson-network": tacit.examples.kidney_stones(),
        "simpson-do": tacit.examples.kidney_stones().do({"treatment": "A"}),
    }


def _wave(x: float) -> float:
    """Rises, falls and rises: three monotonic pieces."""
    return 0.5 - 0.4 * float(np.cos(3 * np.pi * x))


def functions() -> plt.Figure:
    """Figure 7: the joint f and the posterior F over one input, for a classical and a testing network."""
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3), sharey=True, layout="constrained")
    for ax, testing in zip(axes, (False, True), strict=True):
        tac = tacit.compile(etq(testing), "Q", ["E"])
        borders = theory.pieces(tac).borders
        for low, high in pairwise([0.0, *borders, 1.0]):
            x = np.linspace(low + 1e-9, high - 1e-9, 100)
            ax.plot(x, tac.joint({"E": x})[:, 0], color=INK, linewidth=1.6, linestyle=(0, (4, 2)))
        plot.curve(tac, ax=ax)
        ax.set(xlabel="λ", ylabel="", title="T is testing" if testing else "T is regular")
    axes[0].plot([], [], color=ACCENT, linewidth=2, label="F = P*(q)")
    axes[0].plot([], [], color=INK, linewidth=1.6, linestyle=(0, (4, 2)), label="f = p*(q)")
    axes[0].legend(frameon=False, loc="upper left")
    return figure


def surfaces() -> plt.Figure:
    """Figures 8a, 8b and 8d: three parametrisations of one structure."""
    figure = plt.figure(figsize=(9.5, 3.3))
    titles = {"smooth": "classical", "pieces": "testing", "step": "testing, a step"}
    for i, (kind, title) in enumerate(titles.items()):
        ax = figure.add_subplot(1, 3, i + 1, projection="3d")
        plot.surface(tacit.compile(two_inputs(kind), "Q", ["E1", "E2"]), ax=ax)
        ax.view_init(elev=28, azim=-125)
        ax.set(xlabel="λ₁", ylabel="λ₂", zlabel="", title=title)
        ax.tick_params(labelsize=7, pad=0)
    figure.subplots_adjust(left=0.03, right=0.99, bottom=0.04, top=0.92, wspace=0.12)
    return figure


def maps() -> plt.Figure:
    """The regions of Figures 8b, 8d and 9."""
    figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.3), layout="constrained")
    for ax, kind in zip(axes, ("pieces", "step"), strict=False):
        plot.regions(tacit.compile(two_inputs(kind), "Q", ["E1", "E2"]), ax=ax)
    plot.regions(tacit.compile(below(), "Q", ["E1", "E2"]), ax=axes[2])
    for ax, title in zip(axes, ("8b, pieces", "8d, a step", "9, E2 below Q"), strict=True):
        ax.images[0].set_interpolation("nearest")
        ax.set(xlabel="λ₁", ylabel="λ₂", title=f"{title}: {ax.get_title()}")
    return figure


def sigmoids() -> plt.Figure:
    """Figure 10: the weight of plus against the posterior of a parent state, for several slopes."""
    figure, ax = plt.subplots(figsize=(4.6, 3), layout="constrained")
    x = np.linspace(0, 1, 300)
    for gamma, color in ((4.0, PALE), (16.0, INK), (64.0, ACCENT)):
        net = tacit.Network()
        net.add("U", cpt=[0.5, 0.5])
        net.add("X", ["U"], cpt=tacit.TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.6, 0.4], gamma=gamma))
        weight = tacit.compile(net, "X", ["U"]).selected({"U": x})["X"].weight[:, 0]
        ax.plot(x, weight, color=color, linewidth=2, label=f"γ = {gamma:g}")
    ax.plot([0, 0.6, 0.6], [0.5, 0.5, 0], color=PALE, linewidth=1, linestyle=(0, (3, 3)))
    ax.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="P*(u)", ylabel="τ, the weight of plus", xticks=[0, 0.6, 1])
    ax.set_xticklabels(["0", "T", "1"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def staircases() -> plt.Figure:
    """Figure 11: a monotonic function, and one of three monotonic pieces."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    plot.staircase(lambda x: x * x, theory.approximate(lambda x: x * x, error=0.1), ax=axes[0])
    plot.staircase(_wave, theory.approximate(_wave, error=0.05), ax=axes[1])
    axes[1].get_legend().remove()  # the same, with 20 levels
    for border in (1 / 3, 2 / 3):
        axes[1].axvline(border, color=PALE, linewidth=1, linestyle=(0, (3, 3)))
    return figure


def simpson() -> plt.Figure:
    """How often patients recover from kidney stones: for each size, as seen in all, and under an intervention."""
    net = tacit.examples.kidney_stones()
    treatments = net.states("treatment")
    rates = {
        "small stones": net.posterior("recovery", {"size": "small", "treatment": treatments}),
        "large stones": net.posterior("recovery", {"size": "large", "treatment": treatments}),
        "all, as treated": net.posterior("recovery", {"treatment": treatments}),
        "all, by do": np.concatenate([net.do({"treatment": t}).posterior("recovery") for t in treatments]),
    }
    figure, ax = plt.subplots(figsize=(7.5, 3), layout="constrained")
    for i, (treatment, color) in enumerate(zip(treatments, (ACCENT, PALE), strict=True)):
        heights = [100 * rate[i, 0] for rate in rates.values()]
        bars = ax.bar(
            np.arange(len(rates)) + 0.36 * (i - 0.5), heights, 0.34, color=color, label=f"treatment {treatment}"
        )
        ax.bar_label(bars, fmt="%.1f%%", padding=2, color=INK, fontsize=9)
    ax.set_xticks(range(len(rates)), rates)
    ax.set(ylim=(0, 104), yticks=[0, 50, 100], yticklabels=["0%", "50%", "100%"], ylabel="recovery")
    ax.tick_params(axis="x", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def tornado() -> plt.Figure:
    """What the posterior of a misplaced tube depends on, in alarm."""
    tac = tacit.compile(network("alarm"), "INTUBATION", ["MINVOL"])
    return plot.tornado(tac.sensitivity({"MINVOL": "LOW"}), state="ESOPHAGEAL", n=8).figure


def answers() -> plt.Figure:
    """Four patients of asia: a bar for each, which the states share."""
    tac = tacit.compile(tacit.examples.asia(), "lung", ["smoke", "xray"])
    rows = {"smoke": ["yes", "yes", "no", "no"], "xray": ["yes", "no", "yes", "no"]}
    return tac.posterior(rows, labels=True).plot().figure


def sure() -> plt.Figure:
    """How sure it is that a pump is worn, as in the how-to about credible intervals."""
    net = tacit.Network("pumps")
    net.add("worn", states=["yes", "no"])
    net.add("noise", ["worn"], states=["loud", "quiet"])
    noise = ["loud"] * 5 + ["quiet"] + ["loud"] * 4 + ["quiet"] * 20
    found = tacit.estimate(net, {"worn": ["yes"] * 6 + ["no"] * 24, "noise": noise}, prior=1.0)
    tac = tacit.compile(found.network, "worn", ["noise"])
    rows = pd.DataFrame({"noise": ["loud", "quiet"]}, index=["loud", "quiet"])
    return tac.credible(rows, found.draws(1000, seed=0)).plot().figure


def reasons() -> plt.Figure:
    """What the findings of a patient of alarm add to the answer."""
    findings = {"MINVOL": "LOW", "EXPCO2": "LOW", "PRESS": "HIGH", "BP": "LOW"}
    tac = tacit.compile(network("alarm"), "INTUBATION", list(findings))
    return tac.explain(findings, state="ESOPHAGEAL").plot().figure


PLACES_IN_TREE = {0: (4.0,), 1: (2.0, 6.0), 2: (1.0, 3.0, 5.0, 7.0), 3: tuple(0.5 + k for k in range(8))}


def mixture() -> plt.Figure:
    """The heat of a compressor for three readings of its shaking, as in the tutorial about sensors."""
    net = tacit.Network()
    net.add("fault", states=["none", "bearing", "leak"], cpt=[0.95, 0.03, 0.02])
    net.add("heat", ["fault"], cpt=tacit.Gaussian(mean=[60, 82, 64], sd=[4, 7, 5]))
    net.add("shaking", ["fault"], cpt=tacit.LogNormal(mean=[0.3, 1.4, 0.5], sd=[0.3, 0.4, 0.3]))
    readings = pd.DataFrame({"shaking": [1.2, 3.1, 6.0]}, index=pd.Index(["1.2", "3.1", "6.0"], name="shaking (mm/s)"))
    fig, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    plot.density(net.posterior("heat", readings), ax=ax)
    ax.set_xlabel("heat (degrees)")
    return fig


def diagram() -> plt.Figure:
    """P(alarm | A, B, C), high if any of the three is true: as a tree with an end for each entry, and as a diagram."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[8, 4.6], layout="constrained")
    tops = (3.0, 2.0, 1.0, 0.0)
    for level, name in enumerate("ABC"):
        for k, x in enumerate(PLACES_IN_TREE[level]):
            for child, style in ((2 * k, "-"), (2 * k + 1, (0, (3, 2)))):
                _edge(left, (x, tops[level]), (PLACES_IN_TREE[level + 1][child], tops[level + 1]), style)
            _inner(left, x, tops[level], name)
    for k, x in enumerate(PLACES_IN_TREE[3]):
        _end(left, x, 0.0, "0.9" if k < 7 else "0.01")
    spine = {"A": (1.5, 3.0), "B": (2.5, 2.0), "C": (3.5, 1.0)}
    high, low = (1.0, 0.0), (4.5, 0.0)
    for (x, y), bend in zip(spine.values(), (0.15, 0.05, 0.0), strict=True):
        _edge(right, (x, y), high, "-", bend)
    for a, b in pairwise([*spine.values(), low]):
        _edge(right, a, b, (0, (3, 2)))
    for name, (x, y) in spine.items():
        _inner(right, x, y, name)
    _end(right, *high, "0.9")
    _end(right, *low, "0.01")
    right.plot([], [], color=INK, linewidth=1.4, label="true")
    right.plot([], [], color=INK, linewidth=1.4, linestyle=(0, (3, 2)), label="false")
    right.legend(frameon=False, loc="upper right")
    left.set(xlim=(-0.1, 8.1), title="a table: 7 nodes, 8 ends")
    right.set(xlim=(0.3, 5.3), title="its diagram: 3 nodes, 2 ends")
    for ax in (left, right):
        ax.set(ylim=(-0.4, 3.45))
        ax.axis("off")
    return figure


def _edge(ax: plt.Axes, start: tuple[float, float], end: tuple[float, float], style: Any, bend: float = 0.0) -> None:
    curve = {"connectionstyle": f"arc3,rad={bend}", "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 1.4, **curve}, zorder=1)


def _inner(ax: plt.Axes, x: float, y: float, name: str) -> None:
    ax.plot(x, y, "o", markersize=22, color="white", markeredgecolor=INK, markeredgewidth=1.4, zorder=2)
    ax.text(x, y, name, ha="center", va="center_baseline", color=INK, fontsize=11)


def _end(ax: plt.Axes, x: float, y: float, number: str) -> None:
    color = ACCENT if number == "0.9" else INK
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": color, "linewidth": 1.4}
    ax.text(x, y, number, ha="center", va="center_baseline", color=color, fontsize=10, bbox=box)


FIGURES: dict[str, Callable[[], Any]] = {
    "fig7-functions.svg": functions,
    "fig8-surfaces.png": surfaces,
    "fig8-fig9-regions.png": maps,
    "fig10-sigmoids.svg": sigmoids,
    "fig11-staircases.png": staircases,
    "simpson.svg": simpson,
    "tornado.svg": tornado,
    "answers.svg": answers,
    "reasons.svg": reasons,
    "sure.svg": sure,
    "mixture.svg": mixture,
    "diagram.svg": diagram,
}


def main() -> None:
    """Make all pictures anew."""
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, what in drawings().items():
        drawing.draw(what).save(TARGET / f"{name}.svg")
    tacit.examples.abc().plot({"C": "lo"}).save(TARGET.parent / "posteriors.svg")
    tacit.examples.abc().plot({"C": "lo"}, do={"B": "true"}, query="A").save(TARGET.parent / "set.svg")
    doubtful = tacit.examples.abc().plot(strength={("A", "B"): 0.6}, undirected=[("A", "C")])
    doubtful.save(TARGET.parent / "doubtful.svg")
    for page in PAGES:
        _draw_as_on(page, TARGET.parent / "discover")
    with plt.rc_context(STYLE):
        for name, make in FIGURES.items():
            _save(make(), TARGET / name)


def _draw_as_on(page: str, target: Path) -> None:
    """The pictures that the code of a page saves."""
    target.mkdir(exist_ok=True)
    namespace: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(page):
            exec(block.code, namespace)
        for picture in Path().glob("*.svg"):
            shutil.copy(picture, target)


def _save(figure: plt.Figure, path: Path) -> None:
    """The same file for the same picture, and a small one: 64 colours are enough."""
    if path.suffix == ".svg":
        figure.savefig(path, metadata={"Date": None})
    else:
        pixels = io.BytesIO()
        figure.savefig(pixels, dpi=DPI)
        Image.open(pixels).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(figure)


if __name__ == "__main__":
    main()
