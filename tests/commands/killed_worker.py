import os
import signal

from elmo_plugin.elmo.store.sentence_vectors import SentenceVectors

LINE_NUMBER = 40


class KilledWorker(SentenceVectors):
    """Kills the worker that is to compute the group of a line. Its module is quick to import."""

    def __getitem__(self, group):
        if LINE_NUMBER in (line_number for line_number, _ in group[0]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(group)
