#!/usr/bin/env bash
# llama-server with all libraries it needs, from Debian sid, in a private root. Prints the path
# of a launcher. sid moves: whatever version is there now is taken, and the tests must hold.
#
# The program needs a newer C library than the machine may have, so the launcher starts it through
# the private root's own loader. That needs no root and leaves the process id as it was. Its
# compute backends are found by an absolute path that does not exist here, so the launcher names
# the one that runs on every processor of this architecture; a tiny model needs no better.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/debian.sh"

root="$COMPONENTS/llama"
launcher="$root/llama-server"
if [ ! -x "$launcher" ]; then
    log "fetching llama-server of Debian sid into a private root"
    work=$(mktemp -d "$COMPONENTS/llama.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debian_apt sid "$work/apt"
    retry 600 "${APT[@]}" -y --download-only install llama.cpp >&2 ||
        missing "the package llama.cpp and what it needs could not be downloaded from Debian sid"
    mkdir -p "$work/root"
    for deb in "$work"/apt/cache/archives/*.deb; do dpkg-deb -x "$deb" "$work/root"; done

    cd "$work/root"
    binary=$(find usr -name llama-server -type f -path '*/bin/*' | head -n 1)
    loader=$(find usr -name 'ld-linux*.so.*' | head -n 1)
    backend=$(find usr/lib -name 'libggml-cpu-x64.so' -o -name 'libggml-cpu-armv8.0_1.so' | head -n 1)
    [ -n "$backend" ] || backend=$(find usr/lib -name 'libggml-cpu*.so' | head -n 1)
    [ -n "$binary" ] && [ -n "$loader" ] && [ -n "$backend" ] ||
        missing "the package llama.cpp of Debian sid is laid out in a new way: no llama-server, loader or CPU backend in it"
    folders=$(find usr/lib -name '*.so*' -printf '%h\n' | grep -v -e /gconv -e /engines -e /backends | sort -u)
    {
        echo '#!/bin/sh'
        echo '# Written by tests/components/llama.sh.'
        echo 'root=${0%/*}'
        echo 'libraries='
        for folder in $folders; do echo "libraries=\$libraries:\$root/$folder"; done
        echo "GGML_BACKEND_PATH=\"\$root/$backend\""
        echo 'export GGML_BACKEND_PATH'
        echo "exec \"\$root/$loader\" --library-path \"\${libraries#:}\" \"\$root/$binary\" \"\$@\""
    } >llama-server
    chmod +x llama-server
    cd "$COMPONENTS"
    rm -rf "$root"
    mv "$work/root" "$root"
fi
"$launcher" --version 2>&1 | sed -n 's/^version/llama-server version/p' | head -n 1 | sed 's/^/[components] /' >&2
echo "$launcher"
