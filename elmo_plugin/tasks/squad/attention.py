import torch
from allennlp.modules.matrix_attention import LinearMatrixAttention
from allennlp.nn.util import masked_softmax
from torch.nn.functional import linear, pad

# Scores of self-attention that are computed at once: 64 MB.
_MAX_SCORES = 2**24


class BiAttention(torch.nn.Module):
    """
    The attention between passage and question of
    [Seo et al. (2017)](https://arxiv.org/abs/1611.01603): each token of the passage, c, beside what
    the question has for it, a, and what the passage has for the question, q:
    `[c; a; c ⊙ a; c ⊙ q]`, through one layer with a ReLU.

    A passage token and a question token belong together as far as three learned vectors say: one
    of each, and one of their product. Memory grows with the product of the lengths of the texts.

    # Parameters

    input_dim, output_dim : `int`
        Widths of a token of both texts, and of what comes out.
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.similarity = LinearMatrixAttention(input_dim, input_dim, "x,y,x*y")
        self.merge = torch.nn.Linear(4 * input_dim, output_dim)

    def forward(
        self,
        passage: torch.Tensor,
        question: torch.Tensor,
        passage_mask: torch.Tensor,
        question_mask: torch.Tensor,
    ) -> torch.Tensor:
        """
        # Parameters

        passage, question : `torch.Tensor`
            Shape `(batch_size, num_passage_tokens, input_dim)` and
            `(batch_size, num_question_tokens, input_dim)`.
        passage_mask, question_mask : `torch.Tensor`
            Shape `(batch_size, num_passage_tokens)` and `(batch_size, num_question_tokens)`.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_passage_tokens, output_dim)`.
        """
        # Shape: (batch_size, num_passage_tokens, num_question_tokens)
        scores = self.similarity(passage, question)
        scores = scores.masked_fill(~question_mask.unsqueeze(1), -torch.inf)
        alignment = scores.softmax(dim=2)
        # Shape: (batch_size, num_passage_tokens)
        weights = masked_softmax(scores.amax(dim=2), passage_mask, memory_efficient=True)
        # Shape: (batch_size, 1, input_dim)
        asked_for = weights.unsqueeze(1).bmm(passage)
        # The layer, block by block, since two of the four are small products then: q is the same
        # for all tokens of a passage, and a is made of the few of a question.
        of_token, of_attended, of_both, of_asked = self.merge.weight.chunk(4, dim=1)
        # Shape: (batch_size, input_dim, output_dim)
        of_token = (of_token + of_asked * asked_for).transpose(1, 2)
        # Shape: (batch_size, num_passage_tokens, output_dim)
        merged = linear(passage * alignment.bmm(question), of_both, self.merge.bias)
        merged = torch.baddbmm(merged, alignment, linear(question, of_attended))
        return torch.baddbmm(merged, passage, of_token).relu()


class SelfAttention(torch.nn.Module):
    """
    The attention of a text to itself of
    [Clark and Gardner (2017)](https://arxiv.org/abs/1710.10723): each token, x, beside
    what the others have for it, a: `[x; a; x ⊙ a]`, through one layer with a ReLU.

    Scores are those of `BiAttention`. A token never attends to itself, and, as in the authors'
    program, to nothing as far as a learned number outweighs the scores of the others. Memory grows
    with the length of the text alone while nothing is learned.

    # Parameters

    input_dim, output_dim : `int`
        Widths of a token, and of what comes out.
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.of_reader = torch.nn.Linear(input_dim, 1, bias=False)
        self.of_read = torch.nn.Linear(input_dim, 1, bias=False)
        self.of_product = torch.nn.Parameter(torch.empty(input_dim))
        self.nothing = torch.nn.Parameter(torch.tensor(-1.0))
        bound = (6 / (3 * input_dim + 1)) ** 0.5
        for weight in (self.of_reader.weight, self.of_read.weight, self.of_product):
            torch.nn.init.uniform_(weight, -bound, bound)
        self.merge = torch.nn.Linear(3 * input_dim, output_dim)

    def forward(self, text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        text : `torch.Tensor`
            Shape `(batch_size, num_tokens, input_dim)`.
        mask : `torch.Tensor`
            Shape `(batch_size, num_tokens)`.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, output_dim)`.
        """
        # What a score owes to the token that attends cancels out among the tokens, not beside
        # nothing: the last key, whose value is zero. Shape: (batch_size, num_tokens, input_dim + 1)
        queries = torch.cat([text * self.of_product, self.nothing - self.of_reader(text)], dim=2)
        keys = pad(text, (0, 1, 0, 1))
        keys[:, -1, -1] = 1.0
        # Shape: (batch_size, 1, num_tokens + 1)
        of_keys = self.of_read(text).squeeze(2).masked_fill(~mask, -torch.inf)
        of_keys = pad(of_keys, (0, 1)).unsqueeze(1)
        step = max(1, _MAX_SCORES // of_keys.numel())
        attended = []
        for start in range(0, text.size(1), step):
            # Shape: (batch_size, num_queries, num_tokens + 1)
            scores = torch.baddbmm(of_keys, queries[:, start : start + step], keys.transpose(1, 2))
            scores.diagonal(start, dim1=1, dim2=2).fill_(-torch.inf)
            attended.append(scores.softmax(dim=2)[..., :-1].bmm(text))
        # Shape: (batch_size, num_tokens, input_dim)
        others = torch.cat(attended, dim=1)
        return self.merge(torch.cat([text, others, text * others], dim=2)).relu()
