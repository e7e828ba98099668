"""What docstrings say of parameters and attributes, as lists in the reference of Python.

The docstrings of the source are sentences, 'source: the path of a file. overrides: strings such as ...'. Here each of
them that begins with names of parameters (of a class: of its constructor, or of its attributes) becomes an item.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

try:
    from griffe import Extension
except ImportError:  # the tests read the functions alone
    Extension = object

ENDS = r"(?:^|(?<=[.;:)] ))"  # what may come before the names: the end of a sentence
OTHER = re.compile(r" (?=(?:Raises|After|Returns) )")  # sentences that follow the last item


def as_lists(text: str, names: Collection[str]) -> str:
    """The docstring with a list in place of each paragraph that explains some of these names."""
    return "\n\n".join(_of_paragraph(paragraph, names) for paragraph in text.split("\n\n"))


def _of_paragraph(paragraph: str, names: Collection[str]) -> str:
    if not names or re.search(r"(?m)^(?: {4}|\s*(?:```|>>>|[-*|] ))", paragraph):
        return paragraph  # code, a table or a list
    name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    plain = " ".join(paragraph.split())
    found = list(re.finditer(rf"{ENDS}((?:{name})(?:(?:, | and )(?:{name}))*): ", plain))
    if not found:
        return paragraph
    ends = [m.start() for m in found[1:]] + [len(plain)]
    items = [(m[1], plain[m.end() : end].strip().removesuffix(";")) for m, end in zip(found, ends, strict=True)]
    last, *others = OTHER.split(items[-1][1], maxsplit=1)
    items[-1] = (items[-1][0], last)
    listed = "\n".join(f"- {_quoted(of)}: {said}" for of, said in items)
    return "\n\n".join(filter(None, [plain[: found[0].start()].strip(), listed, *others]))


def _quoted(names: str) -> str:
    return re.sub(r"\w+", lambda name: name[0] if name[0] == "and" else f"`{name[0]}`", names)


class Parameters(Extension):  # type: ignore[misc, valid-type]
    """Given to mkdocstrings in mkdocs.yml."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_lists(obj.docstring.value, _names(obj))


def _names(obj: Any) -> set[str]:
    if obj.is_function:
        return {parameter.name for parameter in obj.parameters}
    if not obj.is_class:
        return set()
    constructor = obj.members.get("__init__")
    own = {name for name, member in obj.members.items() if member.is_attribute}
    return own | (_names(constructor) if constructor is not None and constructor.is_function else set()) - {"self"}
