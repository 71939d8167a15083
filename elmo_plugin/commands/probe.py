from argparse import ArgumentParser

from elmo_plugin.commands import probe_pos, probe_wsd
from elmo_plugin.commands.command import prepare_parser

DESCRIPTION = """\
Measure what the layers of a frozen biLM know, beside static word vectors and a random biLM.
"""

EPILOG = """\
example:
    %(prog)s pos --tag xpos
    %(prog)s wsd --json senses.json
`%(prog)s pos --help` and `%(prog)s wsd --help` describe them.
"""

PROBES = {
    "pos": (probe_pos, "parts of speech, by a linear classifier on each layer"),
    "wsd": (probe_wsd, "word senses, by the nearest mean vector of a sense"),
}


def add_arguments(parser: ArgumentParser) -> None:
    probes = parser.add_subparsers(title="probes", metavar="PROBE", required=True)
    for name, (command, summary) in PROBES.items():
        prepare_parser(probes.add_parser(name, help=summary), command)
