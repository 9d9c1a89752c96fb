"""The explorer page in a browser: by pointer, by keyboard, by address; what it shows, and that it talks to nobody."""

import contextlib
import csv
import io
import re
from base64 import b64encode
from math import inf
from urllib.parse import quote

import numpy as np
import pytest
from bench.networks import network

import tacit
from tacit import Network, OpenIntervalWarning, TestingCPT, examples, semantics
from tacit.views.edges import EdgeLooks
from tacit.views.page import Captions, html_page, page_html, page_model
from tests.views.page.test_page_engine import gates

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
TABS = ("findings", "weights", "tests", "table", "chart", "explanation", "information", "sensitivity")
ODD = "<script>alert(1)</script>"


def odd():
    """Names that would break a page that takes them for HTML, or for parts of an address."""
    net = Network('<b>"odd"</b> & co')
    net.add(ODD, states=['a"b', "</text><script>", "c&d=1,2"], cpt=[0.2, 0.3, 0.5])
    net.add("x = y, z", [ODD], ["it's", "<img src=x onerror=alert(1)>"], cpt=[[0.5, 0.5], [0.1, 0.9], [0.3, 0.7]])
    net.add(
        "a very long name " * 5, ["x = y, z"], ["an equally long label of a state", "%41"], cpt=[[0.5, 0.5], [0.1, 0.9]]
    )
    return net


def unprintable():
    """Names with characters that no XML can hold, and one that UTF-8 cannot."""
    net = Network("bell \x07")
    net.add("nul \x00", states=["tab \x0b", "end \uffff"], cpt=[0.2, 0.8])
    net.add("half \ud800", ["nul \x00"], cpt=[[0.5, 0.5], [0.1, 0.9]])
    return net


def clinic():
    """Two interval variables, one of them with open ends."""
    net = Network("clinic")
    net.add("Age", bins=[0, 18, 65, 120], cpt=[0.2, 0.6, 0.2])
    net.add("Ill", ["Age"], cpt=[[0.05, 0.95], [0.1, 0.9], [0.4, 0.6]])
    net.add("Heat", ["Ill"], bins=[-inf, 36, 37.5, inf], cpt=[[0.1, 0.2, 0.7], [0.2, 0.7, 0.1]])
    return net


def steep():
    """If A is no news, T = false has a probability of exp(-30000)."""
    net = Network("steep")
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.1, 0.2], gamma=1e5))
    return net


def numbered():
    """Thirty states that were sorted as text, of which a few are probable."""
    net = Network("wards")
    weights = np.array([1.0] * 18 + [50.0] + [1.0] * 11)
    net.add("Ward", states=sorted(map(str, range(1, 31))), cpt=weights / weights.sum())
    net.add("Ill", ["Ward"], states=["yes", "no"], cpt=[[0.1, 0.9]] * 29 + [[0.9, 0.1]])
    return net


