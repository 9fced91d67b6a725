#!/usr/bin/env bash
# Build targets of the Dockerfile as fusion-course:TARGET: image.sh TARGET ...
# torch comes from the index of CPU builds; TORCH_INDEX= (empty) takes pip's own, with CUDA.
set -euo pipefail

docker=${DOCKER:-docker}
command -v "$docker" >/dev/null || { echo "Building images needs Docker, and '$docker' is not here; see https://docs.docker.com/engine/install/" >&2; exit 1; }
for target in "$@"; do
  echo "==> Building fusion-course:$target"
  "$docker" build --target "$target" --tag "fusion-course:$target" \
    --build-arg "TORCH_INDEX=${TORCH_INDEX-https://download.pytorch.org/whl/cpu}" .
done
