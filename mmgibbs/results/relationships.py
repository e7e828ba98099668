"""How the levels of random terms are related, as run.json has it: what a report says of a term comes from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.relationships.user_inverse import SparseInverse


def described(kind: Relationship | type[Relationship]) -> dict[str, Any]:
    """For run.json: words ('pedigree'), symbol (I, A, K), sentence, related, of_pedigree; of a matrix, facts of it."""
    facts = kind.facts if isinstance(kind, Relationship) else {}
    return {key: getattr(kind, key) for key in ("words", "symbol", "sentence", "related", "of_pedigree")} | facts


def describe_relationships(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Random term -> its description. Runs of earlier versions have the analysis alone: two words, or a path."""
    earlier = {"identity": described(Identity), "pedigree": described(Pedigree)}
    descriptions = {}
    for name, random in (record.get("analysis", {}).get("model", {}).get("random") or {}).items():
        written = str(random.get("relationship", "identity"))
        of_file = described(SparseInverse) | {"sentence": f"related by {written}"}
        descriptions[name] = record.get("relationships", {}).get(name) or earlier.get(written, of_file)
    return descriptions
