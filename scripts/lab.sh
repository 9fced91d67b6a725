#!/usr/bin/env bash
# Open JupyterLab on a working copy of the released notebooks. Answers already written there are kept; the course's rule
# for assistants is always the newest.
# scripts/student_lab leaves out what only instructors need (Formgrader, the marking of cells) and news from the network.
set -euo pipefail

port=${PORT:-8888}
export JUPYTER_CONFIG_PATH="$PWD/scripts/student_lab${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
# TensorBoard is then shown through JupyterLab's own port.
export TENSORBOARD_PROXY_URL=/proxy/%PORT%/

mkdir -p work/lab
# Not by `cp -n`, whose exit status for a file that is kept differs between systems.
(cd work/release && find . -type f -print0) | while IFS= read -r -d '' file; do
    case "$file" in *AGENTS.md | *CLAUDE.md) ;; *) [ ! -e "work/lab/$file" ] || continue ;; esac
    mkdir -p "$(dirname "work/lab/$file")"
    cp "work/release/$file" "work/lab/$file"
done
cd work/lab # and not where nbgrader_config.py is, which is the instructor's
echo "==> JupyterLab on work/lab; the address with its token follows, Ctrl-C twice stops it"
options=(--port="$port" --no-browser)
[ "$(id -u)" -ne 0 ] || options+=(--allow-root)
exec jupyter lab "${options[@]}"
