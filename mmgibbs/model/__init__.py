"""What is sampled, as plain data: design, terms, covariance matrices.

`mmgibbs.model(formula, records, pedigree)` makes an `mmgibbs.Model`: the function that users call has the name of this
package, so the package can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that makes a model when it is called."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Make an `mmgibbs.Model`, whose arguments these are."""
        import mmgibbs

        return mmgibbs.Model(*arguments, **keywords)


sys.modules[__name__].__class__ = _CallablePackage
