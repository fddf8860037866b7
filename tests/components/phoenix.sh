#!/usr/bin/env bash
# Phoenix, a trace backend with an API to ask. 620 MB. Prints the environment's bin folder.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/uv.sh"

uv_environment phoenix arize-phoenix==20.26.1
