"""
List the biLMs that can be opened by a name: of AllenNLP's list, and those of this project.

The size is the number of cells and the width of each of the two layers, per direction, and the
number of parameters. What is not known is left out.

example:
    %(prog)s | grep English
    elmo embed sentences.txt vectors.hdf5 --all --bilm original
"""

from dataclasses import dataclass

from elmo_plugin.bilm.files.published import PUBLISHED


@dataclass(kw_only=True)
class Options:
    pass


def run(args: Options) -> str:
    rows = [("name", "language and text", "size", "licence", "where")]
    for name, each in PUBLISHED.items():
        place = "comes with the project" if each.is_shipped else each.options_file
        rows.append((name, each.text, each.size, each.licence, place))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
