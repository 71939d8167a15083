import os
from contextlib import closing

import numpy

from elmo_plugin.elmo.dump.dump_file import DumpFile
from elmo_plugin.elmo.dump.part_file import EmbeddedSentence


def test_hdf5_never_needs_more_space_than_is_reserved(tmp_path, monkeypatch):
    path = tmp_path / "out.hdf5"
    reserved = []
    allocate = os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", lambda *a: reserved.append(a[2]) or allocate(*a))
    generator = numpy.random.default_rng(0)
    for compression in ("none", "gzip", "lzf"):
        for num_tokens, name in ((0, ""), (1, ""), (3, "name " * 500), (1100, "")):
            settings = {"dtype": "float32", "compression": compression}
            with closing(DumpFile(path, settings, force=True)) as file:
                sentences = []
                for number in range(400 if num_tokens < 4 else 3):
                    # Random bytes, which no filter can make smaller.
                    data = generator.bytes(2 * num_tokens * 8 * 4)
                    vectors = numpy.frombuffer(data, "float32").reshape(2, num_tokens, 8)
                    sentences.append(EmbeddedSentence(f"{name}{number}", (), vectors))
                file.commit(file.writer.write(1, "", sentences))
                file.finish("text.txt", {f"{name}{number}": str(number) for number in range(400)})
            assert path.stat().st_size < reserved.pop() and not reserved
