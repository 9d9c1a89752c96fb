"""Runs the notebooks in docs/notebooks, stores what they show, and makes a page of each, with its pictures beside it.

Run with: make notebooks. A test runs them, too, and compares: a cell tagged "varies" may show something else each time.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"
ABOUT = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
STYLE = re.compile(r"<style.*?</style>\n?", flags=re.DOTALL)  # of pandas: the site has its own
SECONDS = 300  # for one cell


def notebooks() -> list[Path]:
    """All notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def stored(path: Path) -> Any:
    """A notebook with what it showed when it was run last."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> Any:
    """A notebook with what it shows now, run in an empty folder."""
    notebook = stored(path)
    notebook.metadata = nbformat.from_dict(ABOUT)
    with tempfile.TemporaryDirectory() as place:
        NotebookClient(
            notebook,
            timeout=SECONDS,
            record_timing=False,
            resources={"metadata": {"path": place}},
            extra_arguments=["--InlineBackend.figure_formats=['svg']", "--IPKernelApp.log_level=ERROR"],
        ).execute()
    notebook.metadata = nbformat.from_dict(ABOUT)
    return notebook


def shown(notebook: Any) -> list[str]:
    """What the cells show as text, but for those that vary."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    same = (cell for cell in code if "varies" not in cell.metadata.get("tags", ()))
    return [text for cell in same for output in cell.outputs if (text := _text(output))]


def page(notebook: Any, name: str) -> tuple[str, dict[str, str]]:
    """A notebook as Markdown, and the pictures that the page shows, by the names of their files."""
    pictures: dict[str, str] = {}
    title, rest = "\n\n".join(_parts(notebook, name, pictures)).split("\n\n", 1)
    note = f"This page is a notebook: [download it]({name}.ipynb) and run it yourself."
    return f"{title}\n\n{note}\n\n{rest}\n", pictures


def _parts(notebook: Any, name: str, pictures: dict[str, str]) -> Iterator[str]:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        yield f"```python\n{cell.source}\n```"
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                file = f"{name}-{len(pictures) + 1}.svg"
                pictures[file] = data["image/svg+xml"].strip() + "\n"
                yield f"![What the code above draws]({file})"
            elif "text/html" in data:
                yield f'<div style="overflow-x:auto">{STYLE.sub("", data["text/html"]).strip()}</div>'
            elif text := _text(output):
                yield f"```text\n{text}\n```"


def _text(output: Any) -> str:
    """What an output says; nothing where it is a picture, a warning or progress."""
    if output.output_type == "stream":
        return output.text.rstrip() if output.name == "stdout" else ""
    data = output.get("data", {})
    return "" if "image/svg+xml" in data else str(data.get("text/plain", "")).rstrip()


def main() -> None:
    """Run all notebooks and write them, their pages and their pictures."""
    for path in notebooks():
        print(path.name)
        notebook = executed(path)
        nbformat.write(notebook, path)
        text, pictures = page(notebook, path.stem)
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        for old in FOLDER.glob(f"{path.stem}-*.svg"):
            old.unlink()
        for file, svg in pictures.items():
            (FOLDER / file).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
