"""
Trains an encoder for CoVe, in a translation model in plain PyTorch, without AllenNLP:

    python examples/train_cove.py CORPUS VECTORS OUT

CORPUS is a folder with train.en, train.de, val.en and val.de (or .gz): raw text, a sentence per
line, its translation in the same line of the other file. VECTORS are word vectors of the source
language; they stay fixed. After each epoch, prints perplexity and BLEU on val and writes the
encoder to OUT, for ELMO_COVE. Needs spaCy and sacrebleu.

The model is that of McCann et al. (2017), section 3, with the attention of Luong et al. (2015).
"""

import argparse
import json
import random
from collections import Counter
from typing import List, Tuple

import numpy
import sacrebleu
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from elmo_plugin.corpora.tokenizer import tokenize_with_spacy
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.text_files import numbered_lines
from elmo_plugin.util.word_vectors import parse_vectors, vector_lines

# Padding, unknown word, start and end of a sentence.
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
PAD, UNKNOWN, START, END = range(4)
# The words of a sentence, those of its translation, and the raw translation.
Pair = Tuple[List[str], List[str], str]


class Translator(torch.nn.Module):
    def __init__(self, vectors: torch.Tensor, num_words: int, dim: int, dropout: float = 0.2):
        super().__init__()
        self.vectors = torch.nn.Embedding.from_pretrained(vectors)
        settings = {"num_layers": 2, "bidirectional": True, "batch_first": True}
        self.encoder = torch.nn.LSTM(vectors.size(1), dim, dropout=dropout, **settings)
        self.bridges = torch.nn.ModuleList(torch.nn.Linear(2 * dim, dim) for _ in range(2))
        self.embedding = torch.nn.Embedding(num_words, dim, padding_idx=PAD)
        self.cells = torch.nn.ModuleList(torch.nn.LSTMCell(n * dim, dim) for n in (2, 1))
        self.query = torch.nn.Linear(dim, 2 * dim)
        self.combination = torch.nn.Linear(3 * dim, dim)
        self.output = torch.nn.Linear(dim, num_words)
        self.dropout = torch.nn.Dropout(dropout)

    def encode(self, source):
        """The encoded source, its mask, and the decoder's states before the first word."""
        mask = source != PAD
        inputs, lengths = self.dropout(self.vectors(source)), mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        packed, (hidden, _) = self.encoder(packed)
        encoded, _ = pad_packed_sequence(packed, batch_first=True)
        # The final states of both directions. Shape: (2 layers, batch_size, 2 * dim)
        ends = torch.cat([hidden[0::2], hidden[1::2]], dim=-1)
        hidden = [bridge(end) for bridge, end in zip(self.bridges, ends)]
        states = [(each, torch.zeros_like(each)) for each in hidden]
        # Beside the states of the cells, the vector from which the last word was predicted.
        return self.dropout(encoded), mask, (*states, torch.zeros_like(hidden[0]))

    def step(self, words, states, encoded, mask):
        """The states after one more word; `output` of the last one scores the next word."""
        *states, attentional = states
        # Input feeding: the first cell also reads that vector.
        inputs = torch.cat([self.embedding(words), attentional], dim=-1)
        for number, cell in enumerate(self.cells):
            states[number] = cell(self.dropout(inputs), states[number])
            inputs = states[number][0]
        # Shape: (batch_size, num_tokens, 1)
        scores = encoded @ self.query(inputs).unsqueeze(2)
        weights = scores.masked_fill(~mask.unsqueeze(2), float("-inf")).softmax(dim=1)
        attended = torch.cat([(weights * encoded).sum(dim=1), inputs], dim=-1)
        return (*states, self.dropout(self.combination(attended).tanh()))

    def forward(self, source, target):
        """The negative log-likelihood of each word of the translations."""
        encoded, mask, states = self.encode(source)
        attentional = []
        for words in target[:, :-1].unbind(dim=1):
            states = self.step(words, states, encoded, mask)
            attentional.append(states[-1])
        is_word = target[:, 1:] != PAD
        logits = self.output(torch.stack(attentional, dim=1)[is_word])
        return torch.nn.functional.cross_entropy(logits, target[:, 1:][is_word], reduction="none")

    def translate(self, source, max_words=50):
        """The ids of each translation: the most probable word at each step."""
        encoded, mask, states = self.encode(source)
        found = [torch.full_like(source[:, 0], START)]
        for _ in range(max_words):
            states = self.step(found[-1], states, encoded, mask)
            # Neither padding nor an unknown word.
            found.append(self.output(states[-1])[:, END:].argmax(dim=1) + END)
        rows = torch.stack(found[1:], dim=1).tolist()
        return [row[: row.index(END)] if END in row else row for row in rows]


