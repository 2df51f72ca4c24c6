# distill in a container. The last stage is everything, on a CPU; others by arguments:
#
#   docker build -t distill .                                  # some commands need more extras: EXTRAS
#   docker build -t distill:cuda --build-arg DEVICE=cuda .     # then: docker run --gpus all …
#   docker build -t distill:draw --target draw .               # stylize and lens alone, no PyTorch
#   docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD:/work" distill train photos=photos

ARG PYTHON=python:3.11-slim-trixie

# The page of distill.lens, and the wheel that carries it.
FROM ${PYTHON} AS wheel
# Debian removes a version from its archive when the next one is out: none is pinned.
# hadolint ignore=DL3008,DL3013
RUN apt-get update \
    && apt-get install -y --no-install-recommends nodejs npm \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir build filelock
WORKDIR /source
COPY web web
COPY src src
RUN PYTHONPATH=src python -c "from distill_lens import webpage; webpage.find()"
COPY pyproject.toml README.md LICENSE ./
COPY conf conf
RUN python -m build --wheel --outdir /wheel

# What every image shares: files of the user's lie in /work, whoever the user is.
FROM ${PYTHON} AS base
ENV HOME=/tmp DISTILL_CACHE=/work/.cache/distill PYTHONUNBUFFERED=1
RUN useradd --create-home distill && mkdir /work && chown distill /work
WORKDIR /work
EXPOSE 8765

# Draws with students in ONNX files: distill stylize, distill lens.
FROM base AS draw
COPY tools/draw-requirements.txt /tmp/draw-requirements.txt
COPY --from=wheel /wheel /tmp/wheel
RUN pip install --no-cache-dir -r /tmp/draw-requirements.txt \
    && pip install --no-cache-dir --no-deps /tmp/wheel/*.whl \
    && rm -r /tmp/wheel /tmp/draw-requirements.txt
USER distill
ENTRYPOINT ["distill"]

# Everything. The registry's own wheels of PyTorch are those for CUDA; those for a CPU are smaller.
FROM base AS full
ARG DEVICE=cpu
ARG EXTRAS=video,lens,shards,hub
COPY --from=wheel /wheel /tmp/wheel
RUN case "${DEVICE}" in \
        cpu) pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu \
            "torch>=2.11,!=2.13.0" "torchvision>=0.26" ;; \
        cuda) ;; \
        *) echo "DEVICE=${DEVICE}: cpu or cuda" >&2; exit 1 ;; \
    esac \
    && pip install --no-cache-dir "$(echo /tmp/wheel/*.whl)[${EXTRAS}]" \
    && rm -r /tmp/wheel
USER distill
ENTRYPOINT ["distill"]
