"""Execute the notebooks of docs/notebooks and keep what they show: `python docs/site/execute_notebooks.py [NAME ...]`.

Needs `pip install ".[docs]" nbclient ipykernel`. Each runs in an empty folder, whose path is taken out of the outputs.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
SECONDS = 900  # of one cell
SETTINGS = """\
import matplotlib_inline.backend_inline as backend
backend.set_matplotlib_formats("png")
import matplotlib
matplotlib.rcParams["figure.dpi"] = 80
"""


def execute(path: Path) -> None:
    """Execute a notebook in place."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        settings = nbformat.v4.new_code_cell(SETTINGS)
        notebook.cells.insert(0, settings)
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}}).execute()
        notebook.cells.pop(0)
        text = re.sub(rf"(/private)?{re.escape(folder)}/?", "", nbformat.writes(_without_times(notebook)))
    path.write_text(text + "\n", encoding="utf-8")


def _without_times(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what differs between two executions of the same cells."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), start=1):
        cell.metadata.pop("execution", None)
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")):
        execute(NOTEBOOKS / f"{name}.ipynb")
        print(f"executed {name}")
