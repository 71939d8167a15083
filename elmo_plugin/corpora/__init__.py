"""
Readers of corpora: one module per format, from files to frozen dataclasses, without torch.

| a line of the file | reader of lines | formats |
| --- | --- | --- |
| a JSON object | `json_lines.read_objects` | `minimal_pairs`, `snli`, `word_senses` |
| a word in columns | `columns.read_blocks` | `conll2003`, `conll2012`, `tagged_words` |
| named columns | `records.read_records` | `records` |
| something else | `util.text_files.numbered_lines` | `sentence_per_line`, `squad`, `sst` |

All of them use `numbered_lines`, which handles gzip, URLs and encodings. For a malformed file they
raise the `ValueError` of `util.errors.expect`: `FILE:LINE: expected …, found …`.
"""