NETWORKS = {
    "abc": examples.abc,
    "asia": lambda: network("asia"),
    "alarm": lambda: network("alarm"),
    "andes": lambda: network("andes"),
    "clinic": clinic,
    "insurance": lambda: network("insurance"),
    "wards": numbered,
    "win95pts": lambda: network("win95pts"),
    "odd": odd,
    "steep": steep,
    "unprintable": unprintable,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page of a network, as the address of a file; made once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def page(name):
        if name not in made:
            made[name] = folder / f"{name}.html"
            made[name].write_text(page_html(NETWORKS[name]()), encoding="utf-8")
        return made[name].as_uri()

    return page


@pytest.fixture
def opened(browser, pages):
    """Open a page; at the end, no script has failed and nothing has been asked for but the page."""
    contexts, problems = [], []

    def opening(name, fragment="", viewport=DESKTOP, **options):
        context = browser.new_context(viewport=viewport, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        address = pages(name) if name in NETWORKS else name
        page.on(
            "request",
            lambda r: (
                None if r.url.split("#")[0] == address or r.url[:5] in ("blob:", "data:") else problems.append(r.url)
            ),
        )
        page.goto(f"{address}#{fragment}" if fragment else address)
        until(page, "window.explorer?.ready")
        return page

    yield opening
    for context in contexts:
        context.close()
    assert problems == []


def evidence(page):
    """Evidence by name."""
    names = page.evaluate("JSON.parse(document.getElementById('model').textContent).variables.map(v => v.name)")
    return {name: found for name, found in zip(names, page.evaluate("explorer.evidence()"), strict=True) if found}


def until(page, expression):
    """Wait for it. Playwright's own way evaluates text inside the page, which the page forbids."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never true: {expression}")


def copied(page):
    """What *Copy as text* copies."""
    page.evaluate("navigator.clipboard.writeText = (text) => ((window.copied = text), Promise.resolve())")
    page.click("text=Copy as text")
    return page.evaluate("window.copied")


def number(net, name):
    return net.variables.index(name)


def state(i, k):
    return f"#map .state[data-variable='{i}'][data-state='{k}']"


# pointer ----------------------------------------------------------------------------------------------------


def test_a_click_observes_and_another_clears(opened):
    page = opened("asia")
    net = network("asia")
    i = number(net, "xray")
    page.click(state(i, 0))
    assert evidence(page) == {"xray": [1, 0]}
    row = page.locator(state(i, 0))
    assert row.get_attribute("aria-pressed") == "true"
    assert row.get_attribute("aria-label") == "xray: yes, 100.0 percent, observed"
    expected = semantics.posterior(net, "lung", {"xray": "yes"})[0]
    k = number(net, "lung")
    assert page.locator(state(k, 0)).locator(".number").text_content() == f"{100 * expected[0]:.1f}%"
    page.click(state(i, 1))
    assert evidence(page) == {"xray": [0, 1]}
    page.click(state(i, 1))
    assert evidence(page) == {}


def test_dragging_a_bar_is_soft_evidence_and_one_step_back(opened):
    page = opened("alarm")
    i = number(network("alarm"), "CVP")
    track = page.locator(state(i, 1)).locator(".track").bounding_box()
    x, y = track["x"], track["y"] + track["height"] / 2
    page.mouse.move(x + 5, y)
    page.mouse.down()
    for share in (0.2, 0.4, 0.6):
        page.mouse.move(x + share * track["width"], y)
    page.mouse.up()
    found = evidence(page)["CVP"]
    assert found[1] == pytest.approx(0.6, abs=0.05)
    assert found[0] == pytest.approx(found[2]) == pytest.approx((1 - found[1]) / 2)
    box = page.locator(f"[data-box='{i}']")
    assert "soft" in box.get_attribute("class")
    assert re.search(r"soft evidence, likelihood 0\.\d+", page.locator(state(i, 0)).get_attribute("aria-label"))
    page.click("#undo")
    assert evidence(page) == {}


def test_dragging_elsewhere_moves_the_map_and_observes_nothing(opened):
    page = opened("asia")
    label = page.locator(state(0, 0)).locator(".label")
    before = label.bounding_box()
    page.mouse.move(before["x"] + 3, before["y"] + 3)
    page.mouse.down()
    page.mouse.move(before["x"] + 33, before["y"] + 23, steps=4)
    page.mouse.up()
    after = label.bounding_box()
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((30, 20), abs=8)
    assert evidence(page) == {}


def test_a_contradiction_is_said_and_can_be_undone(opened):
    page = opened("asia", "tub=yes&either=no")
    assert "probability 0" in page.inner_text("#problem")
    assert page.locator(state(0, 0)).get_attribute("aria-label").endswith("impossible, not observed")
    page.click("#clear")
    assert page.is_hidden("#problem")
    net = network("asia")
    page.click(state(number(net, "tub"), 0))
    page.click(state(number(net, "either"), 1))
    page.click("#problem button")
    assert evidence(page) == {"tub": [1, 0]}
    assert page.is_hidden("#problem")


def test_findings_beyond_floats_are_answered_but_for_derivatives_through_tests(opened):
    page = opened("steep", "T=false&query=A")
    assert page.is_hidden("#problem")
    np.testing.assert_allclose(page.evaluate("explorer.posteriors()[0]"), [0.0, 1.0], atol=1e-12)
    page.click("#tab-sensitivity")
    until(page, "document.getElementById('panel-sensitivity').textContent.includes('so improbable')")


def test_tests_flip_with_the_evidence(opened):
    page = opened("abc")
    held = "[...document.querySelectorAll('.box .gauge')].map((gauge) => gauge.classList.contains('holds'))"
    assert page.evaluate(held) == [False, True]
    page.click(state(0, 0))
    assert page.evaluate(held) == [True, False]
    page.click("#tab-tests")
    assert page.locator(".panel-tests .gauge").count() == 2
    assert "holds" in page.inner_text(".panel-tests")
    page.click("#observe")
    page.click(state(1, 0), modifiers=["Shift"])  # what is set is not tested
    assert "set, so its tests do not count" in page.inner_text(".panel-tests")
    assert page.locator(".gauge:visible").count() == 0


def test_zoom_folds_boxes_and_a_click_opens_one(opened):
    page = opened("win95pts")
    for _ in range(4):
        page.click("#zoom-out")
    page.click("#fit")
    scale = "new DOMMatrix(getComputedStyle(document.querySelector('.scene')).transform).a"
    fitted = page.evaluate(scale)
    page.mouse.move(500, 500)
    page.mouse.wheel(0, -400)
    assert page.evaluate(scale) > fitted
    page.set_viewport_size({"width": 900, "height": 500})
    page.click("#fit")
    assert "far-off" in page.get_attribute(".network", "class")
    page.locator("[data-box='30'] .frame").click(force=True)
    assert "far-off" not in page.get_attribute(".network", "class")
    assert evidence(page) == {}


# keyboard ---------------------------------------------------------------------------------------------------


def test_everything_by_keyboard(opened):
    page = opened("asia")
    net = network("asia")
    focused = "[document.activeElement.dataset.variable, document.activeElement.dataset.state].map(Number)"
    page.keyboard.press("/")
    page.keyboard.type("xra")
    page.keyboard.press("Enter")
    i = number(net, "xray")
    assert page.evaluate(focused) == [i, 0]
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == [i, 1]
    page.keyboard.press("Space")
    assert evidence(page) == {"xray": [0, 1]}
    page.keyboard.press("Enter")
    assert evidence(page) == {}
    page.keyboard.press("+")
    assert evidence(page)["xray"] == pytest.approx([0.45, 0.55])
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert evidence(page)["xray"] == pytest.approx([0.55, 0.45])
    page.keyboard.press("Escape")
    assert evidence(page) == {}
    page.keyboard.press("Control+z")
    assert evidence(page)["xray"] == pytest.approx([0.55, 0.45])
    page.keyboard.press("Control+Shift+z")
    assert evidence(page) == {}
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # the name
    page.keyboard.press("Enter")
    assert page.input_value("#query") == str(i)
    page.keyboard.press("ArrowUp")  # a box above
    assert page.evaluate(focused)[0] != i
    above = page.evaluate(focused)[0]
    page.keyboard.press("q")
    assert page.input_value("#query") == str(above)
    page.keyboard.press("?")
    assert page.is_visible("#manual")
    page.keyboard.press("Escape")
    assert page.is_hidden("#manual")


def test_tab_visits_every_box_once(opened):
    page = opened("abc")
    page.focus("#help")
    visited = []
    for _ in range(3):
        page.keyboard.press("Tab")
        visited.append(page.evaluate("document.activeElement.dataset.variable"))
    assert sorted(visited) == ["0", "1", "2"]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#side') !== null")


def test_arrows_walk_through_the_whole_map(opened):
    page = opened("alarm")
    page.focus(state(number(network("alarm"), "INTUBATION"), 0))
    for _ in range(37):
        page.keyboard.press("ArrowLeft")  # to the first box
    seen = set()
    for _ in range(37):
        seen.add(page.evaluate("document.activeElement.dataset.variable"))
        page.keyboard.press("ArrowRight")
    assert len(seen) == 37


def test_changes_are_said_aloud(opened):
    page = opened("abc")
    page.click(state(0, 0))
    until(page, "document.getElementById('said').textContent.includes('test')")
    assert re.match(r"B: \w+ \d+\.\d percent\. \d tests? flipped\.", page.text_content("#said"))


# address ----------------------------------------------------------------------------------------------------


def test_the_address_restores_and_follows_the_evidence(opened):
    page = opened("alarm", "CVP=LOW&HR=0.2,0.5,0.3")
    assert evidence(page) == {"CVP": [1, 0, 0], "HR": [0.2, 0.5, 0.3]}
    page.evaluate("location.hash = '#BP=HIGH'")
    until(page, "explorer.evidence().filter(x => x).length === 1")
    assert evidence(page) == {"BP": [0, 0, 1]}
    page.click(state(number(network("alarm"), "CVP"), 0))
    until(page, "location.hash === '#CVP=LOW&BP=HIGH'")
    page.click("#clear")
    until(page, "location.hash === ''")


def test_the_address_holds_the_query(opened):
    page = opened("alarm", "CVP=LOW&query=CO")
    asked = "document.getElementById('query').selectedOptions[0].textContent"
    assert page.evaluate(asked) == "CO"
    assert evidence(page) == {"CVP": [1, 0, 0]}
    page.select_option("#query", label="HR")
    until(page, "location.hash === '#CVP=LOW&query=HR'")
    page.fill("#panel-findings textarea", "#query=CO&BP=LOW")
    page.click("text=Observe these")
    assert page.evaluate(asked) == "CO"
    until(page, "location.hash === '#BP=LOW&query=CO'")


def test_an_address_that_cannot_be_read_is_told_and_the_rest_used(opened):
    page = opened("asia", "xray=yes&nothing=yes&lung=perhaps&tub=0.1,0.2,0.3")
    assert evidence(page) == {"xray": [1, 0]}
    text = page.inner_text("#problem")
    assert "no variable “nothing”" in text
    assert "“perhaps” is not a state of lung (yes, no)" in text
    assert "“0.1,0.2,0.3” is not a state of tub" in text


def test_findings_as_text_come_back(opened):
    page = opened("odd", f"{quote(ODD, safe='')}={quote('c&d=1,2', safe='')}&{quote('x = y, z', safe='')}=0.25,0.75")
    expected = {ODD: [0, 0, 1], "x = y, z": [0.25, 0.75]}
    assert evidence(page) == expected
    text = copied(page)
    assert text == f"{ODD} = c&d=1,2\nx = y, z = 0.25, 0.75"
    page.click("#clear")
    page.fill("#panel-findings textarea", text)
    page.click("text=Observe these")
    assert evidence(page) == expected
    until(page, "location.hash.length > 1")
    link = page.evaluate("location.href")
    page.click("#clear")
    page.fill("#panel-findings textarea", link)
    page.click("text=Observe these")
    assert evidence(page) == expected


READ = """(text) => {
  const model = JSON.parse(document.getElementById("model").textContent);
  const { evidence, problems } = fromText(model, text);
  return [Object.fromEntries(findingsIn(evidence).map((i) => [model.variables[i].name, evidence[i]])), problems];
}"""


def test_findings_are_read_in_many_forms(opened):
    page = opened("alarm")
    both = {"CVP": [0, 0, 1], "HR": [1, 0, 0]}
    for text in (
        "{'CVP': 'HIGH', 'HR': 'LOW'}",
        '{"CVP": "high", "HR": [1, 0, 0]}',
        'evidence = {\n  "CVP": "HIGH",\n  "HR": "LOW",\n}',
        "CVP: HIGH\nhr: low",
        "CVP   HIGH\nHR    LOW",
        '[{"CVP": "HIGH", "HR": "LOW"}]',
        "CVP = HIGH, HR = LOW",
        "HR = 1, 0, 0, CVP: High",
        "CVP\tHIGH\nHR\tLOW",
        "CVP,BP,HR\nHIGH,,low\n",
        "CVP\tHR\r\nHIGH\tLOW",
        '"CVP";"HR"\n"HIGH";"LOW"',
        "CVP=HIGH&HR=LOW",
        "https://example.org/alarm.html#CVP=HIGH&HR=LOW",
    ):
        assert page.evaluate(READ, text) == [both, []], text
    unknown, wrong = "This network has no variable “XY”.", "“so so” is not a state of HR (LOW, NORMAL, HIGH)"
    for text in ("{'CVP': 'HIGH', 'XY': 1, 'HR': 'so so'}", "CVP,XY,HR\nHIGH,1,so so", "CVP: HIGH, XY: 1, HR: so so"):
        found, problems = page.evaluate(READ, text)
        assert found == {"CVP": [0, 0, 1]}
        assert problems[0] == unknown
        assert problems[1].startswith(wrong)
    assert page.evaluate(READ, "CVP pressure = LOW")[1] == ["This network has no variable “CVP pressure”."]
    assert page.evaluate(READ, "{'CVP': 'HIGH', ?}")[1] == ["“?” is not of the form NAME = STATE."]


def test_names_with_markup_are_only_text(opened):
    page = opened("odd")
    assert page.title() == '<b>"odd"</b> & co'
    assert page.inner_text("h1") == '<b>"odd"</b> & co'
    assert page.locator("[data-box='0'] .title text").text_content() == ODD
    assert page.locator("main img, main b, svg script").count() == 0
    for tab in page.locator("[role=tab]").all():
        tab.click()
    page.fill("#search", "<")
    assert page.locator("#found [data-found]").count() == 2


# interventions ----------------------------------------------------------------------------------------------


def test_a_state_is_set_by_shift_by_a_button_and_by_keys(opened):
    page, net = opened("asia"), network("asia")
    i, smoke = number(net, "either"), number(net, "smoke")
    before = page.locator(state(smoke, 0)).locator(".number").text_content()
    page.click(state(i, 0), modifiers=["Shift"])
    assert evidence(page) == {"either": {"do": 0}}
    assert page.locator(state(smoke, 0)).locator(".number").text_content() == before  # nothing is learned of causes
    expected = semantics.posterior(net.do({"either": "yes"}), "xray", {})[0]
    shown = page.locator(state(number(net, "xray"), 0)).locator(".number").text_content()
    assert shown == f"{100 * expected[0]:.1f}%"
    assert page.locator(state(i, 0)).get_attribute("aria-label") == "either: yes, 100.0 percent, set"
    assert page.locator(".edge.cut").count() == 2
    assert page.locator(f"[data-box='{i}'] .lid").is_visible()
    page.click(state(i, 0))  # observed instead
    assert evidence(page) == {"either": [1, 0]}
    assert page.locator(".edge.cut").count() == 0
    page.click("#set")
    page.click(state(i, 1))
    assert evidence(page) == {"either": {"do": 1}}
    page.click(state(i, 1))
    assert evidence(page) == {}
    page.keyboard.press("d")
    assert page.get_attribute("#observe", "aria-pressed") == "true"
    page.focus(state(i, 1))
    page.keyboard.press("Shift+Enter")
    assert evidence(page) == {"either": {"do": 1}}
    page.click("#undo")
    assert evidence(page) == {}


def test_what_is_set_is_in_the_address_the_text_and_the_table(opened):
    page = opened("alarm", "do(CATECHOL)=HIGH&SAO2=LOW")
    assert evidence(page) == {"CATECHOL": {"do": 1}, "SAO2": [1, 0, 0]}
    assert "set to HIGH" in page.inner_text("#panel-findings")
    assert "p(findings | what is set) = " in page.inner_text("#panel-findings")
    text = copied(page)
    assert sorted(text.split("\n")) == ["SAO2 = LOW", "do(CATECHOL) = HIGH"]
    with page.expect_download() as download:
        page.click("text=Posteriors as CSV")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert [(row["likelihood"], row["set"]) for row in rows if row["variable"] == "CATECHOL"] == [
        ("", "no"),
        ("", "yes"),
    ]
    page.click("#clear")
    until(page, "location.hash === ''")
    page.fill("#panel-findings textarea", text)
    page.click("text=Observe these")
    assert evidence(page) == {"CATECHOL": {"do": 1}, "SAO2": [1, 0, 0]}
    until(page, "location.hash.includes('do(CATECHOL)=HIGH')")
    page.fill("#panel-findings textarea", "do(CATECHOL) = 0.5, 0.5")
    page.click("text=Observe these")
    assert "“0.5, 0.5” is not a state of CATECHOL (NORMAL, HIGH)." in page.inner_text(".told")


def test_panels_answer_for_what_is_set(opened):
    page, net = opened("alarm", "do(CATECHOL)=HIGH"), network("alarm").do({"CATECHOL": "HIGH"})
    page.select_option("#query", label="CATECHOL")
    page.click("#tab-table")
    assert "is set, so this table does not count" in page.inner_text("#panel-table")
    page.select_option("#query", label="HR")
    page.click("#tab-explanation")
    best = tacit.compile(net, None, evidence=[]).mpe({})
    title = page.get_attribute("#panel-explanation b", "title")
    assert f"= {best.log_probability[0]:.5g} ".replace("-", "−") in title
    page.click("text=Observe all of it")
    assert evidence(page)["CATECHOL"] == {"do": 1}
    page.click("#undo")
    page.click("#tab-chart")
    until(page, "document.querySelector('#panel-chart .line') !== null")
    inputs = page.locator("#panel-chart select[aria-label='Input'] option").all_text_contents()
    assert "CATECHOL" not in inputs


def test_a_variable_that_cannot_be_set_is_said_to_be(opened):
    net = Network("below", selection="general")
    net.add("A", cpt=[0.4, 0.6])
    net.add("T", ["A"], cpt=TestingCPT([[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]], [0.5, 0.6]))
    net.add("B", ["T", "A"], cpt=np.full((2, 2, 2), 0.5))
    page = opened("data:text/html;base64," + b64encode(page_html(net).encode()).decode())
    page.click(state(2, 0), modifiers=["Shift"])
    assert evidence(page) == {}
    assert "cannot set B, since testing nodes would see other evidence" in page.inner_text("#problem")
    page.click(state(1, 0), modifiers=["Shift"])
    assert evidence(page) == {"T": {"do": 0}}
    assert page.is_hidden("#problem")


# numbers ----------------------------------------------------------------------------------------------------


def typed(page, text):
    """Type a number for the query, and return what the page says."""
    page.fill(".query .number-field input", text)
    page.keyboard.press("Enter")
    return page.inner_text(".query .number-field .told")


def test_a_number_is_typed_for_an_interval_variable(opened):
    page, net = opened("clinic", "query=Age"), clinic()
    for text in ("0", "18", "64.99", "65", " 120 ", "1e2"):
        (k,) = np.flatnonzero(semantics.posterior(net, "Age", {"Age": float(text)})[0])
        assert typed(page, text) == f"{text.strip()} is in {('0 – 18', '18 – 65', '65 – 120')[k]}."
        assert evidence(page) == {"Age": [float(k == own) for own in range(3)]}
    assert typed(page, "120.5") == "120.5 is out of range. Type a number from 0 to 120."
    assert typed(page, "3,5") == "“3,5” is not a number. Write it with a point, as in 2.5."
    assert typed(page, "") == "Type a number from 0 to 120."
    assert page.get_attribute(".query .number-field input", "aria-invalid") == "true"
    assert page.is_hidden(".query .number-field p >> nth=0")  # the mean
    assert page.inner_text("#panel-findings li span") == "1e2 (65 – 120)"
    assert copied(page) == "Age = 1e2"
    page.click("#set")
    typed(page, "30")
    assert evidence(page) == {"Age": {"do": 1}}
    page.click("#clear")
    assert page.input_value(".query .number-field input") == ""


def test_a_number_is_read_from_an_address_and_from_text(opened):
    page = opened("clinic", "Age=64&Heat=-1e3&Ill=0.25")
    assert evidence(page) == {"Age": [0, 1, 0], "Ill": [0.25, 0.75], "Heat": [1, 0, 0]}
    page.fill("#panel-findings textarea", "Age = 130\nHeat = 37.5")
    page.click("text=Observe these")
    said = page.inner_text(".carry .told")
    assert said == "Age: 130 is out of range. Type a number from 0 to 120. Nothing was changed."
    assert evidence(page) == {"Age": [0, 1, 0], "Ill": [0.25, 0.75], "Heat": [1, 0, 0]}


def test_a_number_is_typed_without_changing_the_query(opened):
    page = opened("clinic", "query=Ill")
    entry = page.locator("#panel-findings .number-entry")
    entry.locator("input").fill("70")
    page.keyboard.press("Enter")
    assert evidence(page) == {"Age": [0, 0, 1]}
    entry.locator("select").select_option(label="Heat")
    entry.locator("input").fill("37")
    page.keyboard.press("Enter")
    assert evidence(page) == {"Age": [0, 0, 1], "Heat": [0, 1, 0]}
    assert entry.locator(".told").inner_text() == "37 is in 36 – 37.5."
    assert copied(page) == "Age = 70\nHeat = 37"
    page.click(state(0, 1))
    assert entry.locator("select option:checked").inner_text() == "Age"  # it follows what was observed last
    assert page.input_value("#panel-findings .number-entry input") == ""
    assert page.locator("#query option:checked").inner_text() == "Ill"
    assert opened("alarm").locator(".number-entry:visible").count() == 0


def test_intervals_are_shown_in_few_words_and_keep_their_names(opened):
    page, fields = opened("clinic", "Age=30&query=Heat"), ".query .number-field input"
    assert page.locator(".query .state .label").all_text_contents() == ["< 36", "36 – 37.5", "≥ 37.5"]
    assert page.get_attribute(fields, "placeholder") == "a number"
    assert typed(page, "38") == "38 is ≥ 37.5."
    assert copied(page) == "Age = 30\nHeat = 38"
    page.click(state(2, 0))
    assert copied(page) == "Age = 30\nHeat = (-inf, 36)"
    until(page, "decodeURIComponent(location.hash).includes('Heat=(-inf, 36)')")
    assert page.evaluate(READ, "Heat = ≥ 37.5")[0] == {"Heat": [0, 0, 1]}  # what is shown is read, too
    page.click("#tab-weights")
    assert page.locator(".weights .link").first.inner_text() == "Age = 30 (18 – 65)"
    page.select_option("#query", label="Ill")
    until(page, "document.querySelectorAll('.weights .link').length === 2")
    assert "Heat < 36" in page.locator(".weights .link").all_inner_texts()
    page.select_option("#query", label="Age")
    assert page.get_attribute(fields, "placeholder") == "a number from 0 to 120"


def test_the_mean_of_an_interval_variable_is_that_of_python(opened):
    net, evident = clinic(), {"Heat": 38.0}
    page = opened("clinic", "Heat=38")
    for name in ("Age", "Heat"):
        given = {} if name == "Heat" else evident
        with contextlib.nullcontext() if name == "Age" else pytest.warns(OpenIntervalWarning):
            expected = tacit.compile(net, name, evidence=list(given)).mean(given)[0]
        if not given:
            page.click("#clear")
        asked = f"meanOf(edgesOf(model.variables[{number(net, name)}]), explorer.posteriors()[{number(net, name)}])"
        found = page.evaluate(f"(model => {asked})(JSON.parse(document.getElementById('model').textContent))")
        assert found == pytest.approx(expected, abs=1e-12)
        page.select_option("#query", label=name)
        shown = page.inner_text(".query .number-field p >> nth=0")
        assert shown.startswith(f"mean {expected:.4g}")
        assert ("(below 36 counts as 36, above 37.5 counts as 37.5)" in shown) == (name == "Heat")


def test_a_number_is_typed_on_a_phone(opened):
    page = opened("clinic", viewport=PHONE, has_touch=True)
    page.fill(".card[data-card='0'] input", "70")
    page.click(".card[data-card='0'] button[type=submit]")
    assert evidence(page) == {"Age": [0, 0, 1]}


# search, panels, downloads ----------------------------------------------------------------------------------


def test_search_lists_and_jumps(opened):
    page = opened("win95pts")
    page.fill("#search", "prtdata")
    assert page.locator("#found [data-found]").first.text_content().startswith("PrtData")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#search", "aria-activedescendant") == "found-1"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.variable") == str(number(network("win95pts"), "PrtDataOut"))
    page.fill("#search", "nothing like it")
    assert "No variable has such a name" in page.inner_text("#found")
    page.keyboard.press("Escape")
    assert page.is_hidden("#found")


def test_panels_show_what_they_promise(opened):
    page = opened("alarm", "CVP=LOW&EXPCO2=HIGH")
    log = tacit.compile(network("alarm"), "BP", ["CVP", "EXPCO2"]).log_evidence({"CVP": "LOW", "EXPCO2": "HIGH"})[0]
    p = np.exp(log)
    assert f"p(findings) = {p:.3g} (1 in {float(f'{1 / p:.3g}'):,.0f})" in page.inner_text("#panel-findings")
    assert f"log p(findings) = {log:.5g} ".replace("-", "−") in page.get_attribute(".likely b", "title")
    page.click("#tab-explanation")
    assert page.locator("#panel-explanation tbody tr").count() == 37
    assert page.locator("#panel-explanation tr.hard").count() == 2
    page.click("#tab-information")
    amounts = [float(text) for text in page.locator(".ranking .number").all_text_contents()]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts
    page.click("#tab-sensitivity")
    assert page.locator(".tornado li").count() == 10
    assert page.locator(".tornado .number").first.inner_text() == widest_range(network("alarm"), "BP", "LOW")
    page.locator(".tornado .link").first.click()
    assert page.evaluate("document.activeElement.closest('[data-box]') !== null")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_bars_of_the_sensitivity_can_be_compared(opened, viewport):
    page = opened("alarm", "HISTORY=TRUE&CVP=HIGH&query=LVFAILURE", viewport=viewport)
    if viewport is PHONE:
        page.click(".views [data-view=panels]")
    page.click("#tab-sensitivity")
    until(page, "document.querySelectorAll('.tornado:not(.weights) li').length > 1")
    tracks = [track.bounding_box() for track in page.locator(".tornado:not(.weights) .track").all()]
    assert len({(box["x"], box["width"]) for box in tracks}) == 1
    inside = "[...document.querySelectorAll('.tornado .number')].every(own => own.scrollWidth <= own.clientWidth)"
    assert page.evaluate(inside)
    assert page.evaluate("textWidth('<0.1% to >99.9%', 13)") <= 124


def test_why_shows_what_each_finding_changes(opened):
    page, net = opened("alarm", "CVP=HIGH&HRBP=LOW&EXPCO2=HIGH&query=HYPOVOLEMIA"), network("alarm")
    row = {"CVP": "HIGH", "HRBP": "LOW", "EXPCO2": "HIGH"}
    rests = {name: {own: row[own] for own in row if own != name} for name in row}
    now, none = (net.posterior("HYPOVOLEMIA", own)[0][0] for own in (row, {}))
    changes = {name: 100 * (now - net.posterior("HYPOVOLEMIA", rest)[0][0]) for name, rest in rests.items()}
    page.click("#tab-weights")
    text = page.inner_text("#panel-weights")
    assert f"is {100 * now:.1f}%, the most probable state. Without any finding it would be {100 * none:.1f}%." in text
    lines = page.locator(".weights li").all()
    expected = sorted(changes, key=lambda name: -abs(changes[name]))
    assert [line.locator(".link").inner_text() for line in lines] == [f"{name} = {row[name]}" for name in expected]
    assert [line.locator(".number").last.inner_text() for line in lines] == [
        f"{'+' if round(changes[name], 1) > 0 else ''}{changes[name]:.1f}".replace("-0.0", "0.0").replace("-", "−")
        for name in expected
    ]
    page.select_option("#panel-weights select[aria-label='Unit']", label="log-odds")
    rest = net.posterior("HYPOVOLEMIA", rests["CVP"])[0][0]
    odds = np.log(now / (1 - now)) - np.log(rest / (1 - rest))
    assert page.locator(".weights li").first.locator(".number").last.inner_text() == f"{odds:+.2f}"
    page.click("#clear")
    until(page, "document.getElementById('panel-weights').textContent.includes('Nothing is observed')")


def test_a_finding_that_settles_the_query_weighs_infinitely(opened):
    page = opened("asia", "tub=yes&query=either")
    page.click("#tab-weights")
    page.select_option("#panel-weights select[aria-label='Unit']", label="log-odds")
    assert page.locator(".weights .number").last.inner_text() == "+∞"


def widest_range(net, query, state):
    """What becomes of a posterior if the most important number of the network is lowered and raised by 0.1."""
    tac = tacit.compile(net, query, evidence=["CVP", "EXPCO2"])
    found = tac.sensitivity({"CVP": "LOW", "EXPCO2": "HIGH"})
    ranges = []
    for entry in found.entries(state=state)[:60]:
        moved = [max(entry.value - 0.1, 0.0), min(entry.value + 0.1, 1.0)]
        if 0 < entry.value < 1:
            ranges.append(sorted(found.changed(0, found.state(state=state), entry[:2], entry.place, np.array(moved))))
    low, high = max(ranges, key=lambda ends: ends[1] - ends[0])
    return f"{100 * low:.1f}% to {100 * high:.1f}%"


def shown_table(page, which=0):
    """The cells of a table as they are shown, line by line."""
    lines = page.locator("#panel-table table").nth(which).locator("tbody tr").all()
    return [line.locator("th, td").all_text_contents() for line in lines]


def test_a_table_shows_the_cpt_of_the_query(opened):
    page, net = opened("alarm"), network("alarm")
    page.select_option("#query", label="CO")
    page.click("#tab-table")
    assert "P(CO | HR, STROKEVOLUME)" in page.inner_text("#panel-table")
    assert "9 rows of 3 numbers." in page.inner_text("#panel-table")
    found, table = shown_table(page), net.table("CO")
    assert [line[:2] for line in found] == [[a, b] for a in net.states("HR") for b in net.states("STROKEVOLUME")]
    np.testing.assert_allclose([[float(cell) for cell in line[2:]] for line in found], table.reshape(9, 3), rtol=1e-3)
    page.click(state(number(net, "HR"), 0))
    assert page.locator("#panel-table tr.quiet").count() == 6  # those of other states
    page.select_option("#query", label="LVFAILURE")
    assert shown_table(page) == [["0.05", "0.95"]]


def test_a_table_of_a_testing_node_has_its_tests_and_both_tables(opened):
    page = opened("abc")
    page.click("#tab-table")
    assert shown_table(page, 0) == [["true", "P* ≥ 0.5"], ["false", "P* ≥ 0.4"]]
    cpt = examples.abc().cpt("B")
    for which, table in ((1, cpt.plus), (2, cpt.minus)):
        assert [[float(cell) for cell in line[1:]] for line in shown_table(page, which)] == table.tolist()
    pale = "[...document.querySelectorAll('#panel-table tbody tr')].map((line) => line.classList.contains('quiet'))"
    assert page.evaluate(pale) == [False, False, True, False, False, True]  # P*(A = true) = 0.3 fails its test
    page.click(state(0, 0))
    assert page.evaluate(pale) == [False, True, False, True, True, True]


def test_a_large_table_is_shown_row_by_row(opened):
    net = Network("large")
    net.add("A", states=40, cpt=np.full(40, 1 / 40))
    net.add("B", states=30, cpt=np.full(30, 1 / 30))
    table = np.random.default_rng(0).dirichlet([1, 1], (40, 30))
    net.add("C", ["A", "B"], cpt=table)
    page = opened("data:text/html;base64," + b64encode(page_html(net).encode()).decode())
    page.click("#tab-table")
    assert "1,200 rows of 2 numbers. That is too long to be shown in full" in page.inner_text("#panel-table")
    page.select_option("#panel-table select[aria-label='State of A']", index=7)
    page.select_option("#panel-table select[aria-label='State of B']", index=20)
    assert [float(line[1]) for line in shown_table(page)] == pytest.approx(table[7, 20], rel=1e-3)


def test_a_rule_is_shown_as_the_table_that_it_stands_for(opened):
    net = Network("rule")
    for name in "AB":
        net.add(name, cpt=[0.5, 0.5])
    net.add("C", ["A", "B"], cpt=tacit.NoisyOr([0.8, 0.5], leak=0.1))
    page = opened("data:text/html;base64," + b64encode(page_html(net).encode()).decode())
    page.click("#tab-table")
    found = [[float(cell) for cell in line[2:]] for line in shown_table(page)]
    np.testing.assert_allclose(found, net.table("C").reshape(4, 2), rtol=1e-3)


def test_a_page_unpacks_what_was_packed(opened, monkeypatch):
    monkeypatch.setattr(html_page, "PACKED_FROM", 0)
    net = network("asia")
    page = opened("data:text/html;base64," + b64encode(page_html(net).encode()).decode())
    expected = semantics.posterior(net, "dysp", {})[0]
    assert page.evaluate("explorer.posteriors()")[number(net, "dysp")] == pytest.approx(list(expected), abs=1e-12)


def test_a_page_of_decision_diagrams_says_what_it_leaves_out(opened, monkeypatch):
    net = gates(12, 6)
    monkeypatch.setattr(page_model, "MAX_WORK", 50_000)
    page = opened("data:text/html;base64," + b64encode(page_html(net).encode()).decode())
    page.evaluate("explorer.observe(0, [1, 0])")
    k = len(net) - 1
    expected = net.posterior(net.variables[k], {"x0": "true"})[0]
    assert page.evaluate("explorer.posteriors()")[k] == pytest.approx(list(expected), abs=1e-12)
    for tab in ("explanation", "sensitivity"):
        page.click(f"#tab-{tab}")
        until(page, f"document.getElementById('panel-{tab}').textContent.includes('decision diagrams')")
    page.click("#tab-information")
    until(page, "document.querySelectorAll('.ranking li').length > 1")
    page.click("#tab-table")
    assert page.locator("#panel-table tbody tr").count() == 4
    assert page.is_hidden("#mode")


def test_the_chart_has_pieces_and_jumps(opened):
    page = opened("abc")
    page.select_option("#query", label="B")
    page.click("#tab-chart")
    assert page.get_attribute("#panel-chart svg", "aria-label").endswith("2 jumps.")
    assert page.locator("#panel-chart .line.c0").count() == 3
    page.locator("#panel-chart svg").click(position={"x": 200, "y": 100})
    assert list(evidence(page)) == ["A"]
    page.select_option("#panel-chart select[aria-label='Second input']", label="C")
    assert page.locator("#panel-chart image").count() == 1
    assert page.get_attribute("#panel-chart .border", "d")


CHART = """() => {
  const {left, right, top, bottom, width, height} = PLOT;
  const place = ([x, y]) => [(x - left) / (width - left - right), 100 * (1 - (y - top) / (height - top - bottom))];
  const points = (line) => line.getAttribute("d").slice(1).split("L").map((xy) => place(xy.split(" ").map(Number)));
  const drawn = (kind) => [...document.querySelectorAll(`#panel-chart svg .${kind}`)];
  const [[now]] = points(drawn("now")[0]);
  const there = (line) => points(line).reduce((a, b) => (Math.abs(b[0] - now) < Math.abs(a[0] - now) ? b : a))[1];
  return {axis: drawn("axis")[0].textContent, now, values: drawn("line").map(there)};
}"""


def charted(page):
    """What the chart varies, where its marker is, from 0 to 1, and what its lines are there, in percent."""
    until(page, "document.querySelector('#panel-chart .now') !== null")
    return page.evaluate(CHART)


@pytest.mark.parametrize(
    ("name", "query", "finding", "states"),
    [
        ("alarm", "HYPOVOLEMIA", "CVP=HIGH", ["HIGH", "LOW", "NORMAL"]),
        ("alarm", "HYPOVOLEMIA", "CVP=0.2,0.5,0.3", ["NORMAL", "LOW", "HIGH"]),
        ("insurance", "SocioEcon", "Age=Senior", ["Senior", "Adult"]),
    ],
)
def test_the_chart_is_at_the_posterior_where_its_marker_is(opened, name, query, finding, states):
    """It begins with the state that the evidence speaks for; those that one chooses afterwards tell the same."""
    page, net, seen = opened(name, finding), network(name), finding.split("=")[0]
    page.select_option("#query", label=query)
    page.click("#tab-chart")
    likelihoods = evidence(page)[seen]
    expected = 100 * net.posterior(query, {seen: [likelihoods]})[0]
    for k, state in enumerate(states):
        if k:
            page.select_option(f"#panel-chart select[aria-label='State of {seen}']", label=state)
        found = charted(page)
        assert found["axis"] == f"likelihood of {seen} = {state}"
        assert found["now"] == pytest.approx(likelihoods[net.states(seen).index(state)], abs=1e-3)
        np.testing.assert_allclose(found["values"], expected, atol=0.01)


def test_the_chart_follows_what_is_observed_but_not_its_own_clicks(opened):
    page, i = opened("alarm", "CVP=LOW"), number(network("alarm"), "CVP")
    page.select_option("#query", label="HYPOVOLEMIA")
    page.click("#tab-chart")
    page.click(state(i, 2))
    until(page, "document.querySelector('#panel-chart .axis').textContent.endsWith('HIGH')")
    page.select_option("#panel-chart select[aria-label='State of CVP']", label="LOW")
    assert charted(page)["now"] == 0
    page.locator("#panel-chart svg").click(position={"x": 200, "y": 100})
    until(page, f"({CHART})().now > 0.1")
    found = charted(page)
    assert found["axis"] == "likelihood of CVP = LOW"
    low, normal, high = evidence(page)["CVP"]
    assert (found["now"], normal, high) == (pytest.approx(low, abs=1e-3), 0, pytest.approx(1 - low))


@pytest.mark.parametrize("finding", ["BP=HIGH", "do(BP)=HIGH"])
def test_panels_answer_without_a_finding_on_the_query(opened, finding):
    """They would have nothing to tell with it, so they leave it out, and say so."""
    page, other = opened("alarm", f"{finding}&CVP=LOW"), opened("alarm", "CVP=LOW")
    assert page.input_value("#query") == str(number(network("alarm"), "BP"))
    for tab, shown in (("chart", ".line"), ("information", ".ranking li"), ("sensitivity", ".tornado li")):
        for one in (page, other):
            one.click(f"#tab-{tab}")
            until(one, f"document.querySelectorAll('#panel-{tab} {shown}').length > 1")
        texts = [one.inner_text(f"#panel-{tab}") for one in (page, other)]
        note = f"BP = HIGH is {'set' if finding[0] == 'd' else 'a finding'}. This is how things would be without it. "
        assert note in texts[0]
        if tab != "sensitivity":  # the state that is chosen there is the observed one
            assert texts[0].replace(note, "") == texts[1]
    lines = "[...document.querySelectorAll('#panel-chart .line')].map((line) => line.getAttribute('d'))"
    assert page.evaluate(lines) == other.evaluate(lines)
    page.select_option("#panel-sensitivity select", label="LOW")
    until(page, "document.querySelectorAll('.tornado li').length > 1")
    assert page.inner_text(".tornado") == other.inner_text(".tornado")


def test_bars_show_where_they_were(opened):
    page, net = opened("asia"), network("asia")
    i, k = number(net, "lung"), number(net, "asia")
    ghosts = "[...document.querySelectorAll('#map .ghost')].filter((own) => own.getAttribute('width') > 0).length"
    assert page.evaluate(ghosts) == 0
    before = page.evaluate("explorer.posteriors()")[i][0]
    page.click(state(number(net, "xray"), 0))
    assert page.evaluate(ghosts) > 0
    row = page.locator(state(i, 0))
    track, ghost = (row.locator(f".{kind}").bounding_box() for kind in ("track", "ghost"))
    at = (ghost["x"] + ghost["width"] / 2 - track["x"]) / track["width"]
    assert at == pytest.approx(before, abs=0.01)
    assert page.locator(state(k, 0)).locator(".ghost").get_attribute("width") == "0"  # as good as unchanged
    page.click("#undo")
    assert page.evaluate("document.querySelectorAll('.query .ghost:not([hidden])').length") == 2


def compared(page):
    """The lines of the comparison: a state, its probability in both cases, and the change."""
    lines = page.locator(".compared tbody tr").all()
    return [line.locator("th, td").all_text_contents() for line in lines]


def cases(page):
    """What is known in both cases of each variable, with a mark on what can be cleared, and which rows stand out."""
    lines = page.locator(".known tbody tr")
    cells = [[text.replace("\n", " ") for text in line.locator("th, td").all_inner_texts()] for line in lines.all()]
    apart = page.locator(".known .apart th").all_inner_texts()
    return {name: (*both, name in apart) for name, *both in cells}


def test_two_cases_are_compared(opened):
    page, net = opened("alarm", "CVP=LOW&HISTORY=TRUE"), network("alarm")
    page.click("text=Compare two cases")
    assert page.locator("#overview svg").is_hidden()
    assert "Both cases are the same so far" in page.inner_text("#panel-findings")
    page.click(state(number(net, "CVP"), 2))
    page.click(state(number(net, "HRBP"), 0), modifiers=["Shift"])
    last = page.locator(".compared tbody tr").nth(4).bounding_box()
    assert last["y"] + last["height"] < page.locator("#side").bounding_box()["height"]  # without scrolling
    assert cases(page) == {
        "CVP": ("LOW", "HIGH ×", True),
        "HISTORY": ("TRUE", "TRUE ×", False),
        "HRBP": ("–", "set to LOW ×", True),
    }
    assert "Findings of both: clicks change case B" in page.inner_text("#panel-findings")
    rows = [{"CVP": "LOW", "HISTORY": "TRUE"}, {"CVP": "HIGH", "HISTORY": "TRUE"}]
    kept, now = ({own: net.posterior(own, row)[0] for own in ("BP", "LVEDVOLUME")} for row in rows)
    found = compared(page)
    for k, line in enumerate(found[:3]):
        change = f"{100 * (now['BP'][k] - kept['BP'][k]):+.1f}".replace("-", "−")
        values = [f"{100 * own['BP'][k]:.1f}%" for own in (kept, now)]
        assert line[1:] == [*values, change.replace("+0.0", "0.0").replace("−0.0", "0.0")]
    changes = [abs(float(line[3].replace("−", "-"))) for line in found[3:]]
    assert changes == sorted(changes, reverse=True)
    assert not any(line[0].startswith(("CVP = ", "HRBP = ")) for line in found)  # they are among the findings
    assert any(line[0].startswith("LVEDVOLUME = ") for line in found)
    track, ghost = (
        page.locator(".query .state").first.locator(f".{kind}").bounding_box() for kind in ("track", "ghost")
    )
    at = (ghost["x"] + ghost["width"] / 2 - track["x"]) / track["width"]
    assert at == pytest.approx(kept["BP"][0], abs=0.01)  # of what was kept, not of the last change
    page.click("text=Switch to case A")
    assert evidence(page) == {"CVP": [1, 0, 0], "HISTORY": [1, 0]}
    switched = {
        "CVP": ("LOW ×", "HIGH", True),
        "HISTORY": ("TRUE ×", "TRUE", False),
        "HRBP": ("–", "set to LOW", True),
    }
    assert cases(page) == switched
    assert compared(page) == found  # the change is from A to B, whichever is on the map
    page.click(state(number(net, "CVP"), 1))
    page.click("#undo")  # each case has a history of its own
    assert cases(page) == switched
    assert evidence(page) == {"CVP": [1, 0, 0], "HISTORY": [1, 0]}
    page.click(".known .icon >> nth=0")
    assert len(evidence(page)) == 1
    page.click("text=Stop comparing")
    assert page.locator(".comparison:visible").count() == 0
    assert page.locator("#overview svg").is_visible()
    assert overlapping(page) == []


def test_a_comparison_sets_findings_in_turn(opened):
    page, net = opened("asia", "xray=yes&smoke=no"), network("asia")
    page.click("text=Compare two cases")
    page.click(state(number(net, "xray"), 1))
    page.click(state(number(net, "tub"), 0))
    rows = [{"xray": "yes", "smoke": "no"}, {"xray": "no", "smoke": "no", "tub": "yes"}]
    steps = net.compare("dysp", *rows).differences
    until(page, f"document.querySelectorAll('.steps tbody tr').length === {1 + len(steps)}")
    page.click("text=Switch to case A")  # the steps stay those from A to B
    lines = [line.locator("th, td").all_inner_texts() for line in page.locator(".steps tbody tr").all()]
    place = net.compare("dysp", *rows).state
    said = {"-": "–", "yes": "yes", "no": "no"}
    texts = [f"{one.name}: {said[one.first]} → {said[one.second]}" for one in steps]
    assert [name for name, *_ in lines] == ["Case A", *texts]
    assert [shown for _, shown, _ in lines[1:]] == [f"{one.posterior[place]:.1%}" for one in steps]


def test_a_comparison_says_which_case_clicks_change(opened):
    page = opened("asia", "asia=yes", viewport=PHONE, has_touch=True)
    page.click(".views [data-view=panels]")
    page.click("text=Compare two cases")
    page.locator(".query .state >> nth=0").tap()
    page.click("#tab-weights")
    until(page, "document.querySelector('#panel-weights p').textContent.startsWith('Case B: ')")
    page.click("#tab-findings")
    page.click("text=Switch to case A")
    page.click("#tab-weights")
    until(page, "document.querySelector('#panel-weights p').textContent.startsWith('Case A: ')")
    page.click(".views [data-view=list]")
    assert "Case A: 1 finding" in page.inner_text("#answer")


def test_one_variable_more_changes_less(opened):
    page = opened("asia")
    page.click("text=Compare two cases")
    page.evaluate(f"explorer.observe({number(network('asia'), 'xray')}, [0.9, 0.1])")
    assert page.locator(".comparison:visible > button.link").inner_text() == "Show 1 more that changes less"


def test_a_paste_error_goes_with_the_next_change(opened):
    page, told = opened("alarm"), ".carry .told"
    for change in (
        lambda: page.click(".query .state >> nth=0"),
        lambda: page.click("text=Compare two cases"),
        lambda: page.click("text=Switch to case A"),
        lambda: page.select_option("#query", label="CO"),
    ):
        page.fill("#panel-findings textarea", "CVP = LOW\nXY = 1")
        page.click("text=Observe these")
        until(page, f"document.querySelector('{told}').textContent !== ''")
        assert page.inner_text(told) == "This network has no variable “XY”. Nothing was changed."
        change()
        until(page, f"document.querySelector('{told}').textContent === ''")


def test_a_comparison_is_kept_by_links_text_and_reload(opened):
    page = opened("alarm", "CVP=LOW&HISTORY=TRUE&query=CO")
    page.click("text=Compare two cases")
    page.click(state(number(network("alarm"), "CVP"), 0))
    until(page, "location.hash === '#A:HISTORY=TRUE&CVP=LOW&B:HISTORY=TRUE&query=CO'")
    before, found, text = cases(page), compared(page), copied(page)
    assert text == "Case A:\nHISTORY = TRUE\nCVP = LOW\nCase B:\nHISTORY = TRUE"
    page.reload()
    until(page, "window.explorer?.ready && document.querySelector('.compared tr')")
    assert (cases(page), compared(page)) == (before, found)
    page.click("text=Switch to case A")
    until(page, "location.hash.startsWith('#B:HISTORY=TRUE&A:')")  # the last one is on the map
    page.evaluate("location.hash = '#CVP=HIGH'")
    until(page, "explorer.evidence().filter(x => x).length === 1")
    assert page.locator(".comparison:visible").count() == 0
    page.fill("#panel-findings textarea", text)
    page.click("text=Observe these")
    until(page, "document.querySelector('.compared tr')")
    assert cases(page) == before


def test_the_query_comes_into_view(opened):
    page, net = opened("alarm", "query=HYPOVOLEMIA"), network("alarm")
    for name, move in (("BP", False), ("HYPOVOLEMIA", True), ("BP", False)):
        page.select_option("#query", label=name)
        box, room = (page.locator(own).bounding_box() for own in (f"[data-box='{number(net, name)}'] .frame", "#map"))
        for at, size in (("x", "width"), ("y", "height")):
            assert room[at] <= box[at] <= room[at] + room[size] - box[size]
        if move:
            page.click("#zoom-in")


def test_captions_say_what_is_explained_first_and_never_asked(opened, tmp_path):
    net = network("asia")
    captions = Captions.of({"query": "lung", "state": "yes", "never_ask": ["tub", "either"]}, net)
    (tmp_path / "asia.html").write_text(page_html(net, captions), encoding="utf-8")
    page = opened((tmp_path / "asia.html").as_uri(), "xray=yes")
    page.click("#tab-information")
    asked = page.locator(".ranking .link").all_text_contents()
    assert "smoke" in asked
    assert not {"tub", "either"} & set(asked)
    assert "2 that cannot be observed" in page.inner_text("#panel-information")
    page.click("#tab-weights")
    assert "P(lung = yes) is" in page.inner_text("#panel-weights")
    page.select_option("#query", label="bronc")
    until(page, "document.querySelector('#panel-weights').textContent.includes(', the most probable state')")


def test_posteriors_are_downloaded_as_csv(opened):
    page = opened("odd", f"{quote(ODD, safe='')}=0.5,0.25,0.25")
    with page.expect_download() as download:
        page.click("text=Posteriors as CSV")
    text = download.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert download.value.suggested_filename == "b-odd-b-co.csv"
    assert [row["state"] for row in rows[:3]] == ['a"b', "</text><script>", "c&d=1,2"]
    assert [float(row["posterior"]) for row in rows] == [
        p for own in page.evaluate("explorer.posteriors()") for p in own
    ]
    assert [row["likelihood"] for row in rows[:4]] == ["0.5", "0.25", "0.25", ""]


def test_a_comparison_leaves_out_what_was_observed(opened):
    page = opened("asia", "A:lung=no&xray=yes&query=dysp&B:lung=yes&smoke=0.9")
    page.locator("table.compared tbody tr").first.wait_for()
    names = [row.split()[0] for row in page.locator("table.compared tbody tr").all_inner_texts()]
    assert names[:2] == ["dysp", "dysp"]
    assert not {"lung", "xray"} & {*names}
    assert "smoke" in names


def test_a_picture_does_not_show_where_the_mouse_was(opened):
    page, made = opened("abc"), []
    for box in range(2):
        page.hover(f"[data-box='{box}'] .title")
        with page.expect_download() as download:
            page.get_by_text("Picture as PNG").dispatch_event("click")
        made.append(download.value.path().read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("view", ["list", "map", "panels"])
def test_the_narrowest_phones_have_no_scrollbar(opened, view):
    page = opened("abc", viewport={"width": 320, "height": 640})
    page.click(f".views button[data-view='{view}']")
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_a_printed_page_is_whole_and_light(opened):
    page = opened("alarm", "CVP=LOW", color_scheme="dark")
    page.click("#zoom-in")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.get_attribute("html", "data-theme") == "light"
    boxes = page.evaluate(
        "[...document.querySelectorAll('.box .frame')].map(one => one.getBoundingClientRect().toJSON())"
    )
    around = page.evaluate("document.querySelector('.network').getBoundingClientRect().toJSON()")
    assert all(around["left"] <= box["left"] and box["right"] <= around["right"] for box in boxes)
    assert all(around["top"] <= box["top"] and box["bottom"] <= around["bottom"] for box in boxes)
    assert page.locator(".panel-findings .findings").is_visible()
    assert page.locator(".tools").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.get_attribute(".network", "viewBox") is None


@pytest.mark.parametrize(("name", "file"), [("abc", "abc.png"), ("unprintable", "bell-.png")])
def test_the_map_is_downloaded_as_png(opened, name, file):
    page = opened(name)
    with page.expect_download() as download:
        page.click("text=Picture as PNG")
    data = download.value.path().read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width = page.evaluate("JSON.parse(document.getElementById('model').textContent).layout.width")
    assert int.from_bytes(data[16:20]) == round(2 * width)
    assert download.value.suggested_filename == file


def test_groups_have_colours_and_can_be_faded(browser, opened, tmp_path):
    net = network("asia")
    captions = Captions.of(
        {"variables": {"lung": {"label": "lung cancer", "group": "diseases"}, "xray": {"group": "tests"}}}, net
    )
    (tmp_path / "asia.html").write_text(page_html(net, captions), encoding="utf-8")
    page = opened((tmp_path / "asia.html").as_uri())
    assert sorted(page.locator("#legend button").all_text_contents()) == ["diseases", "tests"]
    box = page.locator(f"[data-box='{number(net, 'lung')}']")
    assert box.locator(".title text").text_content() == "lung cancer"
    page.click("#legend button:has-text('diseases')")
    assert "away" in box.get_attribute("class")
    page.click(state(number(net, "xray"), 0))
    until(page, "location.hash === '#xray=yes'")


def test_edges_show_how_sure_they_are(opened):
    net = network("asia")
    looks = {"strength": {("smoke", "lung"): 0.8, ("asia", "tub"): 0.2}, "undirected": [("bronc", "smoke")]}
    page = opened("data:text/html;base64," + b64encode(page_html(net, **looks).encode()).decode())
    kinds = "[...document.querySelectorAll('#map .edge')].map((path) => path.getAttribute('class').slice(5))"
    pairs = [(parent, name) for name in net for parent in net.parents(name)]
    plain = {pair: kind for pair, kind in zip(pairs, page.evaluate(kinds), strict=True) if kind != "level-0"}
    assert plain == {
        ("smoke", "lung"): "level-1",
        ("asia", "tub"): "level-3",
        ("smoke", "bronc"): "level-0 tipless",
    }
    tips = "[...document.querySelectorAll('#map .edge')].filter((path) => getComputedStyle(path).markerEnd === 'none')"
    assert page.evaluate(f"{tips}.length") == 1
    texts = page.locator("#edge-legend span").all_text_contents()
    assert texts == [
        "in all samples",
        "in 75% of the samples or more",
        "in fewer than half of the samples",
        "direction unknown",
    ]
    page.click(state(number(net, "bronc"), 0), modifiers=["Shift"])
    assert page.inner_text("#open-edges") == (
        "The effect shown assumes smoke → bronc, a direction that the data leave open."
    )
    page.click("#clear")
    page.click(state(number(net, "xray"), 0), modifiers=["Shift"])
    assert page.is_hidden("#open-edges")
    every = {"strength": dict.fromkeys(net.edges, 1.0), "undirected": [("bronc", "smoke")]}
    legend = page_model.page_model(net, Captions(), looks=EdgeLooks.checked(net.edges, **every))["edge_legend"]
    assert [entry["text"] for entry in legend] == ["direction unknown"]


# looks ------------------------------------------------------------------------------------------------------

OVERLAPS = """() => {
  const places = "svg.network, .top, .side, .cards";
  const texts = [...document.querySelectorAll("svg.network text, .top *, .side *, .cards *")].flatMap((node) => {
    const own = node.tagName === "text" || [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
    const seen = node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!own || !seen || node.closest("select")) return [];
    const clip = node.closest(places).getBoundingClientRect();
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = (node.tagName === "text" ? node : range).getBoundingClientRect();
    const [left, right] = [Math.max(box.left, clip.left), Math.min(box.right, clip.right)];
    const [top, bottom] = [Math.max(box.top, clip.top), Math.min(box.bottom, clip.bottom)];
    const blank = 0.15 * (bottom - top); // letters do not fill their line
    if (right - left < 1 || bottom - top < 1) return [];
    return [{ node, left, right, top: top + blank, bottom: bottom - blank }];
  });
  const found = [];
  texts.forEach((a, k) => texts.slice(0, k).forEach((b) => {
    const apart = a.left > b.right - 1 || b.left > a.right - 1 || a.top > b.bottom || b.top > a.bottom;
    const same = a.node.contains(b.node) || b.node.contains(a.node);
    if (!apart && !same) found.push([a.node.textContent, b.node.textContent]);
  }));
  return { found, count: texts.length };
}"""


OUTSIDE = """() => [...document.querySelectorAll(".box")].flatMap((box) => {
  const frame = box.querySelector(".frame").getBoundingClientRect();
  return [...box.querySelectorAll(".full text, .title text")].filter((text) => {
    const own = text.getBoundingClientRect();
    return own.left < frame.left || own.right > frame.right || own.bottom > frame.bottom + 1;
  }).map((text) => text.textContent);
})"""


def overlapping(page):
    """Pairs of texts that lie on top of each other, among all that are in sight."""
    answer = page.evaluate(OVERLAPS)
    assert answer["count"] > 10
    return answer["found"]


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "andes"])
def test_no_labels_overlap(opened, name):
    page = opened(name)
    assert overlapping(page) == []
    assert page.evaluate(OUTSIDE) == []
    page.set_viewport_size({"width": 1000, "height": 420})
    assert overlapping(page) == []  # folded


def test_no_labels_overlap_in_panels(opened):
    page = opened("abc", "A=0.3,0.7")
    for tab in page.locator("[role=tab]").all():
        tab.click()
        page.wait_for_timeout(50)
        assert overlapping(page) == []


LETTERS = """() => [...document.querySelectorAll("svg.network text")].flatMap((text) => {
  const seen = text.textContent && text.checkVisibility({ opacityProperty: true });
  return seen ? [parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a] : [];
})"""


@pytest.mark.parametrize("name", ["abc", "alarm", "win95pts"])
def test_letters_can_be_read_to_begin_with_and_the_width_is_used(opened, name):
    page = opened(name)
    assert min(page.evaluate(LETTERS)) >= 11
    width = page.evaluate("document.querySelector('.scene').getBoundingClientRect().width")
    assert name == "abc" or width >= 0.85 * page.evaluate("document.getElementById('map').clientWidth")
    query = page.locator(".box.chosen").bounding_box()
    assert query["y"] + query["height"] <= DESKTOP["height"]
    assert page.is_visible("#overview") == (name != "abc")
    if name != "abc":  # it covers neither boxes nor panels
        small, drawn, side = (page.locator(own).bounding_box() for own in ("#overview", "#map", "#side"))
        assert small["x"] >= drawn["x"] + drawn["width"]
        assert small["y"] >= side["y"] + side["height"]


def test_all_of_a_large_network_has_names_that_can_be_read(opened):
    page = opened("andes")
    page.click("#fit")
    assert min(page.evaluate(LETTERS)) >= 11
    assert overlapping(page) == []
    assert page.locator(".alone[visibility=visible]").count() > 100
    page.locator("[data-box='100'] .frame").hover(force=True)
    assert page.locator(".flag").text_content().startswith(f"{network('andes').variables[100]}: ")
    page.click("#zoom-query")
    assert min(page.evaluate(LETTERS)) >= 11
    assert page.is_hidden("#hint")
    assert page.locator(".flag").text_content() == ""


def test_on_a_phone_the_hint_covers_no_names(opened):
    page = opened("andes", viewport=PHONE, has_touch=True)
    page.click(".views [data-view=map]")
    page.click("#fit")
    hint, names = (page.locator(own).bounding_box() for own in ("#hint", "#map .names"))
    assert hint["y"] + hint["height"] <= names["y"]


def test_the_overview_can_be_folded(opened):
    page = opened("alarm")
    before = page.locator("#side").bounding_box()["height"]
    page.click("#fold-overview")
    assert page.locator("#overview svg").is_hidden()
    assert page.locator("#side").bounding_box()["height"] > before + 100


def test_search_leaves_no_part_of_the_map_empty(opened):
    page, net = opened("win95pts"), network("win95pts")
    corner = min(net, key=lambda name: sum(page.locator(f"[data-box='{number(net, name)}']").bounding_box().values()))
    page.fill("#search", corner)
    page.keyboard.press("Enter")
    scene, drawn = (page.locator(own).bounding_box() for own in (".scene", "#map"))
    box = page.locator(f"[data-box='{number(net, corner)}']").bounding_box()
    for at, size in (("x", "width"), ("y", "height")):
        assert scene[at] <= drawn[at] + 40
        assert scene[at] + scene[size] >= drawn[at] + drawn[size] - 40
        assert drawn[at] <= box[at] <= drawn[at] + drawn[size] - box[size]


@pytest.mark.parametrize("width", [1440, 1000, 760, 390])
def test_tabs_stay_in_one_line(opened, width):
    page = opened("abc", viewport={"width": width, "height": 640})
    if width < 720:
        page.click(".views [data-view=panels]")
    top = page.locator(".top").bounding_box()
    assert top["height"] <= (60 if width > 720 else 130)
    assert page.locator("h1").bounding_box()["width"] > 20
    tops = page.evaluate("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.getBoundingClientRect().top)")
    assert len(tops) == len(TABS)
    assert len(set(tops)) == 1
    bar = "document.getElementById('tabs')"
    assert width < 720 or page.evaluate(f"{bar}.scrollWidth <= {bar}.clientWidth")  # all of them are in sight
    for tab in TABS:
        page.click(f"#tab-{tab}")
        box = page.locator(f"#tab-{tab}").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_on_a_phone_cards_come_first_and_nothing_scrolls_sideways(opened):
    page = opened("alarm", viewport=PHONE, has_touch=True)
    assert page.is_visible("#cards")
    assert page.is_hidden("#map svg")
    i = number(network("alarm"), "CVP")
    page.fill("#search", "cvp")
    assert page.locator(".card:visible").count() == 1
    page.keyboard.press("Enter")
    page.locator(f".card .state[data-variable='{i}'][data-state='0']").tap()
    assert evidence(page) == {"CVP": [1, 0, 0]}
    assert overlapping(page) == []
    for view in ("list", "map", "panels"):
        page.click(f".views [data-view={view}]")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate("document.querySelector('.side').scrollWidth <= 390")
    assert page.is_visible("#panel-findings")


def test_on_a_phone_the_answer_stays_in_sight(opened):
    page, net = opened("alarm", viewport=PHONE, has_touch=True), network("alarm")
    assert "tap a state" in page.inner_text("#answer")
    page.locator(".card .state[data-variable='3'][data-state='0']").tap()
    expected = net.posterior("BP", {net.variables[3]: net.states(net.variables[3])[0]})[0]
    for view in ("list", "map"):
        page.click(f".views [data-view={view}]")
        text = page.inner_text("#answer")
        assert "BP" in text
        assert "1 finding" in text
        assert [f"{100 * p:.1f}%" for p in expected] == re.findall(r"[\d.]+%", text)
    page.locator("#answer").tap()
    assert page.is_visible("#panel-findings")
    assert page.is_hidden("#answer")


@pytest.mark.parametrize(
    ("theme", "viewport"), [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)]
)
def test_accessibility(opened, theme, viewport):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    name, fragment = ("abc", "A=0.3,0.7&do(C)=hi") if viewport is DESKTOP else ("clinic", "Age=30&do(Ill)=true")
    page = opened(name, fragment, viewport=viewport, color_scheme=theme)
    assert page.get_attribute("html", "data-theme") == theme
    if viewport is DESKTOP:
        page.click("text=Compare two cases")
        page.click(state(0, 0))
        for tab in page.locator("[role=tab]").all():
            tab.click()
            page.wait_for_timeout(150)
        page.evaluate(
            "document.querySelectorAll('[role=tabpanel]').forEach(panel => (panel.hidden = false))"
        )  # all at once
    violations = axe.Axe().run(page).response["violations"]
    serious = [one for one in violations if one["impact"] in ("serious", "critical")]
    assert [(one["id"], node["html"]) for one in serious for node in one["nodes"]] == []


def test_light_and_dark_by_a_button(opened):
    page = opened("abc")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != light
    page.click("#theme")
    assert page.evaluate(ground) == light


def test_the_page_may_not_talk_to_anybody(pages, browser):
    page = browser.new_page()
    page.goto(pages("abc"))
    assert page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'refused')") == "refused"
    page.close()


def test_a_long_title_and_many_groups_fit_on_a_phone(opened, tmp_path):
    net = tacit.examples.abc()
    groups = "".join(f'[variables.{name}]\ngroup = "the quite long group of {name}"\n' for name in net)
    captions = tmp_path / "captions.toml"
    captions.write_text(f'title = "{"a very long title of a network " * 5}"\n{groups}')
    net.page(tmp_path / "page.html", captions)
    page = opened((tmp_path / "page.html").as_uri(), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
@pytest.mark.parametrize("tab", ["weights", "sensitivity"])
def test_a_long_caption_leaves_room_for_the_menus_beside_it(opened, tmp_path, tab, viewport):
    net = network("asia")
    net.page(tmp_path / "page.html", query="dysp", captions={"dysp": "Chronic obstructive " + "lung" * 20})
    page = opened((tmp_path / "page.html").as_uri(), "smoke=yes", viewport=viewport)
    if viewport is PHONE:
        page.click(".views [data-view=panels]")
    page.click(f"#tab-{tab}")
    until(page, f"document.querySelector('#panel-{tab} .line select')")
    panel = page.locator(f"#panel-{tab}").bounding_box()
    menus = [menu.bounding_box() for menu in page.locator(f"#panel-{tab} .line select").all()]
    assert all(menu["width"] >= 90 for menu in menus)
    assert all(menu["x"] + menu["width"] <= panel["x"] + panel["width"] for menu in menus)
    assert page.evaluate("(side => side.scrollWidth <= side.clientWidth)(document.getElementById('side'))")


def shown_states(page, where):
    """The labels of the lines for states that can be seen."""
    return page.evaluate(
        "(where) => [...document.querySelectorAll(where)].filter((one) => one.checkVisibility("
        "{ visibilityProperty: true })).map((one) => one.querySelector('.label').textContent)",
        where,
    )


@pytest.mark.parametrize(("viewport", "where"), [(DESKTOP, "[data-box='0'] .state"), (PHONE, "[data-card='0'] .state")])
def test_of_many_states_the_most_probable_ones_are_shown_in_the_order_of_their_numbers(opened, viewport, where):
    page = opened("wards", viewport=viewport)
    first = shown_states(page, where)
    likely = numbered().states("Ward")[18]
    assert len(first) == 11
    assert likely in first
    assert first == sorted(first, key=int)
    page.evaluate("explorer.observe(0, Array.from({ length: 30 }, (_, k) => Number(k === 29)))")
    assert numbered().states("Ward")[29] in shown_states(page, where)
    assert "19 more" in page.text_content(where.removesuffix(" .state"))


def test_all_states_of_the_query_can_be_unfolded(opened):
    page = opened("wards")
    page.click("[data-box='0'] .more")
    page.click(".query .more-states")
    assert shown_states(page, ".query .state") == [str(k) for k in range(1, 31)]


def test_on_a_phone_findings_of_a_link_are_above_the_cards(opened):
    page, net = opened("alarm", "SAO2=LOW&HRBP=HIGH", viewport=PHONE), network("alarm")
    found = page.locator("#cards > .card").first
    assert [line.inner_text().split()[:2] for line in found.locator("li").all()] == [["SAO2", "LOW"], ["HRBP", "HIGH"]]
    found.locator("button[aria-label='Clear SAO2']").click()
    assert list(evidence(page)) == ["HRBP"]
    page.click("#clear")
    page.click(f"[data-card='{number(net, 'HISTORY')}'] .state >> nth=0")
    assert found.is_hidden()  # what one taps moves no card
