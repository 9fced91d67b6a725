#!/usr/bin/env bash
# Fail if a line of a solution or of a hidden case lies anywhere on this machine: image_check.sh FINGERPRINTS [ROOT]
# Made to run as root inside the student image. Installed packages are left out: they come from the package index.
set -euo pipefail

fingerprints=$(realpath "$1")
root=${2:-/}
skip=(-path "${root%/}/proc" -o -path "${root%/}/sys" -o -path "${root%/}/dev" -o -path '*/site-packages')

[ "$(wc -l <"$fingerprints")" -ge 10 ] || { echo "Too few fingerprints in $fingerprints to tell anything." >&2; exit 2; }
# A grep that finds nothing even in the list itself would pass every image.
grep -qFf "$fingerprints" "$fingerprints" || { echo "grep does not find the fingerprints in their own list." >&2; exit 2; }

hidden=$(find "$root" \( "${skip[@]}" \) -prune -o -path '*autograder/host/hidden*' -print)
leaks=$(find "$root" \( "${skip[@]}" \) -prune -o -type f ! -path "$fingerprints" -print0 | xargs -0 -r grep -lFf "$fingerprints" || [ $? -eq 123 ])
if [ -n "$hidden$leaks" ]; then
  printf 'Solutions or hidden cases lie in:\n%s\n' "$hidden$leaks" >&2
  exit 1
fi
echo "None of $(wc -l <"$fingerprints") lines of solutions and hidden cases is here."
