import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from elmo_plugin.analysis.layer_weights import LayerWeights, stored_layer_weights
from elmo_plugin.analysis.report.page import Section
from elmo_plugin.analysis.report.sections import mixes_section
from elmo_plugin.analysis.studies.study import validation_metric
from elmo_plugin.analysis.studies.tables import Table
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.util.errors import ConfigurationError


def models_section(archives: List[Path]) -> Section:
    """
    The section of trained models: their best scores on dev, and how they mix the layers of their
    biLM.

    # Parameters

    archives : `List[Path]`
        The `model.tar.gz` of training runs. `metrics.json` is read from the same folder.

    # Raises

    `ConfigurationError`
        If an archive or its metrics cannot be read.
    """
    lines: List[List[str]] = []
    weights: List[LayerWeights] = []
    for archive in archives:
        model = TrainedModel.read(archive)
        name = str(model.config.get("model", {}).get("type", ""))
        lines.append([str(archive), name, *_validation(archive, model.config)])
        weights += stored_layer_weights(model)
    folder = str(archives[0].parent)
    mixes = mixes_section(weights, archives[0]) if weights else None
    return Section(
        "Trained models",
        folder if len(archives) == 1 else f"{folder} and {len(archives) - 1} more folders",
        ["Best on dev is the best score on the validation data.", *(mixes.notes if mixes else [])],
        mixes.figures if mixes else [],
        [
            Table(["archive", "model", "metric", "best on dev"], lines, 3),
            *(mixes.tables if mixes else []),
        ],
    )


def _validation(archive: Path, config: Dict[str, Any]) -> Tuple[str, str]:
    """
    The name of the metric and its best value on dev, in percent if it is a fraction; empty if there
    are no metrics beside the archive.
    """
    path = archive.parent / "metrics.json"
    signed = validation_metric(config)
    metric = signed.lstrip("+-")
    if not path.exists():
        return metric, ""
    try:
        value = json.loads(path.read_text(encoding="utf-8")).get(f"best_validation_{metric}")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}: expected the metrics of a training run, found {error!r}. Move the file away, "
            "or train again."
        ) from error
    if not isinstance(value, (int, float)):
        return metric, ""
    is_fraction = not signed.startswith("-") and 0 <= value <= 1
    return metric, f"{100 * value:.2f}" if is_fraction else f"{value:.3f}"
