# Test servers inside a cluster: a package of the standard library and git, given as build context.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN command -v git >/dev/null || { apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git \
 && rm -rf /var/lib/apt/lists/*; }
ARG PACKAGE
COPY . /opt/fixtures/${PACKAGE}
WORKDIR /opt/fixtures
USER 65532:65532
ENTRYPOINT ["python3", "-B", "-m"]
