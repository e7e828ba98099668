"""Families of responses: how the records of a trait are observed that is not normal.

To add a family, write its class in a file of its own and list the class in `KINDS`. The reference of keys has the
families in this order.
"""

from mmgibbs.models.families.base import Response
from mmgibbs.models.families.categories import Binary, Categories
from mmgibbs.models.families.count import Count
from mmgibbs.models.families.interval import Interval

KINDS: tuple[type[Response], ...] = (Binary, Categories, Interval, Count)
FAMILIES = {family.kind: family for family in KINDS}  # by the word in an analysis file
NORMAL = "normal"  # the word of a trait that is observed as it is
__all__ = ("FAMILIES", "KINDS", "NORMAL", "Binary", "Categories", "Count", "Interval", "Response")
