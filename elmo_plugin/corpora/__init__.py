"""
Readers of corpora: one module per format, from files to frozen dataclasses, without torch.

| a line of the file | reader of lines | formats |
| --- | --- | --- |
| a JSON object | `json_lines.read_objects` | `minimal_pairs`, `snli`, `word_senses` |
| a word in columns | `columns.read_blocks` | `conll2003`, `conll2012`, `tagged_words` |
| something else | `util.text_files.numbered_lines` | `sentence_per_line`, `squad`, `sst` |

All of them rest on `numbered_lines`, which knows gzip, URLs and encodings. What they refuse is a
`ValueError`, made by `util.errors.expect`: `FILE:LINE: expected …, found …`.
"""
