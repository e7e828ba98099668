"""Digests of the numbers of every analysis in configs/, to hold two states of the program together bit for bit.

    python tests/verification/draw_digests.py --tree . --output after.json              # short chains, engines and
    options varied
    python tests/verification/draw_digests.py --tree ../before --output before.json --full   # each file as it is
    written python tests/verification/draw_digests.py --compare before.json after.json

A change of structure must not change a draw: run it on the commit before and on the one after, on one machine (digests
differ between types of CPU). Analyses run through the command line alone, so that any state of the program can be
asked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SHORT = {"chains": 2, "burn_in": 30, "samples": 120, "thin": 2}
NAMED = {"engine": "serial"}  # of mixed models, so that states in which `auto` takes different ones can be compared
TWO_THREADS = {"engine": "structured", "threads": 2}
MARGINAL = {"engine": "marginal", "burn_in": 120}
JOINT_SNPS = {"traits": "[birth_weight,weaning_weight]", "model.markers.snps.across_traits": "joint"}
# Beside every file as it is: engines, updates, precisions and threads, on models with different relationships.
VARIED = {
    "beef": (
        {"engine": "structured", "threads": 1},
        {"engine": "structured", "threads": 2},
        {"engine": "structured", "precision": "single"},
        {"engine": "hybrid"},
        {"engine": "hybrid", "partition": "equal"},
        {"engine": "hybrid", "partition": "effect", "update": "site"},
        {"engine": "pcg"},
        {"update": "site"},
        {"precision": "single"},
        {"interweave": "false"},
        {"method": "reml"},
    ),
    "calving_ease": (TWO_THREADS,),
    "decisions": ({"engine": "structured"},),
    "genomic": (TWO_THREADS, JOINT_SNPS | TWO_THREADS, JOINT_SNPS | {"engine": "serial"}),
    "horseshoe_probit": ({"precision": "single"},),
    "longevity": (TWO_THREADS,),
    "mastitis": (TWO_THREADS,),
    "random_regression": ({"engine": "structured"}, TWO_THREADS, {"engine": "pcg"}, MARGINAL, {"method": "reml"}),
    "relationship_file": ({"engine": "structured"}, TWO_THREADS, {"engine": "hybrid"}, {"engine": "pcg"}, MARGINAL),
    "repeated_records": ({"engine": "structured", "update": "site"}, MARGINAL, {"method": "reml"}),
    "single_step": (TWO_THREADS,),
    "unknown_parent_groups": ({"engine": "structured"}, {"engine": "hybrid"}, {"engine": "pcg"}),
    "weights": ({"engine": "structured"}, {"engine": "hybrid"}, {"engine": "pcg"}),
}


def cases(tree: Path, full: bool) -> dict[str, tuple[Path, dict]]:
    """Name -> (analysis file, changes of its keys: those of the sampler without a prefix)."""
    found = {}
    for path in sorted(tree.glob("configs/*.yaml")):
        text = path.read_text(encoding="utf-8")
        blup, mixed = "method: blup" in text, "plugin:" not in text
        short = {} if full or blup else SHORT | (NAMED if mixed else {})
        found[path.stem] = (path, short)
        for varied in () if full else VARIED.get(path.stem, ()):
            name = ",".join(f"{k}={v}" for k, v in varied.items())
            found[f"{path.stem}:{name}"] = (path, varied if "method" in varied else short | varied)
    return found


def digests(tree: Path, path: Path, settings: dict) -> dict[str, str]:
    """What of the run -> digest of its numbers."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        given = [f"{_full_key(k)}={v}" for k, v in settings.items()] + [f"output.directory={run}"]
        command = [sys.executable, "-m", "mmgibbs", "run", str(path.resolve()), "--no-report"]
        for setting in given:
            command += ["--set", setting]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"failed": done.stderr.strip()[-500:]}
        tables = {name: _of_table(run / f"{name}.parquet", name) for name in ("summary", "solutions")}
        return {**_of_draws(run / "draws.nc"), **tables["summary"], **tables["solutions"]}


def _full_key(key: str) -> str:
    return key if "." in key or key == "traits" else f"sampler.{key}"


def _of_draws(path: Path) -> dict[str, str]:
    import xarray

    found = {}
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        for group in ("posterior", "sample_stats"):
            for name, values in sorted(tree[group].data_vars.items()) if group in tree else ():
                found[f"{group}/{name}"] = _digest(values.to_numpy())
    return found


def _of_table(path: Path, name: str) -> dict[str, str]:
    if not path.exists():  # a regression has no solutions
        return {}
    import polars as pl

    frame = pl.read_parquet(path)
    return {f"{name}/{c.name}": _digest(c.to_numpy()) for c in frame if c.dtype.is_numeric()}


def _digest(values) -> str:
    return hashlib.sha256(f"{values.shape}{values.dtype}".encode() + values.tobytes()).hexdigest()[:16]


def compare(before: dict, after: dict) -> list[str]:
    """A line for each case and number that is not the same."""
    lines = [f"{name}: only {'before' if name in before else 'after'}" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        then, now = before[name], after[name]
        changed = [k for k in sorted(then.keys() | now.keys()) if then.get(k) != now.get(k)]
        lines += [f"{name}: {k}: {then.get(k, 'absent')} -> {now.get(k, 'absent')}" for k in changed]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="digests of the numbers of every analysis in configs/")
    parser.add_argument("--tree", type=Path, default=Path(), help="a checkout of the program")
    parser.add_argument("--output", type=Path, help="JSON file for the digests")
    parser.add_argument("--full", action="store_true", help="every file as it is written, nothing shortened or varied")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="say what differs")
    options = parser.parse_args()
    if options.compare:
        before, after = (json.loads(p.read_text(encoding="utf-8")) for p in options.compare)
        if options.only:
            before, after = ({k: v for k, v in d.items() if k.startswith(options.only)} for d in (before, after))
        lines = compare(before, after)
        print("\n".join(lines) or f"{len(before)} cases, {sum(map(len, before.values()))} digests: all the same")
        return int(bool(lines))
    found = {}
    for name, (path, settings) in cases(options.tree, options.full).items():
        if name.startswith(options.only):
            found[name] = digests(options.tree, path, settings)
            print(
                f"{name}: {len(found[name])} digests" if "failed" not in found[name] else f"{name}: {found[name]}",
                flush=True,
            )
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any("failed" in d for d in found.values()))


if __name__ == "__main__":
    sys.exit(main())
