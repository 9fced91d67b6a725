#!/usr/bin/env bash
# Open JupyterLab on a working copy of the released notebooks. Answers already written there are kept.
set -euo pipefail

port=${PORT:-8888}
mkdir -p work/lab
cp -rn work/release/. work/lab/
# TensorBoard is then shown through JupyterLab's own port.
export TENSORBOARD_PROXY_URL=/proxy/%PORT%/
echo "==> JupyterLab on work/lab; the address with its token follows, Ctrl-C twice stops it"
exec jupyter lab --ServerApp.root_dir=work/lab --port="$port" --no-browser
