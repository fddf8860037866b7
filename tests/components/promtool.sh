#!/usr/bin/env bash
# A promtool of Prometheus 3, whose tests of rules can hold native histograms. Prints its path.
#
# From Debian sid: that of older releases cannot write them. It is one static program.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"

root="$COMPONENTS/promtool"
if [ ! -x "$root/usr/bin/promtool" ]; then
    log "fetching promtool of Debian sid into a private folder"
    work=$(mktemp -d "$COMPONENTS/promtool.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt sid "$work/apt"
    mkdir -p "$work/debs" "$work/root"
    (cd "$work/debs" && retry 300 "${APT[@]}" download promtool >&2) ||
        missing "the package promtool could not be downloaded"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
    rm -rf "$root"
    mv "$work/root" "$root"
fi
"$root/usr/bin/promtool" --version 2>&1 | head -n 1 | sed 's/^/[components] /' >&2
echo "$root/usr/bin/promtool"
