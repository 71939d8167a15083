"""
Runs the programs of the guide: one process imports AllenNLP, which takes ten seconds, and each
program runs in a fork of it.

    python -m tests.docs_server SOCKET
"""

import json
import os
import runpy
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Dict, List

CLIENT = """\
#!{python} -SE
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
request = [{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]
socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
server.shutdown(socket.SHUT_WR)
sys.exit(server.recv(1)[0])
"""


def write_client(program: Path, path: str) -> None:
    """An executable that asks the server at `path` to run the program of its own name."""
    program.write_text(CLIENT.format(python=sys.executable, path=path, name=program.name))
    program.chmod(0o755)


def serve(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    # A client that finds the file must be able to connect.
    listener.bind(f"{path}~")
    listener.listen()
    os.rename(f"{path}~", path)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _answer(connection)
        connection.close()


def _answer(connection: socket.socket) -> None:
    request, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while part := connection.recv(1 << 20):
        request += part
    for number, file in enumerate(files):
        os.dup2(file, number)
    status = 0
    try:
        _run(*json.loads(request))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(bytes([status]))
    os._exit(status)


def _run(program: str, arguments: List[str], folder: str, environment: Dict[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    set_defaults()
    sys.path[0] = folder
    sys.argv = [program, *arguments]
    if program == "allennlp":
        runpy.run_module("allennlp", run_name="__main__")
    elif program == "elmo":
        main(arguments)
    elif arguments[0] == "-c":
        exec(compile(arguments[1], "-c", "exec"), {"__name__": "__main__"})
    elif arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    import allennlp.commands  # noqa: F401

    import elmo_plugin  # noqa: F401

    # Which spaCy does itself where the package is installed.
    import elmo_plugin.integrations.for_spacy  # noqa: F401
    from elmo_plugin.commands.main import main
    from elmo_plugin.environment import set_defaults

    serve(sys.argv[1])
