# The library with its command line, without CUDA, for somebody who is not root:
#   docker build -t neuralbayes .
#   docker run --rm -v "$PWD:/data" neuralbayes cluster customers.csv
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /dist

FROM python:3.13-slim
ARG TORCH=2.13.0
ARG EXTRAS=all
RUN pip install --no-cache-dir torch==${TORCH} --index-url https://download.pytorch.org/whl/cpu
COPY --from=build /dist /dist
RUN pip install --no-cache-dir "$(echo /dist/*.whl)[${EXTRAS}]" && rm -r /dist \
    && useradd --create-home --uid 1000 user && mkdir /data && chown user /data
USER user
ENV MPLCONFIGDIR=/tmp/matplotlib
WORKDIR /data
ENTRYPOINT ["neuralbayes"]
CMD ["--help"]
