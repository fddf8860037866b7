#!/usr/bin/env bash
# AIPerf, NVIDIA's benchmark client. 840 MB. Prints the environment's bin folder.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/uv.sh"

uv_environment aiperf aiperf==0.13.0
