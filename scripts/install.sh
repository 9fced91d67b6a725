#!/usr/bin/env bash
# Create the virtual environment with exactly the versions of constraints.txt: install.sh VENV [EXTRA ...]
# EXTRA is a further extra of pyproject.toml, such as cluster; a later call adds extras to the same environment.
# The Python is the one that PYTHON3 names, else Debian's own if it is new enough, else python3 on PATH. Others are often
# compiled without optimisation.
# On a machine without an NVIDIA driver, torch comes from the index of CPU builds when that answers, which saves several
# gigabytes; pip's own settings (PIP_INDEX_URL, ...) stay in force.
set -euo pipefail

venv=$1
shift
debian_python3=${DEBIAN_PYTHON3:-/usr/bin/python3}
cpu_index=${TORCH_CPU_INDEX:-https://download.pytorch.org/whl/cpu}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

python3=${PYTHON3:-}
if [ -z "$python3" ]; then
  if is_new_enough "$debian_python3"; then python3=$debian_python3; else python3=python3; fi
fi
command -v "$python3" >/dev/null || { echo "Python 3.11 or later is needed, and there is no '$python3' here." >&2; exit 1; }
is_new_enough "$python3" || {
  echo "Python 3.11 or later is needed; '$python3' is $("$python3" -V). Name another one: PYTHON3=python3.11 make ..." >&2
  exit 1
}

packages=()
"$python3" -c 'import ensurepip, venv' 2>/dev/null || packages+=(no-such-command=python3-venv)
# C++ that uses torch includes Python.h, which Debian packs apart.
[ "$(command -v "$python3")" != "$debian_python3" ] || packages+=("$python3-config=python3-dev")
[ "${#packages[@]}" -eq 0 ] || "${0%/*}/system_packages.sh" "${packages[@]}"

index_answers() {
  "$python3" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$cpu_index/torch/" 2>/dev/null
}

with=$(IFS=,; echo "notebook,dev${*:+,$*}")
echo "==> Installing into $venv, on $("$python3" -V) of $python3, the extras $with (a few minutes the first time)"
[ -x "$venv/bin/python" ] || "$python3" -m venv "$venv"
# Debian's Python brings an old pip, which reads the pages of indexes slowly.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check pip==26.3 ||
  echo "Going on with the older pip that is here." >&2
options=(-c constraints.txt)
if ! command -v nvidia-smi >/dev/null && index_answers; then
  options+=(--extra-index-url "$cpu_index")
fi
# pip would compile all of it on one core, with what hardly anybody imports: every model of transformers, and tests.
# Some packages hold files that are not meant to be compiled. Setuptools would print a page of warnings that hold for every
# editable installation and for every folder of templates.
PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "${options[@]}" -e ".[$with]"
"$venv/bin/python" -m compileall -q -j 0 -x '/(tests|transformers/models)/' "$venv"/lib/python3*/site-packages >/dev/null || true
"$venv/bin/python" -m pip check
touch "$venv/.installed"
