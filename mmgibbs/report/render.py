"""Renders templates to one self-contained HTML file, and prints the notes of commands with a page.

Style and script are part of the page, and nothing is fetched.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterable
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.errors import ConfigError
from mmgibbs.machine.output_places import page_mark
from mmgibbs.report.html_tables import Bar, Number

if TYPE_CHECKING:
    from jinja2 import Template

LIBRARIES = ("matplotlib", "jinja2")
PAGE_KINDS = {"running.html.j2": "report"}  # the page of a run that works becomes its report


def missing_libraries() -> list[str]:
    return [name for name in LIBRARIES if find_spec(name) is None]


def render(template: str, context: dict, path: Path) -> Path:
    """Write the page whole or not at all; ConfigError where it cannot be written."""
    work = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text = as_text(template, context)
    try:
        work.write_text(text, encoding="utf-8")
        os.replace(work, path)
    except OSError as error:
        work.unlink(missing_ok=True)
        raise ConfigError(f"report: cannot write '{path}': {error.strerror}") from error
    return path


SHORT = 12  # characters of a name that any screen has room for


def is_unbroken(cell: object) -> bool:
    """A short name such as 'H1-2000', which browsers would break at its hyphen."""
    return isinstance(cell, str) and "-" in cell and " " not in cell and len(cell) <= SHORT


def as_text(template: str, context: dict) -> str:
    text = load_template(template).render(context)
    return re.sub(r"(?<=[0-9]) %(?!\w)", "\u00a0%", text)  # a number and its sign stay on one line


def load_template(template: str) -> Template:
    """Load a template with the filters, style and script of all pages."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("mmgibbs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests |= {"number": lambda cell: isinstance(cell, Number), "bar": lambda cell: isinstance(cell, Bar)}
    environment.tests["unbroken"] = is_unbroken
    environment.globals["page_mark"] = Markup(page_mark(PAGE_KINDS.get(template, template.partition(".")[0])))
    files = resources.files("mmgibbs.report") / "templates"
    environment.globals |= {
        name: Markup((files / f"page.{name}").read_text(encoding="utf-8")) for name in ("css", "js")
    }
    environment.filters["links"] = lambda sections: [(of["id"], of["heading"]) for of in sections]
    environment.filters["svg"] = Markup  # drawn by plots.inline, which escapes what users named
    environment.filters["subscripts"] = lambda text: Markup(re.sub(r"_\{(\w+)\}", r"<sub>\1</sub>", str(escape(text))))
    environment.filters["breaks"] = lambda text: Markup("<wbr>").join(
        re.split(r"(?<=[\[,:])(?=[^\W\d])", str(text))
    )  # where a long name may part
    return environment.get_template(template)


def can_write_page(page: str) -> bool:
    """Check whether the libraries of the page are there; if not, print which are missing."""
    missing = missing_libraries()
    if missing:
        words = f"no {page}: found no {' and no '.join(missing)}; needed: pip install {' '.join(missing)}"
        print(words, file=sys.stderr)
    return not missing


def print_notes(notes: Iterable[str], is_quiet: bool = False) -> None:
    """Print notes and warnings on stderr, warnings alone where the command is quiet."""
    for note in notes:
        if note.startswith("warning: "):
            print(note, file=sys.stderr)
        elif not is_quiet:
            print(f"note: {note}", file=sys.stderr)
