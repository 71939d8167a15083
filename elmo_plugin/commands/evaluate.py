"""
Evaluate a trained model on corpora, and print its metrics.

ARCHIVE is the model.tar.gz or the folder of a training run, or the name of a model that comes with
the project, such as ner; nothing in it is executed. FILE is in the format of the task's corpus, and
is read to its end. Metrics are fractions.

example:
    %(prog)s out/ner dev.conll test.conll -o metrics.json
    %(prog)s ner test.conll
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional, Sequence

from allennlp.commands import evaluate as allennlp_evaluate

from elmo_plugin.commands.arguments import Device, flag, option, positional
from elmo_plugin.commands.metrics import format_metrics
from elmo_plugin.console import quieten
from elmo_plugin.util.atomic_write import check_output, write_json
from elmo_plugin.util.files import find_archive
from elmo_plugin.util.text_files import find_file

STOPPED = "stopped, nothing was written."


@dataclass(kw_only=True)
class Options:
    archive: str = positional("ARCHIVE", "model.tar.gz, folder or name")
    files: List[str] = positional("FILE", "corpus with labels", nargs="+")
    output_file: Optional[Path] = option(
        "also write the metrics as JSON; of several corpora, by their names",
        short="-o",
        metavar="OUT",
    )
    force: bool = flag("replace OUT")
    device: Device = Device.option()


def run(args: Options) -> str:
    quieten()
    output = args.output_file and check_output(args.output_file, args.force)
    # Found here, so that a missing one is named before the model is loaded.
    files = [find_file(path) for path in args.files]
    read = evaluate(find_archive(args.archive), files, args.device.number)
    metrics = dict(zip(args.files, read))
    if output:
        write_json(output, metrics if len(metrics) > 1 else read[0])
    if len(metrics) == 1:
        return format_metrics(read[0])
    return "\n\n".join(f"{path}\n{format_metrics(scores)}" for path, scores in metrics.items())


def evaluate(archive: str, files: Sequence[str], cuda_device: int) -> List[Dict[str, Any]]:
    """The metrics of each file."""
    with TemporaryDirectory() as folder:
        # AllenNLP returns metrics of several corpora under the last parts of their paths.
        outputs = [Path(folder, str(number)) for number in range(len(files))]
        allennlp_evaluate.evaluate_from_archive(
            archive,
            ", ".join(map(json.dumps, files)),
            metrics_output_file=",".join(map(str, outputs)),
            cuda_device=cuda_device,
        )
        return [json.loads(path.read_text(encoding="utf-8")) for path in outputs]
