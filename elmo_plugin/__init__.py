"""
ELMo (Peters et al. 2018, "Deep contextualized word representations") for AllenNLP.

Importing the package registers everything AllenNLP finds by name and gives the environment
variables of the experiments their defaults.
"""

from elmo_plugin.console import quieten_command
from elmo_plugin.dependencies import check_dependencies
from elmo_plugin.environment import set_defaults

# A wrong dependency fails deep inside AllenNLP's imports: name it first.
check_dependencies()
quieten_command()
set_defaults()

import allennlp.common.checks  # noqa: E402

import elmo_plugin.bilm.character_indexer  # noqa: E402
import elmo_plugin.commands.evaluate  # noqa: E402
import elmo_plugin.commands.find_learning_rate  # noqa: E402
import elmo_plugin.commands.predict  # noqa: E402
import elmo_plugin.commands.subcommands  # noqa: E402
import elmo_plugin.modules.seq2seq_encoders  # noqa: E402
import elmo_plugin.modules.token_embedders  # noqa: E402
import elmo_plugin.tasks  # noqa: E402
import elmo_plugin.training  # noqa: E402, F401
from elmo_plugin.archives import load_archive  # noqa: E402
from elmo_plugin.bilm import Bilm, BilmOptions, load_bilm, load_weights, save_weights  # noqa: E402
from elmo_plugin.elmo import Elmo, ScalarMix, embed_sentences  # noqa: E402

__version__ = "0.2.0"

__all__ = [
    "Bilm",
    "BilmOptions",
    "Elmo",
    "ScalarMix",
    "embed_sentences",
    "load_archive",
    "load_bilm",
    "load_weights",
    "save_weights",
]
