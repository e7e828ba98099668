"""What commands with a page of their own print beside their results."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from mmgibbs.report.render import missing_libraries


def can_write_page(page: str) -> bool:
    """Whether its libraries are there; if not, print which are missing."""
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
