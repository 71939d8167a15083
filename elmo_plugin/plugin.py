"""
The module that AllenNLP imports, if `.allennlp_plugins` or `~/.allennlp/plugins` names it.
Registers all types that experiments name, and gives their environment variables their defaults.
"""

from elmo_plugin.console import quieten_command
from elmo_plugin.corpora.tagged_words import span_columns
from elmo_plugin.dependencies import check_dependencies
from elmo_plugin.environment import set_defaults

# First, because a wrong version fails deep inside AllenNLP's imports.
check_dependencies()
quieten_command()
set_defaults(span_columns)

import elmo_plugin.allennlp_patches  # noqa: E402
import elmo_plugin.bilm.character_indexer  # noqa: E402
import elmo_plugin.commands.subcommands  # noqa: E402
import elmo_plugin.elmo.cache.prefetch  # noqa: E402
import elmo_plugin.elmo.placement  # noqa: E402
import elmo_plugin.modules.seq2seq_encoders  # noqa: E402
import elmo_plugin.modules.token_embedders  # noqa: E402
import elmo_plugin.tasks  # noqa: E402
import elmo_plugin.training  # noqa: E402, F401
from elmo_plugin.archives import (  # noqa: E402, F401
    load_archive,
    load_predictor,
    load_task,
)
