from typing import Any

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class ServerMetrics:
    """What `/metrics` shows, in the text format of Prometheus."""

    def __init__(self) -> None:
        import prometheus_client as prometheus

        self._text = prometheus.generate_latest
        self.registry = prometheus.CollectorRegistry()
        shared: Any = {"registry": self.registry}
        # RAM, processor time, open files.
        prometheus.ProcessCollector(**shared)
        self._requests = prometheus.Counter(
            "elmo_requests", "Requests by their status code", ["kind", "status"], **shared
        )
        self._request_seconds = prometheus.Histogram(
            "elmo_request_seconds",
            "From a request to its answer",
            ["kind"],
            buckets=_SECONDS,
            **shared,
        )
        self._batch_seconds = prometheus.Histogram(
            "elmo_batch_seconds", "Time of a batch", ["kind"], buckets=_SECONDS, **shared
        )
        self._batch_size = prometheus.Histogram(
            "elmo_batch_size", "Requests in a batch", ["kind"], buckets=_SIZES, **shared
        )
        self.waiting = prometheus.Gauge("elmo_waiting", "Requests that wait for a batch", **shared)

    def request(self, kind: str, status: int, seconds: float) -> None:
        self._requests.labels(kind, status).inc()
        self._request_seconds.labels(kind).observe(seconds)

    def batch(self, kind: str, size: int, seconds: float) -> None:
        self._batch_seconds.labels(kind).observe(seconds)
        self._batch_size.labels(kind).observe(size)

    def text(self) -> bytes:
        return self._text(self.registry)
