"""
Puts off the imports of large libraries until their names are used.

AllenNLP imports torchvision, scikit-learn, NLTK, spaCy and others for types that few archives name;
they take more than half of the time that a prediction of one sentence takes.
"""

import builtins
import sys
from contextlib import contextmanager
from functools import cached_property
from pkgutil import resolve_name
from typing import Any, Collection, Iterator, Tuple


class LateName:
    """
    Stands for a module, class or function, which is imported when it is called, subscripted, or
    constructed as the base of another class. It may also be an annotation, and the class that
    `isinstance` is asked for: if its library is not imported, no object is an instance of it.

    `path` is dotted. The first use raises `ImportError` if the library is missing.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return self._value.__version__
        # `typing`, `copy` and others ask for such names to find out what an object can do.
        if name.startswith("_"):
            return super().__getattribute__(name)
        return self.__dict__.setdefault(name, LateName(f"{self._path}.{name}"))

    @cached_property
    def _value(self) -> Any:
        return resolve_name(self._path)

    def __reduce__(self) -> Tuple[type, Tuple[str]]:
        return LateName, (self._path,)

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self._value(*arguments, **settings)

    def __getitem__(self, key: Any) -> Any:
        return self._value[key]

    def __instancecheck__(self, instance: Any) -> bool:
        is_imported = self._path.partition(".")[0] in sys.modules
        return is_imported and isinstance(instance, self._value)

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[type]:
        name = self

        class LateBase(type):
            def __call__(cls, *arguments: Any, **settings: Any) -> Any:
                for child in base.__subclasses__():
                    bases = (name._value if each is base else each for each in child.__bases__)
                    child.__bases__ = tuple(bases)
                return super().__call__(*arguments, **settings)

        base: Any = LateBase(self._path, (), {})
        return (base,)


@contextmanager
def late_imports(libraries: Collection[str], importers: Tuple[str, ...]) -> Iterator[None]:
    """
    In this context, modules whose names begin with one of `importers` get a `LateName` in place of
    those `libraries`, packages or their parts, that are not imported yet. Other modules, and all
    modules afterwards, get the libraries. Replaces `builtins.__import__`: not for two threads at
    once.
    """
    late = tuple(f"{library}." for library in libraries if library not in sys.modules)
    import_now = builtins.__import__

    def import_late(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        importer = (globals or {}).get("__name__", "")
        if level == 0 and f"{name}.".startswith(late) and importer.startswith(importers):
            return LateName(name if fromlist else name.partition(".")[0])
        return import_now(name, globals, locals, fromlist, level)

    builtins.__import__ = import_late
    try:
        yield
    finally:
        builtins.__import__ = import_now
