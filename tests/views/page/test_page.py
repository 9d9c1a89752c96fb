"""The page as a file: complete, safe whatever names say, and written in one step."""

import colorsys
import json
import re
import sys
import zlib
from base64 import b64decode
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

import tacit
from tacit.views.page import html_page, page_html
from tests.cli.helpers import tacit_

MODEL = re.compile(r'<script type="application/json" id="model">(.*?)</script>', re.S)


def hostile() -> tacit.Network:
    net = tacit.Network("</title><script>alert(1)</script>")
    net.add("</script><script>alert(1)</script>", states=["<!--", '"&lt;'], cpt=[0.5, 0.5])
    return net


def test_names_cannot_leave_the_model() -> None:
    html = page_html(hostile())
    model = json.loads(MODEL.findall(html)[0])
    assert model["variables"][0]["name"] == "</script><script>alert(1)</script>"
    assert model["variables"][0]["states"] == ["<!--", '"&lt;']
    assert "<script>alert" not in html
    assert "<title>&lt;/title&gt;" in html


def test_a_page_needs_nothing_else() -> None:
    html = page_html(tacit.examples.abc())
    assert not re.findall(r'(?:src|href)\s*=\s*"(?!#|data:)', html)
    assert not re.findall(r"https?://(?!www\.w3\.org/)", html)


def test_a_page_is_made_by_the_core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("igraph", "matplotlib", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    assert MODEL.findall(page_html(tacit.examples.abc()))


def test_page_from_python_and_terminal(tmp_path: Path) -> None:
    net = tacit.examples.abc()
    net.page(tmp_path / "python.html", query="A")
    tacit.write(net, tmp_path / "abc.xmlbif")
    captions = tmp_path / "c.toml"
    captions.write_text('title = "Letters"\nquery = "A"')
    output = tmp_path / "terminal.html"
    printed = tacit_("page", tmp_path / "abc.xmlbif", "-o", output, "--captions", captions, "-q", "C")
    assert printed.split() == [str(tmp_path / "terminal.html")]
    ours, theirs = (json.loads(MODEL.findall((tmp_path / f"{n}.html").read_text())[0]) for n in ("python", "terminal"))
    assert theirs["title"] == "Letters"
    assert ours["tables"] == theirs["tables"]
    assert (ours["query"], theirs["query"]) == (0, 2)  # the option is above the file
    with pytest.raises(tacit.TacitError, match="nothing"):
        net.page(tmp_path / "nothing.html", query="nothing")


def test_a_network_without_a_name_has_that_of_the_file(tmp_path: Path) -> None:
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.page(tmp_path / "found edges.html")
    assert "<title>found edges</title>" in (tmp_path / "found edges.html").read_text(encoding="utf-8")


def test_large_models_are_packed_and_refused_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    net = tacit.examples.abc()
    (plain,) = (json.loads(text) for text in MODEL.findall(page_html(net)))
    monkeypatch.setattr(html_page, "PACKED_FROM", 0)
    (light,) = (json.loads(text) for text in MODEL.findall(page_html(net)))
    heavy = json.loads(zlib.decompress(b64decode(light.pop("packed"))))
    assert light | heavy == plain
    assert "tables" in heavy
    monkeypatch.setattr(html_page, "MAX_SIZE", 100)
    with pytest.raises(tacit.TooLargeError, match=r"too large for a page: .* `tacit serve`"):
        page_html(net)


def test_numbers_must_be_known(tmp_path: Path) -> None:
    net = tacit.Network("open")
    net.add("A")
    with pytest.raises(tacit.TacitError, match="A"):
        net.page(tmp_path / "open.html")
    assert not (tmp_path / "open.html").exists()


def hue(color: str) -> float:
    """The hue of "#rrggbb" in degrees."""
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return 360 * colorsys.rgb_to_hls(red, green, blue)[0]


def test_only_findings_are_orange_or_violet() -> None:
    css = (files("tacit.views.page") / "web" / "style.css").read_text("utf-8")
    for theme in re.findall(r":root[^{]*\{(.*?)\}", css, re.S):
        colors = dict(re.findall(r"--([\w-]+): (#\w{6});", theme))
        others = [name for name in colors if re.fullmatch(r"[cg]\d|less|more|holds|fails|bar|accent", name)]
        assert len(others) > 10
        for name, finding in product(others, ("seen-bar", "set-bar")):
            apart = abs(hue(colors[name]) - hue(colors[finding]))
            assert min(apart, 360 - apart) > 15, (name, finding)


def test_in_a_notebook_the_page_has_a_frame_of_its_own() -> None:
    html = tacit.examples.abc().explore()._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert "<script" not in html
    assert 'sandbox="allow-scripts' in html
