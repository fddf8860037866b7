#!/usr/bin/env bash
# Alertmanager and amtool. Prints the folder that holds both; Debian calls the first one
# prometheus-alertmanager.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"

if command -v prometheus-alertmanager >/dev/null && command -v amtool >/dev/null; then
    dirname "$(command -v prometheus-alertmanager)"
    exit 0
fi
root="$COMPONENTS/alertmanager"
if [ ! -x "$root/usr/bin/prometheus-alertmanager" ] || [ ! -x "$root/usr/bin/amtool" ]; then
    log "fetching alertmanager of this Debian release into a private folder"
    work=$(mktemp -d "$COMPONENTS/alertmanager.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/apt"
    mkdir -p "$work/debs" "$work/root"
    (cd "$work/debs" && retry 300 "${APT[@]}" download prometheus-alertmanager >&2) ||
        missing "the package prometheus-alertmanager could not be downloaded"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
    rm -rf "$root"
    mv "$work/root" "$root"
fi
# Debian's program reads its templates from there and nowhere else; amtool does without.
templates=/usr/share/prometheus/alertmanager
if [ ! -e "$templates/default.tmpl" ]; then
    { mkdir -p "${templates%/*}" && cp -r "$root$templates" "${templates%/*}/"; } 2>/dev/null ||
        log "\`$templates\` cannot be written: alertmanager will not start; run this as root once"
fi
"$root/usr/bin/prometheus-alertmanager" --version 2>&1 | head -n 1 | sed 's/^/[components] /' >&2
echo "$root/usr/bin"
