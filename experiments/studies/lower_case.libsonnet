// Words in lower case, also if the word vectors are cased: the setting of the first runs of SRL.
{ words: [word { indexer+: { lowercase_tokens: true } } for word in super.words] }
