"""The escapes of the Penn Treebank and of parsers trained on it."""

_ESCAPES = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
    "`": "'",
}


def plain_word(word: str) -> str:
    """
    The word without Penn Treebank escapes, as in the vocabularies of word vectors and language
    models: plain brackets and quotes, and no backslash before a slash or an asterisk.
    """
    return _ESCAPES.get(word) or word.replace("\\/", "/").replace("\\*", "*")
