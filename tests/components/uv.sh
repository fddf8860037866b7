# Python programs in environments of their own, by uv: pip's own resolver takes many minutes for
# the large ones. Sourced after lib.sh.

# Prints the path of uv, installing it into an environment of its own if it is not there.
uv_program() {
    if command -v uv >/dev/null && uv --version >/dev/null 2>&1; then
        command -v uv
        return 0
    fi
    local venv="$COMPONENTS/uv"
    if ! "$venv/bin/uv" --version >/dev/null 2>&1; then
        command -v python3 >/dev/null || system_packages "python3" python3 python3-venv
        python3 -c 'import ensurepip, venv' 2>/dev/null || system_packages "python3's venv module" python3-venv
        rm -rf "$venv"
        python3 -m venv "$venv"
        retry 300 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv >&2 ||
            missing "uv could not be installed from the Python package index"
    fi
    echo "$venv/bin/uv"
}

# Makes the environment $1 with the packages of the further arguments (arguments of
# `uv pip install`) and prints its bin folder. Does nothing if they are the same as last time, and
# in the same place: an environment that was moved does not run.
uv_environment() {
    local name=$1 venv="$COMPONENTS/$1" uv start=$SECONDS
    shift
    local wanted="$venv: $*"
    if [ "$(cat "$venv/installed.txt" 2>/dev/null)" != "$wanted" ]; then
        uv=$(uv_program)
        rm -rf "$venv"
        # Where the system's certificates are: the index may be reached through a mirror.
        if [ -z "${SSL_CERT_FILE:-}" ] && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
            export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
        fi
        log "installing $name"
        "$uv" --quiet venv --python 3.11 "$venv" >&2 ||
            missing "$name needs Python 3.11"
        retry 900 "$uv" --quiet pip install --python "$venv/bin/python" "$@" >&2 ||
            missing "$name could not be installed: $*"
        printf '%s' "$wanted" >"$venv/installed.txt"
        log "installed $name in $((SECONDS - start)) s: $(du -sh "$venv" | cut -f 1)"
    fi
    echo "$venv/bin"
}
