# Two images from one file; make image builds both.
#   student      released notebooks, course_lib and the practice grader; no solutions, no hidden cases
#   instructor   everything, with the tests
# Builds on the official Python image and equally on a plain Debian 12 with python3, venv and pip.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS base
# An extra package index for torch without CUDA (make image gives one); empty means pip's own settings.
ARG TORCH_INDEX=""
# Inductor needs a compiler and Python.h, pictures need graphviz, the sandbox needs bubblewrap.
RUN set -eu; \
    packages="graphviz g++ bubblewrap make"; \
    if [ "$(command -v python3)" = /usr/bin/python3 ]; then packages="$packages python3-dev python3-venv"; fi; \
    apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null; \
    apt-get clean; \
    rm -rf /var/lib/apt/lists/*; \
    useradd --create-home --shell /bin/bash learner; \
    python3 -m venv /opt/venv
ENV VENV=/opt/venv \
    PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    HF_HUB_OFFLINE=1 \
    TENSORBOARD_PROXY_URL=/proxy/%PORT%/
# The dependencies alone, so that a change to the course does not install them again.
WORKDIR /opt/requirements
COPY pyproject.toml constraints.txt scripts/list_requirements.py scripts/slim_packages.py ./
RUN python3 list_requirements.py notebook > notebook.txt && \
    python3 -m pip install --quiet --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        -c constraints.txt -r notebook.txt && \
    python3 -m pip check && \
    python3 slim_packages.py
EXPOSE 8888
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8888/api', timeout=4)"]

FROM base AS instructor
RUN python3 list_requirements.py dev > dev.txt && \
    python3 -m pip install --quiet --no-cache-dir -c constraints.txt -r dev.txt
WORKDIR /home/learner/course
COPY --chown=learner:learner . .
RUN python3 -m pip install --quiet --no-deps --no-build-isolation -e . && \
    chown learner:learner . && \
    touch "$VENV/.installed"
# The fused operators' C++ bodies, for each processor of this kind, since the image runs elsewhere.
RUN python3 -m course_lib.kernels.cpu.build --all && touch "$VENV/.bodies"
USER learner
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]

# What students may have, cut out of the whole in a stage that is thrown away.
FROM instructor AS released
RUN make release && PYTHONPATH=. python3 scripts/student_tree.py /home/learner/student

FROM base AS student
COPY --from=released /home/learner/student/course /opt/course
COPY --from=released --chown=learner:learner /home/learner/student/notebooks /home/learner/notebooks
RUN python3 -m pip install --quiet --no-deps --no-build-isolation -e /opt/course && \
    python3 -m course_lib.kernels.cpu.build --all
ENV JUPYTER_CONFIG_PATH=/opt/course/student_lab
WORKDIR /home/learner/notebooks
USER learner
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]

# Fails to build if a line of a solution or of a hidden case lies anywhere in the student image.
FROM instructor AS image-check
USER root
COPY --from=released /home/learner/student/fingerprints.json /check/
COPY --from=student / /student/
RUN python3 -m scripts.image_check /check/fingerprints.json /student
