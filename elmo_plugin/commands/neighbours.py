"""
Find the nearest contexts of a word in its sentence, layer by layer, as in table 4 of the paper.

example:
    %(prog)s build text.txt contexts
    %(prog)s query contexts 'They walked along the [bank] of the river .'
`%(prog)s build --help` and `%(prog)s query --help` describe them.
"""

SUBCOMMANDS = {
    "build": "write the vectors of a text into a folder",
    "query": "find the nearest contexts of a word in a sentence",
}
