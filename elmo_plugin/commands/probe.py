from elmo_plugin.commands import probe_pos, probe_wsd

DESCRIPTION = """\
Measure what the layers of a frozen biLM encode, compared with static word vectors and a random
biLM.
"""

EPILOG = """\
example:
    %(prog)s pos --tag xpos
    %(prog)s wsd --json senses.json
`%(prog)s pos --help` and `%(prog)s wsd --help` describe them.
"""

SUBCOMMANDS = {
    "pos": (probe_pos, "parts of speech, by a linear classifier on each layer"),
    "wsd": (probe_wsd, "word senses, by the nearest mean vector of a sense"),
}
