#!/usr/bin/env bash
# The Python programs of requirements.txt in an environment of their own. Prints its bin folder.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

wanted="$(dirname "$0")/requirements.txt"
venv="$COMPONENTS/venv"
# An environment that was moved does not run, so its place is part of what is compared.
place_and_packages() {
    echo "$venv"
    cat "$wanted"
}
if ! place_and_packages | cmp -s - "$venv/installed.txt"; then
    command -v python3 >/dev/null || system_packages "python3" python3 python3-venv
    python3 -c 'import ensurepip, venv' 2>/dev/null || system_packages "python3's venv module" python3-venv
    log "installing $(grep -v '^#' "$wanted" | tr '\n' ' ')into a Python environment"
    rm -rf "$venv"
    python3 -m venv "$venv"
    retry 300 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --retries 2 --timeout 60 -r "$wanted" >&2 ||
        missing "the Python packages of tests/components/requirements.txt could not be installed"
    place_and_packages >"$venv/installed.txt"
fi
echo "$venv/bin"
