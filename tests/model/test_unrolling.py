"""Networks of many steps from a template of two slices."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Mux, Network, NetworkError, NoisyOr
from tacit import semantics as definition
from tests.helpers import ENGINES_OF_MANY, close, decided, impossible, tries
from tests.strategies import evidence, templates

STEPS = 3
UMBRELLA = [[0.9, 0.1], [0.2, 0.8]]


def weather(tie="umbrella", **rain):
    net = Network("weather")
    net.add("Rain[0]", cpt=CPT([0.5, 0.5], **rain))
    net.add("Umbrella[0]", ["Rain[0]"], cpt=CPT(UMBRELLA, tie=tie, **rain))
    net.add("Rain[1]", ["Rain[0]"], cpt=CPT([[0.7, 0.3], [0.3, 0.7]], **rain))
    net.add("Umbrella[1]", ["Rain[1]"], cpt=CPT(UMBRELLA, tie=tie, **rain))
    return net


@tries(60)
@given(template=templates())
def test_steps_are_those_of_the_template(template):
    net = tacit.unroll(template, STEPS)
    names = [name for name in template if not name.endswith("[1]")]
    for t in range(1, STEPS):
        names += [name.replace("[1]", f"[{t}]") for name in template if name.endswith("[1]")]
    assert sorted(net.variables) == sorted(names)
    for name in net:
        t = int((re.findall(r"\[(\d+)\]", name) or [0])[0])
        by = max(t - 1, 0)
        source = re.sub(r"\[\d+\]", f"[{min(t, 1)}]", name)
        later = [p.replace("[1]", f"[{1 + by}]").replace("[0]", f"[{by}]") for p in template.parents(source)]
        assert list(net.parents(name)) == later
        assert net.states(name) == template.states(source)
        if net.cpt(name).testing:
            assert all(map(np.array_equal, net.cpt(name).parts().values(), template.cpt(source).parts().values()))
            assert net.cpt(name).gamma == template.cpt(source).gamma
        else:
            assert np.array_equal(net.table(name), template.table(source))


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@impossible
@tries(40)
@given(template=templates(), data=st.data())
def test_engines_agree_with_the_definition(engine, template, data):
    net = tacit.unroll(template, STEPS)
    columns = data.draw(evidence(net, rows=2))
    query = data.draw(st.sampled_from(net.variables))
    rows = decided(net, columns)
    tac = tacit.compile(net, query, list(columns), engine=engine)
    close(tac.joint(columns)[rows], definition.joint(net, query, columns)[rows])


def test_ties_begin_at_step_1_unless_the_template_ties():
    assert tacit.unroll(weather(), 4).ties == {
        "umbrella": tuple(f"Umbrella[{t}]" for t in range(4)),
        "Rain[1]": ("Rain[1]", "Rain[2]", "Rain[3]"),
    }
    apart = tacit.unroll(weather(tie=None), 3)
    assert apart.ties == {"Rain[1]": ("Rain[1]", "Rain[2]"), "Umbrella[1]": ("Umbrella[1]", "Umbrella[2]")}
    assert tacit.unroll(weather(), 1).variables == ("Rain[0]", "Umbrella[0]")


def test_a_tie_of_the_template_keeps_its_name_to_itself():
    net = weather(tie="Rain[1]")
    assert tacit.unroll(net, 3).ties["Rain[1]'"] == ("Rain[1]", "Rain[2]")


def test_tied_tables_are_not_copied():
    net = tacit.unroll(weather(), 50)
    assert len({id(net.cpt(f"Rain[{t}]").table) for t in range(1, 50)}) == 1


def test_a_copy_begins_at_step_1_with_its_own_inputs():
    net = Network()
    net.add("Which", states=2, cpt=[0.5, 0.5])
    for t in (0, 1):
        net.add(f"A[{t}]", cpt=[0.3, 0.7])
        net.add(f"B[{t}]", [f"A[{t}]"], cpt=NoisyOr({f"A[{t}]": 0.8}, leak=0.1))
    net.add("C[1]", cpt=Mux("Which", ["A[0]", "B[1]"]))
    unrolled = tacit.unroll(net, 4)
    assert [n for n in unrolled if n.startswith("C")] == ["C[1]", "C[2]", "C[3]"]
    assert unrolled.parents("C[3]") == ("Which", "A[2]", "B[3]")
    assert unrolled.cpt("C[3]") == Mux("Which", ["A[2]", "B[3]"])
    assert unrolled.cpt("B[3]").names == ("A[3]",)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"A": []}, "the template has no node X\\[1\\]"),
        ({"A[0]": [], "B[1]": []}, "'A\\[0\\]' has no 'A\\[1\\]'.*call it 'A' if there is only one"),
        ({"A[1]": [], "B": ["A[1]"]}, "'B' is shared by all steps, so 'A\\[1\\]' cannot be its parent"),
        ({"A[1]": [], "A[0]": ["A[1]"]}, "'A\\[0\\]' has the parent 'A\\[1\\]', of a later step"),
        ({"A[1]": [], "A[2]": []}, "'A\\[2\\]': a template has two slices.*'Before\\[1\\]'"),
        ({"A[01]": []}, "'A\\[01\\]': a template has two slices"),
    ],
)
def test_templates_that_make_no_sense(nodes, message):
    net = Network()
    for name, parents in nodes.items():
        net.add(name, parents, cpt=[[0.5, 0.5]] * 2 if parents else [0.5, 0.5])
    with pytest.raises(NetworkError, match=message):
        tacit.unroll(net, 3)


def test_states_are_the_same_in_both_slices():
    net = Network()
    net.add("A[0]", states=["a", "b"], cpt=[0.5, 0.5])
    net.add("A[1]", states=["b", "a"], cpt=[0.5, 0.5])
    with pytest.raises(
        NetworkError, match=r"'A\[0\]' and 'A\[1\]' have different states: \['a', 'b'\] and \['b', 'a'\]"
    ):
        tacit.unroll(net, 2)


def test_a_noisy_or_to_be_learned_is_refused():
    net = Network()
    net.add("A[0]", cpt=[0.5, 0.5])
    net.add("A[1]", ["A[0]"], cpt=NoisyOr([0.5], learn=True))
    with pytest.raises(NetworkError, match=r"'A\[1\]': a noisy-or to be learned cannot be tied"):
        tacit.unroll(net, 2)


@pytest.mark.parametrize("steps", [0, -1, 2.0, "3", None, True])
def test_steps_are_a_number_of_steps(steps):
    with pytest.raises(NetworkError, match="expected a whole number, 1 or more"):
        tacit.unroll(weather(), steps)


def test_only_networks_are_unrolled():
    with pytest.raises(NetworkError, match="unroll takes a network"):
        tacit.unroll({"A[1]": []}, 3)
