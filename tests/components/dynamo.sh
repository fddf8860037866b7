#!/usr/bin/env bash
# NVIDIA Dynamo with its mocker: a real distributed front end before an engine that only pretends.
# No weights, no accelerator; 1.7 GB. Prints the environment's bin folder.
#
# Pinned, since the next version asks for a package that downloads from another index.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/uv.sh"

uv_environment dynamo --only-binary aisimulate ai-dynamo==1.6.0 ai-dynamo-runtime==1.6.0
