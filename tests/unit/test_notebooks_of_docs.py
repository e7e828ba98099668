"""The notebooks of docs/notebooks: their cells run, their outputs are kept, and the site has a page of each."""

import ast
import importlib.util
import json
import re

import matplotlib
import pytest
from helpers.selection import first
from helpers.support import ROOT
from matplotlib.figure import Figure

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
QUICK = {  # in place of the values of the cell that is tagged `parameters`
    "dairy-genotypes": {"n_animals": 400, "n_snps": 300},
    "variety-trial": {"lines": 20, "sites": 3},
    "wild-population": {"n_animals": 400, "samples": 60},
}
QUICKEST_FIRST = sorted(NOTEBOOKS, key=lambda path: path.stem != "variety-trial")
MAX_BYTES = 300_000


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def sources(path):
    """The code of each cell, and whether it has the parameters."""
    code = [cell for cell in read(path) if cell["cell_type"] == "code"]
    return [("".join(cell["source"]), "parameters" in cell["metadata"].get("tags", ())) for cell in code]


def names_of(code):
    """Names that a cell gives a value."""
    names = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def run_cells(path, replaced):
    """Run the cells in order, as Jupyter does: the last expression of a cell is shown. Returns what is shown."""
    names, shown = {"__name__": "notebook"}, []
    for code, has_parameters in sources(path):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if has_parameters:
            assert set(replaced) == names_of(code)
            names |= replaced
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), names))
    return [value for value in shown if value is not None]


@pytest.mark.parametrize("path", first(1, QUICKEST_FIRST), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_cells_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context({"backend": "agg"}):
        shown = run_cells(path, QUICK[path.stem])
    assert len(shown) >= 4 and capsys.readouterr().out
    for value in shown:
        if hasattr(value, "_repr_html_") and not isinstance(value, Figure):  # whose HTML is for other backends
            assert value._repr_html_()


def test_every_notebook_is_executed_small_and_in_the_menu():
    assert len(NOTEBOOKS) == 3 and {path.stem for path in NOTEBOOKS} == set(QUICK)
    for path in NOTEBOOKS:
        assert path.stat().st_size < MAX_BYTES
        code = [cell for cell in read(path) if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), path
        outputs = [output for cell in code for output in cell["outputs"]]
        assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
        assert any("text/html" in output.get("data", {}) for output in outputs)
        assert not re.search(r"/tmp|/home|/root|/work|Traceback|Warning:", path.read_text(encoding="utf-8"))
        shows = [isinstance(ast.parse("".join(cell["source"])).body[-1], ast.Expr) for cell in code]
        assert all(cell["outputs"] for cell, is_shown in zip(code, shows) if is_shown), "executed after its last change"
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert f"](notebooks/{path.name})" in index and f"notebooks/{path.stem}.md" in menu


def test_the_site_has_a_page_of_each():
    pytest.importorskip("nbconvert", reason='needs the extra docs: pip install ".[docs]"')
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "site" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    pages = hooks.notebook_pages()
    for path in NOTEBOOKS:
        text = pages[f"notebooks/{path.stem}.md"]
        assert text.startswith("# ") and f'<a href="../{path.name}" download>' in text and "```python" in text
        pictures = re.findall(r"!\[\w*\]\(([^)]+)\)", text)
        assert all(pages[f"notebooks/{picture}"].startswith(b"\x89PNG") for picture in pictures)
