#!/usr/bin/env bash
# VictoriaMetrics, a store of metrics that takes OTLP. Prints the program's path.
#
# From Debian sid: the version of older releases takes no OTLP. It is one static program.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"

root="$COMPONENTS/victoria"
if [ ! -x "$root/usr/bin/victoria-metrics" ]; then
    log "fetching victoria-metrics of Debian sid into a private folder"
    work=$(mktemp -d "$COMPONENTS/victoria.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt sid "$work/apt"
    mkdir -p "$work/debs" "$work/root"
    (cd "$work/debs" && retry 300 "${APT[@]}" download victoria-metrics >&2) ||
        missing "the package victoria-metrics could not be downloaded"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
    rm -rf "$root"
    mv "$work/root" "$root"
fi
"$root/usr/bin/victoria-metrics" -version 2>&1 | head -n 1 | sed 's/^/[components] /' >&2
echo "$root/usr/bin/victoria-metrics"
