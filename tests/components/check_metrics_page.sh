#!/usr/bin/env bash
# Lets promtool check the text page of a running `tokencanary demo`: syntax, names, units, help.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$REPO"

promtool="$("$(dirname "$0")/prometheus.sh")/promtool"
binary="${CARGO_TARGET_DIR:-target}/debug/tokencanary"
# The very program that the tests have built: without them its dependencies would be others.
cargo test --locked --quiet --features real --test it --no-run

work=$(mktemp -d)
pid=
cleanup() {
    if [ -n "$pid" ]; then
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
"$binary" demo >"$work/out" 2>&1 &
pid=$!

# The demo says where it listens, since it takes another port if its own is taken. It names its
# simulated server too; the page with our own metrics is the one that is wanted.
page=
for _ in $(seq 300); do
    kill -0 "$pid" 2>/dev/null || break
    for address in $(grep -oE '127\.0\.0\.1:[0-9]+' "$work/out" | sort -u || true); do
        if curl -sf --max-time 5 "http://$address/metrics" -o "$work/page" &&
            grep -q '^tokencanary_request_ttft_seconds_count' "$work/page"; then
            page=$work/page
            break 2
        fi
    done
    sleep 0.2
done
if [ -z "$page" ]; then
    log "no page with a TTFT histogram came within a minute; the demo said:"
    cat "$work/out" >&2
    exit 1
fi
"$promtool" check metrics <"$page"
log "promtool finds nothing wrong with $(wc -l <"$page") lines"
