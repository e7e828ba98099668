"""JSON schema of the analysis file, made from the classes of its sections.

An editor that speaks YAML completes keys and marks mistakes where the first line of a file is

    # yaml-language-server: $schema=mmgibbs.schema.json

pydantic makes it; descriptions are the strings below the fields. The schema knows one key at a time: what
sections say of each other is found by `load_config` alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.fields import NO, YES, Schema, any_of, check_unique, plain, read_list
from mmgibbs.errors import ConfigError
from mmgibbs.machine.files import replaced_file
from mmgibbs.machine.output_places import begins_with, check_output_file

FILE = "mmgibbs.schema.json"  # beside the files that the program writes
MODELINE = f"# yaml-language-server: $schema={FILE}\n"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "Analysis file of mmgibbs"


class _FileSchema(GenerateJsonSchema):
    """Values as a file may write them: yes for true, a number for text, one value for a list of it."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        return plain(dft)

    def model_schema(self, schema: Any) -> Schema:
        return {key: v for key, v in super().model_schema(schema).items() if key != "title"}

    def bool_schema(self, schema: Any) -> Schema:
        return {"enum": [True, False, *YES[1:], *NO[1:]]}

    def literal_schema(self, schema: Any) -> Schema:
        choices = schema["expected"]
        return {"enum": [*choices, *YES[1:], *NO[1:]] if True in choices else choices}

    def str_schema(self, schema: Any) -> Schema:
        return {"type": ["string", "integer"]}

    def function_before_schema(self, schema: Any) -> Schema:
        inner = super().function_before_schema(schema)
        return any_of(inner, inner["items"]) if schema["function"]["function"] is read_list else inner

    def function_after_schema(self, schema: Any) -> Schema:
        inner = super().function_after_schema(schema)
        if schema["function"]["function"] is check_unique:
            inner["anyOf"][0]["uniqueItems"] = True
        return inner

    def tagged_union_schema(self, schema: Any) -> Schema:
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}


def analysis_schema() -> dict[str, Any]:
    """The schema, as nested dicts and lists that `json.dumps` takes: one entry of $defs for each section."""
    schema = Analysis.model_json_schema(schema_generator=_FileSchema)
    definitions = dict(sorted(schema.pop("$defs").items()))
    return {"$schema": DRAFT, "title": TITLE} | schema | {"$defs": definitions}


def write_schema(folder: Path) -> Path:
    """Write the schema into a folder, over an older one of its own.

    Raises ConfigError where a file of that name is not a schema of this program, or cannot be written.
    """
    return write_schema_file(folder / FILE)


def check_schema_file(path: Path, place: str | None = None) -> None:
    """ConfigError where a path may not become the schema; place: as in `check_output_file`."""
    check_output_file(
        path, "a schema of mmgibbs", lambda file: begins_with(file, (f'"{TITLE}"'.encode(),)), place=place
    )


def write_schema_file(path: Path, place: str | None = None) -> Path:
    """Write the schema to a path, over an older one of its own; place: as in `check_output_file`."""
    check_schema_file(path, place or str(path.parent))
    try:
        with replaced_file(path) as new:
            new.write_text(as_json(), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error.strerror}") from None
    return path


def with_schema(path: Path) -> None:
    """Let an analysis file begin with the line that editors look for, and write the schema beside it."""
    path.write_text(MODELINE + path.read_text(encoding="utf-8"), encoding="utf-8")
    write_schema(path.parent)


def as_json() -> str:
    return json.dumps(analysis_schema(), indent=2, ensure_ascii=False) + "\n"
