# A server of the trained models, for the wheel in dist/: see docs/serve.md.
FROM python:3.13-slim
# With the index of PyTorch's CPU builds, the image is 5 GB smaller.
ARG PIP_EXTRA_INDEX_URL
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY constraints.txt dist/elmo_plugin-*.whl /dist/
RUN pip install --no-cache-dir -c /dist/constraints.txt "$(ls /dist/*.whl)[allennlp,serve]" \
    && pip install --no-cache-dir --no-deps allennlp==2.10.1
RUN useradd --create-home --uid 1000 elmo
USER 1000
# Compiles the kernels once, not at each start.
RUN elmo doctor
EXPOSE 8000
CMD ["elmo", "serve", "--host", "0.0.0.0"]
