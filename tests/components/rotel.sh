#!/usr/bin/env bash
# rotel, an OTLP collector in Rust: HTTP and gRPC, all signals, and a log that shows what came.
# 28 MB. Prints the program's path.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/uv.sh"

bin=$(uv_environment rotel rotel==0.0.1a15)
program=$(find "${bin%/bin}/lib" -name rotel-agent -type f | head -n 1)
[ -n "$program" ] || missing "the package rotel holds no program for this machine"
chmod +x "$program"
echo "$program"
