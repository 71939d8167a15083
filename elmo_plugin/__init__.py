"""
ELMo (Peters et al. 2018, "Deep contextualized word representations").

A public name is imported when it is first used. Most need torch, NumPy and safetensors;
`load_archive`, `load_predictor` and `load_task` need AllenNLP. `elmo_plugin.plugin` registers our
types with AllenNLP.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from elmo_plugin.archives import load_archive, load_predictor, load_task
    from elmo_plugin.bilm import Bilm, BilmOptions, load_bilm, load_weights, save_weights
    from elmo_plugin.elmo import Elmo, ScalarMix, embed_sentences

__version__ = "0.4.0.dev0"

__all__ = [
    "Bilm",
    "BilmOptions",
    "Elmo",
    "ScalarMix",
    "embed_sentences",
    "load_bilm",
    "load_weights",
    "save_weights",
]

_MODULES = {
    **dict.fromkeys(("Elmo", "ScalarMix", "embed_sentences"), "elmo_plugin.elmo"),
    # From the plugin, which registers the types that archives name. Not in `__all__`, so that
    # `from elmo_plugin import *` works without AllenNLP.
    **dict.fromkeys(("load_archive", "load_predictor", "load_task"), "elmo_plugin.plugin"),
}


def __getattr__(name: str) -> Any:
    if name not in (*__all__, *_MODULES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(_MODULES.get(name, "elmo_plugin.bilm"))
    except AttributeError as error:
        # Python would say that it cannot import the name, and not why.
        raise ImportError(f"elmo_plugin.{name} cannot be imported: {error}") from error
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__, *_MODULES})


# `elmo_plugin` may be the line in .allennlp_plugins or the argument of --include-package.
if "allennlp" in sys.modules:
    import_module("elmo_plugin.plugin")
