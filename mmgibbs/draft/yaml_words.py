"""Words of YAML: names, lists and entries as an analysis file writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from mmgibbs.draft.columns import Column

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n", "none"}


def entry(c: Column, body: str, key: str = "column") -> str:
    """'NAME: {column: COLUMN, BODY}', the column where it is not the name."""
    name = c.label
    of_column = f"{key}: {yaml_text(c.name)}" if name != c.name else ""
    return f"{yaml_text(name)}: {{{', '.join(filter(None, (of_column, body)))}}}"


def yaml_text(text: str) -> str:
    plain = _PLAIN.fullmatch(text) or re.fullmatch(r"[A-Za-z0-9_./-]*[A-Za-z_/][A-Za-z0-9_./-]*", text)
    return text if plain and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def yaml_list(values: Iterable[str]) -> str:
    return f"[{', '.join(yaml_text(v) if v else json.dumps(v) for v in values)}]"
