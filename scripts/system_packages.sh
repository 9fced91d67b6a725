#!/usr/bin/env bash
# Make sure that commands from Debian packages are there: system_packages.sh COMMAND=PACKAGE ...
# Root gets what is missing installed; anybody else gets one sentence with the command that does it.
# PACKAGES=no skips the check, for a machine on which you cannot install.
set -euo pipefail

[ "${PACKAGES:-yes}" != no ] || exit 0

missing=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "Missing here: ${missing[*]}. Install them with your system's package manager; going on without." >&2
elif [ "$(id -u)" -eq 0 ]; then
  echo "==> Installing the Debian packages ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "Missing Debian packages; install them with: sudo apt-get install ${missing[*]}" \
    "(or go on without them: PACKAGES=no make ...)" >&2
  exit 1
fi
