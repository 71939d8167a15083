"""A server of the files in a folder, on this machine."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator, List


class _Handler(SimpleHTTPRequestHandler):
    server: "WebServer"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        super().do_GET()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: self.server.most_bytes])

    def log_message(self, *arguments: Any) -> None:
        pass


class WebServer(ThreadingHTTPServer):
    #: What clients have asked for.
    asked: List[str]
    #: Breaks off after so many bytes, if this is not `None`.
    most_bytes = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    with WebServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
