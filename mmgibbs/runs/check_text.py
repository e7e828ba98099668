"""What `mmgibbs check` prints."""

from __future__ import annotations

from mmgibbs.pedigree.tables import counted

MAX_COLUMNS = 10  # traits of a table
SHOWN_PAIRS = 5


class Counts(dict):
    """Counts of `mmgibbs.check`; a notebook shows them as the command prints them."""

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import text_as_html

        return text_as_html("\n".join([counts_as_text(self), *notes_as_text(self)]))


def counts_as_text(counts: dict) -> str:
    """The counts of `mmgibbs.check` for people to read."""
    if "plugin" in counts:
        return _regression_as_text(counts)
    data = counts["data"]
    lines = [f"analysis {counts['analysis']}", "", _records(data["records"])]
    for trait, n in data["observations"].items():
        kinds = ", ".join(f"{of:,} {kind}" for kind, of in data.get("observed_as", {}).get(trait, {}).items())
        lines.append(f"{n:,} observations of {trait}" + (f": {kinds}" if kinds else ""))
    if "residual_classes" in data:
        of_class = ", ".join(f"{n:,} of {name}" for name, n in data["residual_classes"].items())
        lines.append(f"records by residual class: {of_class}")
    if "animals" in data:
        lines.append(f"{data['animals']:,} animals in the pedigree")
    if "genotypes" in data:
        lines += _genotypes(data["genotypes"])
    for m in counts["markers"]:
        lines.append(
            f"SNP effects '{m['term']}' on {m['trait']}: {m['SNPs']:,} SNPs, prior {m['prior']}, {m['records']:,} "
            f"records of genotyped animals; variance of an effect starts at {m['effect_variance']['start']:.3g}"
        )
        if "joint" in m:
            joint, states = m["joint"], m["joint"].get("states", {})
            of_states = f"; states of a SNP: {', '.join(states)}" if states else ""
            lines.append(f"SNP effects '{m['term']}' on {' and '.join(joint['traits'])} covary{of_states}")
    rows = [
        (t["term"], t["kind"].replace("fixed, identity, ", "fixed, "), t["levels"], t["equations"], t["colours"])
        for t in counts["terms"]
    ]
    lines += ["", *_table(("term", "kind", "levels", "equations", "colours"), rows)]
    for common in counts["common_levels"]:
        lines += ["", *_common_levels(**common)]
    rows = [(name, *p.values()) for name, p in counts["partitions"].items()]
    head = ("partition", "blocks", "rows of the largest", "nonzeros", "inside diagonal blocks", "outside")
    lines += ["", *_table(head, rows)]
    lines += ["", f"{counts['equations']:,} equations in {counts['bytes'] / 1e6:,.1f} MB"]
    lines += [_memory(counts["memory"])] if "memory" in counts else []
    lines += [f"engine {counts['engine']} ({counts['engine_chosen_because']})"] if "engine" in counts else []
    lines += [_device(counts["device"])] if "device" in counts else []
    return "\n".join(lines)


def data_as_text(data: dict) -> str:
    """The counts of the data of a mixed model in one line."""
    parts = [_records(data["records"]), counted(len(data["observations"]), "trait")]
    parts += [f"{data['animals']:,} animals in the pedigree"] if "animals" in data else []
    if "genotypes" in data:
        kept = data["genotypes"]["kept"]
        parts.append(f"{kept['SNPs']:,} SNPs of {kept['animals']:,} genotyped animals")
    return "; ".join(parts)


def _records(counts: dict) -> str:
    left_out = [f"{n:,} left out ({reason})" for reason, n in counts["left_out"].items() if n]
    return ", ".join([f"{counts['read']:,} records read", f"{counts['used']:,} used", *left_out])


def _memory(counts: dict[str, int]) -> str:
    """Describe the memory of the whole run."""
    workers = f", and {counts['workers'] / 1e6:,.1f} MB in processes of chains" if counts["workers"] else ""
    return f"memory: about {counts['main'] / 1e6:,.1f} MB beside libraries{workers}"


