"""Messages of engines speak of levels by number; here they get the ids that their reader knows."""

from __future__ import annotations

import re

from mmgibbs.data.prepared import Prepared


def name_levels(message: str, prepared: Prepared) -> str:
    """The message with "level 'DE-17'" in place of 'level number 26 of 44', after the name of its effect."""
    for term, labels in zip(prepared.design.terms, prepared.levels, strict=True):
        name = re.escape(term.name)
        pattern = rf"((?:term '{name}'|effect {name}) \(.*?\), level) number ([\d,]+) of [\d,]+"
        for match in re.finditer(pattern, message):
            level = labels.ids[int(match[2].replace(",", "")) - 1]
            if level:  # a covariate has one level without a name
                message = message.replace(match[0], f"{match[1]} '{level}'")
    return message
