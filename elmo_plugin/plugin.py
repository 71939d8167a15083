"""
The module that AllenNLP imports, if `.allennlp_plugins` or `~/.allennlp/plugins` names it.
Registers all types that experiments name, and gives their environment variables their defaults.
"""

from elmo_plugin.console import quieten_command
from elmo_plugin.corpora.tagged_words import span_columns
from elmo_plugin.dependencies import check_dependencies
from elmo_plugin.environment import set_defaults
from elmo_plugin.util.late_imports import late_imports

# First, because a wrong version fails deep inside AllenNLP's imports.
check_dependencies()
quieten_command()
set_defaults(span_columns)

# What AllenNLP and our tasks import for types that few archives name.
_LATE = "cached_path fairscale huggingface_hub nltk scipy sklearn spacy tensorboardX torchvision"

with late_imports([*_LATE.split(), "transformers"], ("allennlp", "elmo_plugin.tasks")):
    import elmo_plugin.allennlp_patches  # noqa: F401
    import elmo_plugin.bilm.character_indexer  # noqa: F401
    import elmo_plugin.commands.subcommands  # noqa: F401
    import elmo_plugin.elmo.cache.prefetch  # noqa: F401
    import elmo_plugin.elmo.placement  # noqa: F401
    import elmo_plugin.modules.seq2seq_encoders  # noqa: F401
    import elmo_plugin.modules.token_embedders  # noqa: F401
    import elmo_plugin.tasks  # noqa: F401
    import elmo_plugin.training  # noqa: F401
    from elmo_plugin.archives import load_archive, load_predictor, load_task  # noqa: F401
