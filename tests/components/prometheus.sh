#!/usr/bin/env bash
# Prometheus and promtool. Prints the folder that holds both.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    dirname "$(command -v prometheus)"
    exit 0
fi
root="$COMPONENTS/prometheus"
if [ ! -x "$root/usr/bin/prometheus" ] || [ ! -x "$root/usr/bin/promtool" ]; then
    log "fetching prometheus of this Debian release into a private folder"
    work=$(mktemp -d "$COMPONENTS/prometheus.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/apt"
    mkdir -p "$work/debs" "$work/root"
    # From Debian 13 on promtool is a package of its own.
    packages=(prometheus)
    if (cd "$work/debs" && "${APT[@]}" --print-uris download promtool >/dev/null 2>&1); then
        packages+=(promtool)
    fi
    (cd "$work/debs" && retry 300 "${APT[@]}" download "${packages[@]}" >&2) ||
        missing "the package prometheus could not be downloaded"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
    rm -rf "$root"
    mv "$work/root" "$root"
fi
"$root/usr/bin/prometheus" --version 2>&1 | head -n 1 | sed 's/^/[components] /' >&2
echo "$root/usr/bin"
