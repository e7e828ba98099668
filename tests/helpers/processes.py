"""Processes of this machine, by /proc."""

from pathlib import Path


def processes_of_session(session: int) -> list[int]:
    """Living processes of a session."""
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _is_alive_in(p, session)]


def _is_alive_in(process: Path, session: int) -> bool:
    try:
        state, _, _, sid = (process / "stat").read_text().rsplit(")", 1)[1].split()[:4]
    except OSError:
        return False
    return int(sid) == session and state != "Z"