def _device(counts: dict) -> str:
    """Memory, and the least time of a sweep where it is known."""
    line = f"device {counts['name']}: {counts['free_bytes']:,} bytes free"
    if "bytes" in counts:
        line += f", {counts['bytes']:,} bytes needed"
    if "bytes_at_least" in counts:
        line += f", at least {counts['bytes_at_least']:,} bytes needed, for the predictors"
    if "matrix_bytes" in counts:
        line += f", and at least {counts['matrix_bytes']:,} for the matrix"
        line += "" if "bound" in counts else ", which does not fit and is copied there in every sweep"
    if "bound" in counts:
        bound = counts["bound"]
        operations = f" in {bound['operations']:,} operations" if "operations" in bound else ""
        line += (
            f"; {bound['unit']} moves {bound['bytes']:,} bytes{operations}, at least "
            f"{1e3 * bound['seconds_at_least']:.3g} ms at the nominal "
            f"{bound['nominal_bytes_per_second'] / 1e9:,.0f} GB/s (not measured)"
        )
    return line


def _common_levels(term: str, traits: list[str], levels: list[list[int]]) -> list[str]:
    """Levels that each pair of traits has in common, below the diagonal; of many traits the least connected pairs."""
    if len(traits) <= MAX_COLUMNS:
        rows = [(name, *levels[i][: i + 1], *[""] * (len(traits) - i - 1)) for i, name in enumerate(traits)]
        return _table((f"levels of {term} in common", *traits), rows)
    pairs = sorted((levels[i][j], traits[j], traits[i]) for i in range(len(traits)) for j in range(i))
    median = pairs[len(pairs) // 2][0]
    least = ", ".join(f"{n:,} ({a} and {b})" for n, a, b in pairs[:SHOWN_PAIRS])
    return [f"levels of {term} in common, of {len(pairs):,} pairs of traits: median {median:,}, least {least}"]


def _genotypes(counts: dict) -> list[str]:
    """Describe what was read, left out and kept, and which of the genotyped have other sources."""
    both = ("SNPs", "animals")
    rows = [("read", *(counts["read"][what] for what in both))]
    rows += [
        (f"dropped: {step['why']}", *(step["count"] if step["what"] == what else "" for what in both))
        for step in counts["dropped"]
    ]
    rows.append(("kept", *(counts["kept"][what] for what in both)))
    matched = counts["matched"]
    named = {"with_records": "have records", "in_pedigree": "are in the pedigree"}
    known = [f"{matched[key]:,} {text}" for key, text in named.items() if key in matched]
    of_all = f"of {matched['animals']:,} genotyped animals {', '.join(known)}"
    return ["", *_table((f"genotypes of {counts['file']}", *both), rows), *([of_all] if known else [])]


def _regression_as_text(counts: dict) -> str:
    data = counts["data"]
    size = {name: " x ".join(str(n) for n in shape) or "1" for name, shape in counts["parameters"].items()}
    lines = [
        f"analysis {counts['analysis']}, regression {counts['plugin']}",
        "",
        _records(data["records"]),
        f"{data['predictors']:,} predictors as {counts['predictor_type']}, {counts['bytes'] / 1e6:,.1f} MB",
        "",
        *_table(("parameter", "size"), list(size.items())),
        "",
        *_table(("option", "value"), [(name, str(value)) for name, value in counts["options"].items()]),
        *(["", _device(counts["device"])] if "device" in counts else []),
    ]
    return "\n".join(lines)


def notes_as_text(counts: dict) -> list[str]:
    """Notes and warnings, a line each."""
    return [f"note: {note}" for note in counts["notes"]] + [f"warning: {text}" for text in counts["warnings"]]


def _table(head: tuple[str, ...], rows: list[tuple]) -> list[str]:
    """Text to the left, numbers to the right, under their heads."""
    cells = [
        head,
        *(
            tuple("not counted" if v is None else f"{v:,}" if isinstance(v, int) else str(v) for v in row)
            for row in rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    number = [all(row[j] == "" or not isinstance(row[j], str) for row in rows) for j in range(len(head))]
    return [
        "  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, number, strict=True)).rstrip()
        for row in cells
    ]
