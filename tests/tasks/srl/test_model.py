import torch

from tests.tasks.small import build, make_batch


def test_answers_are_legal_and_never_padding_or_the_unknown_role(vocab, instances):
    torch.manual_seed(0)
    model = build("srl", vocab).eval()
    for index in (0, 1):
        with torch.no_grad():
            model.tag_projection.bias[index] = 100.0
    for tags in model(**make_batch(vocab, instances[:20], elmo=False))["tags"]:
        before = "O"
        for tag in tags:
            assert tag == "O" or tag[:2] in ("B-", "I-")
            assert tag[0] != "I" or before[2:] == tag[2:]
            before = tag


def test_a_role_that_training_never_saw_is_scored_but_not_learned_from(vocab, reader, tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text(
        "x 0 0 Mary NNP (TOP* - - - - * (ARGM-NEW*) -\nx 0 1 sings VBZ *) sing 02 - - * (V*) -\n"
    )
    model = build("srl", vocab).eval()
    assert model(**make_batch(vocab, list(reader.read(path)), elmo=False))["loss"].isfinite()
    metrics = model.get_metrics(reset=True)
    assert metrics["recall-ARGM-NEW"] == 0.0
    logits = torch.randn(1, 2, len(model.tags), requires_grad=True)
    gold = torch.tensor([[model.unknown_role, model.tags.index("B-V")]])
    model.loss(logits, torch.ones(1, 2, dtype=torch.bool), gold).backward()
    assert not logits.grad[0, 0].any() and logits.grad[0, 1].any()
