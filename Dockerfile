# The operator's image: Python, the packages of requirements/operator.txt (each with its hash), and tfyard itself.
#
#   DIGEST=$(docker buildx imagetools inspect python:3.13-slim --format '{{.Manifest.Digest}}')
#   docker build --build-arg PYTHON_DIGEST=$DIGEST -t tfyard/operator:0.1.0 .
#
# It needs no network but the API server's, no HOME, no writable file system and no root.
ARG PYTHON_IMAGE=python:3.13-slim
ARG PYTHON_DIGEST

FROM ${PYTHON_IMAGE}@${PYTHON_DIGEST} AS build
COPY requirements/operator.txt /tmp/operator.txt
RUN python -m pip install --no-cache-dir --no-compile --require-hashes --only-binary=:all: --target /opt/tfyard -r /tmp/operator.txt
COPY src/tfyard /opt/tfyard/tfyard
RUN python -m compileall -q /opt/tfyard

FROM ${PYTHON_IMAGE}@${PYTHON_DIGEST}
COPY --from=build /opt/tfyard /opt/tfyard
ENV PYTHONPATH=/opt/tfyard PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["python", "-m", "tfyard"]
CMD ["operator"]
