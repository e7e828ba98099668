"""Pages that add something to the source, followed in a copy of it."""

import re
import shutil
import subprocess
import sys
import textwrap

from helpers.support import ROOT

BLOCK = re.compile(
    r"^<!-- (new|insert|replace): ([\w/.]+)(?:(?: before)?: (.*?))? -->\n```python\n(.*?)^```$", re.M | re.S
)


def read_page(name):
    return (ROOT / "docs" / "how-to" / name).read_text(encoding="utf-8")


def copy_source(folder):
    shutil.copytree(ROOT / "mmgibbs", folder / "mmgibbs", ignore=shutil.ignore_patterns("__pycache__", "*.nb*"))


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path.name, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def follow(page, source):
    """Make the changes of a page; return how many there are."""
    blocks = BLOCK.findall(page)
    for kind, name, anchor, code in blocks:
        if kind == "new":
            (source / name).write_text(code, encoding="utf-8")
        else:
            change(source / name, anchor, code + anchor if kind == "insert" else code.removesuffix("\n"))
    return len(blocks)


def run_script(script, source):
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
