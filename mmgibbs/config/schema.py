"""JSON schema of the analysis file, made from the classes of its sections.

An editor that speaks YAML completes keys and marks mistakes where the first line of a file is

    # yaml-language-server: $schema=mmgibbs.schema.json

Descriptions are the strings below the fields of the classes, allowed values are those that each field's kind says of
itself. The schema knows one key at a time: what sections say of each other is found by `load_config` alone.
"""

from __future__ import annotations

import ast
import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from pydantic import PlainValidator
from pydantic.fields import FieldInfo

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.fields import KeyOf, Kind, Schema, Section, accepted_by, any_of, plain
from mmgibbs.errors import ConfigError

FILE = "mmgibbs.schema.json"  # beside the files that the program writes
MODELINE = f"# yaml-language-server: $schema={FILE}\n"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "Analysis file of mmgibbs"


def analysis_schema() -> dict[str, Any]:
    """The schema, as nested dicts and lists that `json.dumps` takes: one entry of $defs for each section."""
    found: dict[str, type[Section]] = {}
    top = _section_schema(Analysis, found)
    of_sections: dict[str, Any] = {}
    while len(of_sections) < len(found):  # sections lead to further sections
        name = next(name for name in found if name not in of_sections)
        of_sections[name] = _section_schema(found[name], found)
    head = {"$schema": DRAFT, "title": TITLE}
    return head | top | {"$defs": dict(sorted(of_sections.items()))}


def write_schema(folder: Path) -> Path:
    """Write the schema into a folder, over an older one of its own.

    Raises ConfigError where a file of that name is not a schema of this program, or cannot be written.
    """
    path = folder / FILE
    try:
        if path.exists() and f'"{TITLE}"' not in path.read_text(encoding="utf-8", errors="replace"):
            raise ConfigError(
                f"{path}: exists and is not a schema of mmgibbs; needed another folder, or this file moved"
            )
        path.write_text(as_json(), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def with_schema(path: Path) -> None:
    """Let an analysis file begin with the line that editors look for, and write the schema beside it."""
    path.write_text(MODELINE + path.read_text(encoding="utf-8"), encoding="utf-8")
    write_schema(path.parent)


def as_json() -> str:
    return json.dumps(analysis_schema(), indent=2, ensure_ascii=False) + "\n"


# ------------------------------------------------------------------------------------------------ sections


def _section_schema(section: type[Section], found: dict[str, type[Section]]) -> dict[str, Any]:
    """A section as a mapping, or in one of its short forms; sections that it names are added to `found`."""
    properties: dict[str, Schema] = {key: KeyOf(section, key) for key in file_keys(section)} | section.more_keys()
    required = [key for key, name in file_keys(section).items() if section.model_fields[name].is_required()]
    mapping: dict[str, Any] = {"type": "object" if required else ["object", "null"], "properties": properties}
    mapping |= {"required": required} if required else {}
    mapping["additionalProperties"] = section.other_keys
    whole = {"anyOf": [mapping, *section.short_forms]} if section.short_forms else mapping
    return {"description": inspect.getdoc(section) or ""} | _resolved(whole, found)


def file_keys(section: type[Section]) -> dict[str, str]:
    """Key in the file -> attribute, of every field that a file may set by its name."""
    fields = section.model_fields.items()
    spread = section.other_keys is not False  # the last field holds what other keys say
    keys = {field.alias or name: name for name, field in fields if name not in section.filled_in}
    return dict(list(keys.items())[:-1]) if spread else keys


def _resolved(schema: Schema, found: dict[str, type[Section]]) -> Any:
    """With references for sections, and with the schema of each key."""
    match schema:
        case KeyOf():
            return key_schema(schema.section, schema.key, found)
        case type():
            found[schema.__name__] = schema
            return {"$ref": f"#/$defs/{schema.__name__}"}
        case dict():
            return {key: _resolved(value, found) for key, value in schema.items()}
        case list():
            return [_resolved(value, found) for value in schema]
        case _:
            return schema


def key_schema(section: type[Section], key: str, found: dict[str, type[Section]]) -> dict[str, Any]:
    """What a key accepts, what it means, and its default; where nothing is the default, the key may be empty."""
    name = file_keys(section)[key]
    field = section.model_fields[name]
    accepted = _resolved(_accepted(field), found)
    if not field.is_required() and field.default in (None, "", ()):
        accepted = any_of(accepted, {"type": "null"})
    described = {"description": meanings(section)[name]} | accepted
    return described if field.is_required() else described | _default(field)


def _accepted(field: FieldInfo) -> Schema:
    kinds = [item for item in field.metadata if isinstance(item, PlainValidator)]
    if kinds:
        return accepted_by(cast(Kind[Any], kinds[0].func))
    return next(a for a in (field.annotation, *get_args(field.annotation)) if isinstance(a, type) and not get_origin(a))


def _default(field: FieldInfo) -> dict[str, Any]:
    """The default as it would be written; none where another section or the data decide."""
    if field.default in (None, "", ()):
        return {}
    value = plain(field.default)
    return {} if isinstance(field.default, Section) and isinstance(value, dict) else {"default": value}


@cache
def meanings(section: type[Section]) -> dict[str, str]:
    """Attribute -> its meaning: the string below the field, in the class or in one that it is made from."""
    out: dict[str, str] = {}
    for cls in reversed(section.__mro__):
        if issubclass(cls, Section) and cls is not Section:
            out |= _strings_below_fields(cls)
    return out


def _strings_below_fields(cls: type[Section]) -> dict[str, str]:
    (tree,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(tree, ast.ClassDef)
    out: dict[str, str] = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                out[field.target.id] = " ".join(str(below.value.value).split())
    return out
