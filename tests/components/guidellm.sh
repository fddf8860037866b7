#!/usr/bin/env bash
# guidellm, a benchmark client. Prints a launcher. It wants torch for its loader of prompts: the
# one of this Debian release serves, where the index's comes with gigabytes of CUDA.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"
. "$(dirname "$0")/uv.sh"

overrides="$COMPONENTS/guidellm-overrides.txt"
echo "torch ; sys_platform == 'never'" >"$overrides"
bin=$(uv_environment guidellm --override "$overrides" guidellm==0.8.1 jinja2)

root="$COMPONENTS/torch"
if [ ! -d "$root/python/torch" ]; then
    log "fetching python3-torch of this Debian release into a private folder"
    work=$(mktemp -d "$COMPONENTS/torch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/apt"
    retry 900 "${APT[@]}" -y --download-only install python3-torch >&2 ||
        missing "the package python3-torch and what it needs could not be downloaded"
    mkdir -p "$work/root" "$work/root/python"
    # The C library stays the machine's own.
    rm -f "$work"/apt/cache/archives/libc6*.deb
    for deb in "$work"/apt/cache/archives/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
    rm -rf "$work/root/usr/share"
    for package in torch torchgen; do
        ln -s "../usr/lib/python3/dist-packages/$package" "$work/root/python/$package"
    done
    rm -rf "$root"
    mv "$work/root" "$root"
fi

launcher="$COMPONENTS/guidellm/launch"
libraries=$(find "$root/lib" "$root/usr/lib" -name '*.so*' -printf '%h\n' |
    grep -v -e /gconv -e /engines -e python | sort -u | paste -sd:)
{
    echo '#!/bin/sh'
    echo '# Written by tests/components/guidellm.sh.'
    echo "export PYTHONPATH='$root/python' LD_LIBRARY_PATH='$libraries'"
    echo "exec '$bin/guidellm' \"\$@\""
} >"$launcher"
chmod +x "$launcher"
echo "$launcher"
