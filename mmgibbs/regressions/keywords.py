"""Objects that are built from keywords, whose values can be read and changed by name as in scikit-learn."""

from __future__ import annotations

import inspect
import reprlib
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from mmgibbs.errors import ConfigError, nearest
from mmgibbs.regressions.scikit_learn import not_fitted


def _explain_positional(cls: type[Keywords], value: object) -> str:
    """Say what to write in place of a value without a keyword, such as a formula."""
    names = cls._parameter_names()
    keywords = ", ".join(f"{name}=..." for name in names[:3])
    message = f"{cls.__name__}: expected keywords ({keywords}), got {reprlib.repr(value)} without one"
    if "traits" in names:
        formula = repr(value) if isinstance(value, str) and "~" in value else "FORMULA"
        message += f"; mmgibbs.model({formula}, records, pedigree) takes a formula"
    return message


class Keywords:
    """Base of objects whose constructor parameters are attributes of the same name, kept as given."""

    OF_FIT: ClassVar[tuple[str, ...]] = ()  # attributes that are there once `fit` has run

    if not TYPE_CHECKING:

        def __new__(cls, *values: Any, **keywords: Any) -> Self:
            """Say how to write what was given without a keyword."""
            if values:
                raise ConfigError(_explain_positional(cls, values[0]))
            return super().__new__(cls)

        def __getattr__(self, name: str) -> Any:
            """Explain a missing name: before `fit`, what `fit` sets is missed by name."""
            cls = type(self)
            computed = getattr(cls, name, None)
            if isinstance(computed, property):
                return computed.fget(self)  # once more, for the error that it ends in
            if name in cls.OF_FIT:
                raise not_fitted(f"{cls.__name__}: not fitted yet, needed fit(...) before '{name}'")
            near = "" if name.startswith("_") else f"; {nearest(name, cls.OF_FIT, 'after fit there are')}"
            raise AttributeError(f"{cls.__name__} has no attribute '{name}'{near}", name=name, obj=self)

    def _take(self, values: dict) -> None:
        """Keep the parameters of the constructor, from its `locals()`, under their names."""
        for name in self._parameter_names():
            setattr(self, name, values[name])

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters of the constructor by name.

        Parameters
        ----------
        deep : bool, default True
            Accepted for scikit-learn, without effect.

        Returns
        -------
        dict
            Parameter names and values.
        """
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters of the constructor.

        Parameters
        ----------
        **parameters : Any
            New values by name.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ConfigError
            A name is unknown.
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ConfigError(
                    f"{type(self).__name__}: unknown parameter '{name}'; {nearest(name, known, 'the parameters are')}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Write the constructor call, with the parameters that differ from their defaults."""
        defaults = inspect.signature(type(self).__init__).parameters
        changed = {k: v for k, v in self.get_params().items() if not _is(v, defaults[k].default)}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def _is(value: object, default: object) -> bool:
    """Compare a parameter with its default; arrays are never a default."""
    return value is default or (type(value) is type(default) and np.ndim(value) == 0 and value == default)  # type: ignore[arg-type]
