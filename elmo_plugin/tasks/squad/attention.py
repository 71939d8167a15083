import torch
from allennlp.modules.matrix_attention import LinearMatrixAttention
from allennlp.nn.util import masked_softmax
from torch.nn.functional import linear, pad

from elmo_plugin.util.tensors import load_scalars

# Largest number of self-attention scores held at once: 64 MB.
_MAX_SCORES = 2**24


class BiAttention(torch.nn.Module):
    """
    Attention between passage and question ([Seo et al., 2017](https://arxiv.org/abs/1611.01603)). A
    passage token `c` and a question token have the similarity `w · [c; question token; product]`.
    From these follow `a`, the attended question vector of `c`, and `q`, one attended passage
    vector. The output is `ReLU(linear([c; a; c ⊙ a; c ⊙ q]))`. Memory grows with both lengths'
    product.
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
        """From `(batch_size, num_passage_tokens, input_dim)` to `(..., output_dim)`."""
        # Shape: (batch_size, num_passage_tokens, num_question_tokens)
        scores = self.similarity(passage, question)
        scores = scores.masked_fill(~question_mask.unsqueeze(1), -torch.inf)
        alignment = scores.softmax(dim=2)
        # Shape: (batch_size, num_passage_tokens)
        summary = masked_softmax(scores.amax(dim=2), passage_mask, memory_efficient=True)
        # Shape: (batch_size, 1, input_dim)
        attended_passage = summary.unsqueeze(1).bmm(passage)
        # `merge` is applied block by block to save time: q is the same for the whole passage, and a
        # is a weighted mean of the question's few vectors.
        weights = self.merge.weight.chunk(4, dim=1)
        passage_weight, attended_weight, product_weight, summary_weight = weights
        # Shape: (batch_size, input_dim, output_dim)
        passage_weight = (passage_weight + summary_weight * attended_passage).transpose(1, 2)
        # Shape: (batch_size, num_passage_tokens, output_dim)
        merged = linear(passage * alignment.bmm(question), product_weight, self.merge.bias)
        merged = torch.baddbmm(merged, alignment, linear(question, attended_weight))
        return torch.baddbmm(merged, passage, passage_weight).relu()


class SelfAttention(torch.nn.Module):
    """
    Self-attention of a text ([Clark and Gardner, 2017](https://arxiv.org/abs/1710.10723)). Scores
    are computed as in `BiAttention`. A token does not attend to itself, but may attend to nothing:
    as in the authors' program, each softmax includes a learned `null_logit`, whose value is the
    zero vector. With `a` the attended vector of token `x`, the output is
    `ReLU(linear([x; a; x ⊙ a]))`. Without gradients, memory grows linearly with the length.
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.query_projection = torch.nn.Linear(input_dim, 1, bias=False)
        self.key_projection = torch.nn.Linear(input_dim, 1, bias=False)
        self.product_weight = torch.nn.Parameter(torch.empty(input_dim))
        self.null_logit = torch.nn.Parameter(torch.tensor([-1.0]))
        self.register_load_state_dict_pre_hook(load_scalars)
        bound = (6 / (3 * input_dim + 1)) ** 0.5
        projections = (self.query_projection, self.key_projection)
        for weight in (*(layer.weight for layer in projections), self.product_weight):
            torch.nn.init.uniform_(weight, -bound, bound)
        self.merge = torch.nn.Linear(3 * input_dim, output_dim)

    def forward(self, text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """From `(batch_size, num_tokens, input_dim)` to `(batch_size, num_tokens, output_dim)`."""
        # A query's own projection is the same for all of its keys. Instead of adding it to the
        # scores of the tokens, it is subtracted from the score of the null key, the last one.
        # Shape: (batch_size, num_tokens, input_dim + 1)
        products = text * self.product_weight
        queries = torch.cat([products, self.null_logit - self.query_projection(text)], dim=2)
        keys = pad(text, (0, 1, 0, 1))
        keys[:, -1, -1] = 1.0
        # Shape: (batch_size, 1, num_tokens + 1)
        key_scores = self.key_projection(text).squeeze(2).masked_fill(~mask, -torch.inf)
        key_scores = pad(key_scores, (0, 1)).unsqueeze(1)
        step = max(1, _MAX_SCORES // key_scores.numel())
        attended = []
        for start in range(0, text.size(1), step):
            # Shape: (batch_size, num_queries, num_tokens + 1)
            block = queries[:, start : start + step]
            scores = torch.baddbmm(key_scores, block, keys.transpose(1, 2))
            scores.diagonal(start, dim1=1, dim2=2).fill_(-torch.inf)
            attended.append(scores.softmax(dim=2)[..., :-1].bmm(text))
        # Shape: (batch_size, num_tokens, input_dim)
        others = torch.cat(attended, dim=1)
        return self.merge(torch.cat([text, others, text * others], dim=2)).relu()
