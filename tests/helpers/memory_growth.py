"""Bytes that a run counts before it starts, beside the growth of its process: `grow(kind, size)`.

The process runs a small analysis of the kind first, which loads libraries and compiled kernels; then Linux forgets the
peak, and a larger one runs.
"""

import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WARM = 60  # animals of the small analysis
LIMIT = 6_000_000_000  # bytes of addresses of the process


def grow(kind, size):
    """(bytes that check counts, bytes grown) of an analysis of `size` animals, each in a process of its own."""
    return ask(kind, size, "count")["counted"], ask(kind, size, "run")["grown"]


def ask(kind, size, what):
    command = [sys.executable, __file__, kind, str(size), what]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def analysis_of(kind, n, folder):
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    names = [f"a{i}" for i in range(n)]
    y = rng.normal(size=n)
    records = pl.DataFrame({"animal": names, "y": y, "z": y + rng.normal(size=n)})
    records = records.with_columns(herd=pl.Series([f"h{i}" for i in rng.integers(0, max(2, n // 50), n)]))
    fixed, relationship, sampler, variances, traits = {"herd": {}}, "pedigree", {}, {}, ["y"]
    solved = {"mode": "fixed", "animal": 0.5, "residual": 0.7}
    if kind == "repeated":
        records = pl.concat([records.with_columns(y=pl.Series(rng.normal(size=n))) for _ in range(5)])
    elif kind == "few records":
        records = records[-max(40, n // 10) :]
    if kind == "traits":
        traits, sampler = ["y", "z"], {"method": "reml", "max_iterations": 2}
    elif kind == "animals":
        sampler = {"method": "reml", "max_iterations": 2}
    elif kind == "sites":
        records = pl.concat([records.with_columns(site=pl.lit(f"s{j}"), y=pl.col("y") + j) for j in range(6)])
        records = records.with_columns(y=pl.Series(rng.normal(size=6 * n)))
        traits, fixed = {"y": {"by": "site"}}, {}
        sampler = {"method": "reml", "max_iterations": 2}
        variances = {"animal": {"structure": {"kind": "factor_analytic", "factors": 1}}}
    elif kind == "spectral":
        fixed, sampler = {}, {"method": "reml"}
    elif kind in ("blup", "genomic blup"):
        sampler, variances = {"method": "blup"}, solved
    elif kind in ("serial", "structured", "marginal", "pcg", "hybrid"):
        sampler = {"method": "gibbs", "engine": kind, "samples": 10, "burn_in": 10, "chains": 1}
    elif kind == "chains":
        sampler = {"method": "gibbs", "engine": "serial", "samples": 10, "burn_in": 10, "chains": 2}
    elif kind in ("repeated", "few records", "two traits"):
        traits = ["y", "z"] if kind == "two traits" else traits
        sampler = {"method": "gibbs", "engine": "serial", "samples": 10, "burn_in": 10, "chains": 1}
    elif kind == "genomic gibbs":
        sampler = {"method": "gibbs", "engine": "serial", "samples": 10, "burn_in": 10, "chains": 1}
    data = {"phenotypes": records}
    if kind in ("sites", "spectral", "genomic blup", "genomic gibbs"):
        frequency = rng.uniform(0.2, 0.8, 400)
        genotypes = rng.binomial(2, frequency, (n, 400))
        path = folder / f"{n}.csv"
        pl.DataFrame({"id": names} | {f"m{j}": genotypes[:, j] for j in range(400)}).write_csv(path)
        data["genotypes"] = str(path)
        relationship = {"kind": "genomic", "blend": 0.05, "with": "I"}
    else:
        sires, dams = ([""] * n for _ in range(2))
        for i in range(n // 10, n):
            sires[i] = f"a{2 * rng.integers(0, (i + 1) // 2)}" if i > 1 else ""
            dams[i] = f"a{2 * rng.integers(0, i // 2) + 1}" if i > 1 else ""
        data["pedigree"] = pl.DataFrame({"animal": names, "sire": sires, "dam": dams})
    return {
        "data": data,
        "traits": traits,
        "model": {"fixed": fixed, "random": {"animal": {"relationship": relationship}}},
        "variances": variances,
        "sampler": sampler,
        "output": {"directory": str(folder / f"run{n}")},
    }


def main(kind, size, count_first):
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    import mmgibbs

    with tempfile.TemporaryDirectory() as directory:
        mmgibbs.run(analysis_of(kind, WARM, Path(directory)), progress=False)
        analysis = analysis_of(kind, size, Path(directory))
        if count_first:
            counts = mmgibbs.check(analysis)["memory"]
            print(json.dumps({"counted": counts["main"] + counts["workers"]}))
            return
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = read_status("VmRSS")
        result = mmgibbs.run(analysis, progress=False)
        workers = sum(result.info["peak_memory"]["workers"].values())
        print(json.dumps({"grown": read_status("VmHWM") - before + workers}))


def read_status(name):
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise ValueError(name)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "count")
