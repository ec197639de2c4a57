FROM python:3.11.18-slim-bookworm AS base

FROM base AS build
WORKDIR /build
COPY requirements.lock ./
RUN python -m venv --without-pip /opt/priorshift \
    && pip --python /opt/priorshift/bin/python install --no-cache-dir -r requirements.lock
COPY pyproject.toml README.md ./
COPY app ./app
COPY models_store ./models_store
COPY migrations ./migrations
RUN pip --python /opt/priorshift/bin/python install --no-cache-dir --no-deps .

FROM base
# Nothing is installed from here on: what could be used to, and has holes of its own, goes.
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin priorshift \
    && install -d -o priorshift /data \
    && rm -rf /usr/local/lib/python3.11/ensurepip /usr/local/lib/python3.11/site-packages \
        /usr/local/bin/pip* /usr/local/bin/wheel
COPY --from=build /opt/priorshift /opt/priorshift
ENV PATH=/opt/priorshift/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    PRIORSHIFT_HOST=0.0.0.0 \
    PRIORSHIFT_DATABASE_URL=sqlite:////data/priorshift.db
WORKDIR /data
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["priorshift", "health"]
ENTRYPOINT ["priorshift"]
CMD ["serve"]
