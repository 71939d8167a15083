import os
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

from elmo_plugin.util.errors import optional_package


def run_with_ray(
    function: Callable[..., Any],
    calls: Sequence[Tuple],
    address: Optional[str] = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
) -> Iterator[Tuple[int, Any]]:
    """
    Runs a function in [Ray](https://docs.ray.io) tasks. Yields the index of each call as it ends,
    with its result or the exception that ended it. Tasks run in this process's folder with its
    environment variables, except variables that a worker already has. Ray restarts a task whose
    worker dies. Raises `ImportError` if Ray is not installed.

    Workers must be able to import `function`. Its arguments and results should be small. Ray
    reserves `num_cpus` and `num_gpus` for each task. `address` names a cluster; by default Ray
    starts on this machine.
    """
    ray = optional_package("ray", "Running in Ray")
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    task = ray.remote(_call).options(num_cpus=num_cpus, num_gpus=num_gpus, max_retries=3)
    environment = (dict(os.environ), os.getcwd())
    tasks = {task.remote(function, call, *environment): number for number, call in enumerate(calls)}
    while tasks:
        (done,), _ = ray.wait(list(tasks), num_returns=1)
        number = tasks.pop(done)
        try:
            yield number, ray.get(done)
        except ray.exceptions.RayTaskError as error:
            yield number, error.cause
        except ray.exceptions.RayError as error:
            yield number, RuntimeError(f"Ray: {error}")


def _call(
    function: Callable[..., Any], call: Tuple, environment: Dict[str, str], folder: str
) -> Any:
    # Relative paths and variables name files. A worker keeps variables that it already has, such as
    # Ray's own.
    os.environ.update({k: v for k, v in environment.items() if k not in os.environ})
    os.chdir(folder)
    return function(*call)
