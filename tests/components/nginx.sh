#!/usr/bin/env bash
# nginx, the reverse proxy. Prints its path.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"

root="$COMPONENTS/nginx"
if [ ! -x "$root/usr/sbin/nginx" ]; then
    log "fetching nginx of this Debian release into a private folder"
    work=$(mktemp -d "$COMPONENTS/nginx.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/apt"
    mkdir -p "$work/debs" "$work/root"
    # What it needs beside the C library is small and may not be on the machine.
    packages=(nginx libpcre2-8-0)
    (cd "$work/debs" && retry 300 "${APT[@]}" download "${packages[@]}" >&2) ||
        missing "the package nginx could not be downloaded"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
    rm -rf "$root"
    mv "$work/root" "$root"
fi
"$root/usr/sbin/nginx" -v 2>&1 | sed 's/^/[components] /' >&2
echo "$root/usr/sbin/nginx"
