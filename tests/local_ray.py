"""A real Ray on this machine."""

from contextlib import contextmanager

import pytest


@contextmanager
def local_ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
