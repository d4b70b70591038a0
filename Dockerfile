# Leaseboard as a small image: no compiler, no package installer, no root. deploy/README.md says how it is tested.
ARG PYTHON=docker.io/library/python:3.11-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /app
COPY requirements.txt .
# --only-binary: nothing is compiled; --require-hashes: nothing but what requirements.txt names is installed.
RUN python3 -m venv --without-pip /venv
RUN python3 -m pip --python /venv/bin/python3 install --no-cache-dir --only-binary :all: --require-hashes -r requirements.txt
COPY manage.py ./
COPY leases leases
COPY dashboard dashboard
COPY templates templates
COPY static static
RUN /venv/bin/python3 -m compileall -q -j 0 /venv/lib leases dashboard manage.py

FROM ${PYTHON}
RUN python3 -m pip uninstall -y pip && mkdir -m 0700 /data && chown 10001:10001 /data
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH HOME=/ PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 MALLOC_ARENA_MAX=1 LEASEBOARD_DATA=/data
LABEL org.opencontainers.image.title=Leaseboard \
  org.opencontainers.image.description="Who owns every Kubernetes Lease, now and in the past" \
  org.opencontainers.image.licenses=Apache-2.0 \
  org.opencontainers.image.version=0.1.0
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["python3", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
