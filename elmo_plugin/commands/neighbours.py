from elmo_plugin.commands import neighbours_build, neighbours_query

DESCRIPTION = """\
Find the nearest contexts of a word in its sentence, layer by layer, as in table 4 of the paper.
"""

EPILOG = """\
example:
    %(prog)s build text.txt contexts
    %(prog)s query contexts 'They walked along the [bank] of the river .'
`%(prog)s build --help` and `%(prog)s query --help` describe them.
"""

SUBCOMMANDS = {
    "build": (neighbours_build, "write the vectors of a text into a folder"),
    "query": (neighbours_query, "find the nearest contexts of a word in a sentence"),
}
