#!/usr/bin/env bash
# The LiteLLM proxy, a gateway. 600 MB. Prints the environment's bin folder.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/uv.sh"

# Without prometheus_client it does not start with the callbacks people use; with the other two it
# sends spans.
uv_environment litellm 'litellm[proxy]==1.108.7' prometheus_client \
    opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
