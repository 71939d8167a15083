"""What the tests of the format write into their files."""

INSTANCE = """\
#begin document (tc/talk/0001); part 003
tc/talk/0001 3 0 Mary NNP (TOP(S(NP* - - - Ann (PERSON) (ARG0* * (1|(2)
tc/talk/0001 3 1 Stone NNP *) - - - Ann * *) (ARG0*) 1)
tc/talk/0001 3 2 gave VBD (VP* give 01 4 Ann * (V* * -
tc/talk/0001 3 3 up RP *)) - - - Ann * *) * -
tc/talk/0001 3 4 running VBG *)) run 02 - - (DATE*) (ARG1*) (V*) (2)

#end document
"""


def write(tmp_path, text, name="dev.gold_conll"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def document(sentences):
    return f"#begin document (a); part 000\n{sentences}#end document\n"


def rows(*columns, coreference=None, framesets=None):
    """A sentence with the given predicate columns, each a string of cells."""
    cells = [column.split() for column in columns]
    num_tokens = len((cells or [coreference.split()])[0])
    coreference = (coreference or "- " * num_tokens).split()
    framesets = (framesets or "- " * num_tokens).split()
    return "".join(
        " ".join(
            ["doc", "0", str(row), f"w{row}", "NN", "*", "-", framesets[row], "-", "-"]
            + ["*", *(column[row] for column in cells), coreference[row]]
        )
        + "\n"
        for row in range(num_tokens)
    )
