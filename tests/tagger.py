"""Archives made of the parts of another, and what a tagger answers."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from allennlp.models import Archive
from allennlp.predictors import Predictor

FIXTURES = Path(__file__).parent.parent / "fixtures"
CORPUS = FIXTURES / "corpora/ner/dev.conll"
LINES = FIXTURES / "predict/ner.jsonl"


def repack(
    archive: Path,
    target: Path,
    change: Callable[[Dict[str, Any]], Optional[str]] = lambda config: None,
    without: Sequence[str] = (),
    files: Optional[Dict[str, bytes]] = None,
    members: Sequence[tarfile.TarInfo] = (),
) -> Path:
    """
    Another archive of the same parts. `change` changes the configuration or returns the text
    instead of it; `files` are added, `members` too and last.
    """
    with tarfile.open(archive) as source:
        parts = {m.name: source.extractfile(m).read() for m in source if m.isfile()}
    config = json.loads(parts["config.json"])
    parts["config.json"] = (change(config) or json.dumps(config)).encode()
    parts = {name: parts[name] for name in parts if not name.startswith(tuple(without) or " ")}
    with tarfile.open(target, "w:gz") as opened:
        for name, content in {**parts, **(files or {})}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
        for member in members:
            opened.addfile(member)
    return target


def member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def answers(archive: Archive) -> List[str]:
    """What the model says of the lines to predict."""
    predictor = Predictor.from_archive(archive)
    lines = LINES.read_text(encoding="utf-8").splitlines()
    return [predictor.dump_line(predictor.predict_json(json.loads(line))) for line in lines]
