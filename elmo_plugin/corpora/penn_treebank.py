"""How the Penn Treebank, and parsers that learned from it, spell what it cannot write plainly."""

__all__ = ["plain_word"]

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
    The word as word vectors, language models and those who type a sentence write it: brackets and
    quotes themselves, and no backslash before a slash or an asterisk.
    """
    return _ESCAPES.get(word) or word.replace("\\/", "/").replace("\\*", "*")