def read_pairs(corpus: str, part: str, languages: List[str]) -> List[Pair]:
    files = [numbered_lines(f"{corpus}/{part}.{each}", newline="\n") for each in languages]
    pairs = []
    for (_, source), (_, target) in zip(*files, strict=True):
        tokens = map(tokenize_with_spacy, (source.strip(), target.strip()), languages)
        pairs.append((*([token.text for token in each] for each in tokens), target.strip()))
    return pairs


def batches(pairs: List[Pair], max_words: int) -> List[List[Pair]]:
    """Translations of similar length, at most `max_words` with padding; in random order."""
    found: List[List[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: (len(pair[1]), random.random())):
        if found[-1] and len(pair[1]) * (len(found[-1]) + 1) > max_words:
            found.append([])
        found[-1].append(pair)
    return random.sample(found, len(found))


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains an encoder for CoVe with torch alone.")
    parser.add_argument("corpus", metavar="CORPUS", help="folder of parallel text")
    parser.add_argument("vectors", metavar="VECTORS", help="word vectors of the source language")
    parser.add_argument("out", metavar="OUT", help="file to write")
    parser.add_argument("--languages", nargs=2, default=["en", "de"], metavar="CODE")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--dim", type=int, default=300, help="width of each LSTM's direction")
    parser.add_argument("--words-per-batch", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()

    torch.manual_seed(0)
    random.seed(0)
    train, val = (read_pairs(args.corpus, part, args.languages) for part in ("train", "val"))
    wanted = {word for source, _, _ in train + val for word in source}
    known, _ = parse_vectors(vector_lines(args.vectors), wanted)
    source_ids = {word: number for number, word in enumerate(known, start=2)}
    counts = Counter(word for _, target, _ in train for word in target)
    words = [*SPECIAL, *(word for word, count in counts.items() if count > 1)]
    target_ids = {word: number for number, word in enumerate(words)}
    # Padding and words without a vector have zeros.
    vectors = numpy.pad(numpy.stack(list(known.values())), ((2, 0), (0, 0)))
    model = Translator(torch.from_numpy(vectors), len(words), args.dim).to(args.device)

    def tensors(batch: List[Pair]) -> List[torch.Tensor]:
        sources = [[source_ids.get(word, UNKNOWN) for word in source] for source, _, _ in batch]
        targets = [[target_ids.get(word, UNKNOWN) for word in target] for _, target, _ in batch]
        rows = (sources, [[START, *ids, END] for ids in targets])
        return [pad_sequence(list(map(torch.tensor, each)), True).to(args.device) for each in rows]

    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    num_steps = args.epochs * len(batches(train, args.words_per_batch))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, num_steps)
    for epoch in range(args.epochs):
        model.train()
        for batch in batches(train, args.words_per_batch):
            optimizer.zero_grad()
            (model(*tensors(batch)).sum() / len(batch)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
        model.eval()
        losses, found, expected = [], [], []
        with torch.no_grad():
            for batch in batches(val, args.words_per_batch):
                source, target = tensors(batch)
                losses.append(model(source, target))
                found += [" ".join(words[n] for n in row) for row in model.translate(source)]
                expected += [text for _, _, text in batch]
        perplexity = torch.cat(losses).mean().exp().item()
        # Without `force`, it warns of spaces before full stops.
        bleu = sacrebleu.corpus_bleu(found, [expected], force=True).score
        print(json.dumps({"epoch": epoch, "perplexity": perplexity, "BLEU": bleu}), flush=True)
        with atomic_write(args.out) as unfinished:
            torch.save(model.encoder.state_dict(), unfinished)


if __name__ == "__main__":
    main()
