#!/usr/bin/env bash
# Create the virtual environment with exactly the versions of constraints.txt: install.sh VENV
# PYTHON3 names the interpreter to build on, EXTRAS further extras of pyproject.toml, such as triton. On a machine without an NVIDIA driver, torch comes from the index of
# CPU builds when that answers, which saves several gigabytes; pip's own settings (PIP_INDEX_URL, ...) stay in force.
set -euo pipefail

venv=$1
python3=${PYTHON3:-python3}
cpu_index=${TORCH_CPU_INDEX:-https://download.pytorch.org/whl/cpu}

command -v "$python3" >/dev/null || { echo "Python 3.11 or later is needed, and there is no '$python3' here." >&2; exit 1; }
"$python3" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Python 3.11 or later is needed; '$python3' is $("$python3" -V). Name another one: PYTHON3=python3.11 make ..." >&2
  exit 1
}
"$python3" -c 'import ensurepip, venv' 2>/dev/null ||
  "$(dirname "$0")/system_packages.sh" no-such-command=python3-venv

index_answers() {
  "$python3" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$cpu_index/torch/" 2>/dev/null
}

echo "==> Installing into $venv (about 2 GB; a few minutes the first time)"
[ -x "$venv/bin/python" ] || "$python3" -m venv "$venv"
# Debian's Python brings an old pip, which reads the pages of indexes slowly.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check pip==26.3 ||
  echo "Going on with the older pip that is here." >&2
options=(-c constraints.txt)
if ! command -v nvidia-smi >/dev/null && index_answers; then
  options+=(--extra-index-url "$cpu_index")
fi
# pip would compile all of it on one core, with what hardly anybody imports: every model of transformers, and tests.
# Some packages hold files that are not meant to be compiled.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "${options[@]}" -e ".[notebook,dev${EXTRAS:+,$EXTRAS}]"
"$venv/bin/python" -m compileall -q -j 0 -x '/(tests|transformers/models)/' "$venv"/lib/python3*/site-packages >/dev/null || true
"$venv/bin/python" -m pip check
touch "$venv/.installed"
