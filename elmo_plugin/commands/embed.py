"""
Write the layers of a biLM over a text into one file of HDF5, safetensors or Parquet.

INPUT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, or - for standard input. If it is a folder, each file in it gets a file of its own in the
folder OUTPUT, and what is finished is not done again.

The suffix of OUTPUT, file or folder, chooses the format: .safetensors, .parquet (needs the package
pyarrow), or anything else for HDF5. In HDF5 and safetensors, line i (from 0) becomes the dataset or
tensor str(i), float32:
    --all            (num_layers, num_tokens, dim), token layer first
    --top, --average (num_tokens, dim)
An empty line becomes an empty dataset. `sentence_to_index`, a JSON string (in safetensors its
bytes), maps each sentence, its words joined by one space, to its line. A sentence that occurs again
has a dataset for each of its lines; the map points to the first. A safetensors file has room for
about a million lines; more are refused before anything is written.

In Parquet, each token is a row: `sentence`, the number of its line from 0; `position` in the line,
from 0; `word`; and lists of dim numbers, with --all `layer_0` (the token layer), `layer_1` and so
on, else `vector`. An empty line has no rows.

The vectors of a line do not depend on the other lines. Attributes of an HDF5 file, metadata of
the others, name the biLM, the settings and the number of lines.

Bytes per token: number of layers (--top, --average: 1) x dim x 4; with --half x 2. For the
published biLM that is 12,288 for --all and 4,096 for --top. RAM grows with --batch-size,
--num-workers and the longest line, and with the distinct sentences unless --forget-sentences is
given or the format is Parquet.

If the command is interrupted, even by kill -9 or a full disk, run the same command again: it
continues after the lines that are done, which are kept in the folder OUTPUT.unfinished. From
these, OUTPUT is written at the end, so the disk needs space for the vectors twice. If it has
less, the command stops before it computes anything.

example:
    %(prog)s sentences.txt vectors.hdf5 --all
    python -c 'import h5py; print(h5py.File("vectors.hdf5")["0"].shape)'
    %(prog)s texts vectors.parquet --top --half --ray
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Tuple, Union

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.arguments import (
    EXACTLY_ONE,
    PositiveInt,
    cpus_option,
    decoding_errors_option,
    flag,
    option,
    positional,
    ray_mistakes,
    ray_option,
    refuse,
)
from elmo_plugin.commands.bilm_arguments import TextBilmArguments, explained_limits, text_path
from elmo_plugin.commands.command import say
from elmo_plugin.elmo.store.dump import (
    DumpOptions,
    DumpSummary,
    check_space,
    count_text,
    dump_embeddings,
    vector_bytes,
)
from elmo_plugin.elmo.store.formats import format_of
from elmo_plugin.elmo.store.shards import dump_shards, dump_shards_with_ray, shard_outputs
from elmo_plugin.util.atomic_write import UNFINISHED, resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import is_pipe
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import DecodedPath

STOPPED = "stopped. Run the same command again to continue."

_Path = Union[str, os.PathLike]


@dataclass(kw_only=True)
class Options:
    input_file: str = positional("INPUT", "a sentence per line, or -; or a folder")
    output_file: Path = positional("OUTPUT", "file, or a folder")
    all: bool = flag("write every layer", EXACTLY_ONE)
    top: bool = flag("write the last layer", EXACTLY_ONE)
    average: bool = flag("write the average of the layers", EXACTLY_ONE)
    decoding_errors: str = decoding_errors_option()
    bilm: TextBilmArguments
    half: bool = flag("write float16: half the size")
    compression: str = option(
        "compress losslessly: gzip for HDF5, or lzf, which is faster and for h5py only; zstd "
        "for Parquet; safetensors has none (default: none)",
        "none",
        choices=["none", "gzip", "lzf", "zstd"],
    )
    forget_sentences: bool = flag("leave out `sentence_to_index`, which Parquet never has")
    use_sentence_keys: bool = flag(
        "name each dataset by its sentence instead of its line, with '\u2215' (U+2215) for "
        "'/', '\u2400' (U+2400) for NUL and '\u2024' (U+2024) for a lone full stop; a repeated "
        "sentence is written once, an empty one not at all. Leaves out `sentence_to_index`. Not "
        "for Parquet, where words are a column"
    )
    force: bool = flag("replace OUTPUT, or unfinished work that was begun with other options")
    num_workers: PositiveInt = option(
        "compute in N processes, which share the cores; the same file as one process with as "
        "many threads writes (default: this process alone)",
        0,
        metavar="N",
    )
    ray: Optional[str] = ray_option("compute each text of a folder as a task")
    cpus: Optional[float] = cpus_option()

    def for_dump(self) -> DumpOptions:
        return DumpOptions(
            layers="all" if self.all else "top" if self.top else "average",
            dtype="float16" if self.half else "float32",
            compression=None if self.compression == "none" else self.compression,
            batch_size=self.bilm.batch_size,
            sentence_keys=self.use_sentence_keys,
            forget_sentences=self.forget_sentences,
        )

    def load(self) -> Bilm:
        """The biLM, with the token layer of the words in `--vocab-path` precomputed."""
        return self.bilm.load(self.bilm.words(self.decoding_errors))


def run(args: Options) -> str:
    is_folder = os.path.isdir(args.input_file)
    has_ray, on_gpu = args.ray is not None, args.bilm.cuda_device >= 0
    is_output = os.path.realpath(args.input_file) == os.path.realpath(args.output_file)
    for_cpus = "is for CPUs. Leave it out, or leave out --cuda-device."
    refuse(
        {
            f"--ray {for_cpus}": has_ray and on_gpu,
            f"--num-workers {for_cpus}": args.num_workers > 0 and on_gpu,
            **ray_mistakes(args),
            f"{args.output_file} is the folder of the texts; name another output.": (
                is_folder and is_output
            ),
            f"--ray needs a folder of texts as INPUT, found {args.input_file}. Divide the text "
            "into files, each of which becomes a task.": has_ray and not is_folder,
        }
    )
    format_of(args.output_file).check(args.for_dump())
    # Refuses a pipe before the text is counted.
    output = resumable_file(args.output_file)
    kept = f"The lines done are kept in {output}{UNFINISHED}"
    with explained_limits(args.output_file, "The files done are kept" if is_folder else kept):
        report = _embed_folder(args) if is_folder else _embed(args)
    return f"{args.output_file}: {report}"


def _embed(args: Options) -> str:
    options = args.for_dump()
    text = DecodedPath(text_path(args.input_file), args.decoding_errors)
    counted = _count(text, args.output_file, options)
    bilm = args.load()
    total = None
    if counted is not None:
        total, num_tokens = counted
        num_bytes = vector_bytes(bilm, num_tokens, options)
        _say_size(num_bytes)
        # Twice, because OUTPUT is written from the unfinished files at the end.
        check_space([args.output_file], 2 * num_bytes)
    with progress("sentences", total) as advance:
        output, workers = args.output_file, args.num_workers
        summary = dump_embeddings(bilm, text, output, options, args.force, advance, workers)
    return _report(summary, args.output_file)


def _embed_folder(args: Options) -> str:
    texts = find_shards(DecodedPath(args.input_file, args.decoding_errors))
    outputs = shard_outputs(texts, args.output_file)
    options = args.for_dump()
    # The workers of Ray load their own biLM, and the vectors of its vocabulary with it.
    bilm = args.load() if args.ray is None else args.bilm.load()
    sizes = [0]
    for text, output in outputs.items():
        # An error is the outcome of this text, below, and does not stop the others.
        with suppress(ConfigurationError, OSError, ValueError):
            if (args.force or not output.exists()) and (counted := _count(text, output, options)):
                sizes.append(vector_bytes(bilm, counted[1], options))
    _say_size(sum(sizes))
    check_space(list(outputs.values()), sum(sizes) + max(sizes))
    if args.ray is None:
        outcomes = dump_shards(bilm, outputs, options, args.force, args.num_workers)
    else:
        ray = (args.ray or None, args.cpus or 1)
        outcomes = dump_shards_with_ray(args.load, outputs, options, args.force, *ray)
    failed = 0
    for number, (text, outcome) in enumerate(outcomes, start=1):
        failed += isinstance(outcome, Exception)
        said = outcome if isinstance(outcome, Exception) else _report(outcome, outputs[text])
        say(f"{number} of {len(outputs)}: {text}: {said}")
    if failed:
        raise ConfigurationError(
            f"{failed} of {len(outputs)} texts failed, see above. The same command leaves out "
            "those that are finished."
        )
    return f"{len(outputs)} files."


def _say_size(num_bytes: int) -> None:
    say(f"{num_bytes / 1e6:,.1f} MB of vectors to write.")


def _count(path: _Path, output: Path, options: DumpOptions) -> Optional[Tuple[int, int]]:
    """The numbers of lines and tokens, or `None` for a pipe, which can be read only once."""
    return None if is_pipe(path) else count_text(path, output, options)


def _report(summary: DumpSummary, output: Path) -> str:
    size = output.stat().st_size / 1e6
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    return f"{summary.num_lines} lines{resumed}, {summary.num_tokens} tokens, {size:.1f} MB."
