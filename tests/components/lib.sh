# Shared by the installers: where things go, one log line per step, bounded downloads.
# Sourced, never run. Everything lands under $COMPONENTS and a step that finds its result there
# does nothing.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
COMPONENTS="${CARGO_TARGET_DIR:-$REPO/target}/components"
mkdir -p "$COMPONENTS"

trap 'log "failed: line $LINENO of ${BASH_SOURCE[0]}: $BASH_COMMAND"' ERR

log() { printf '[components] %s\n' "$*" >&2; }

# Exit status 2 everywhere means: something is missing that a person has to provide.
missing() {
    printf '[components] %s\n' "$@" >&2
    exit 2
}

# Runs a command up to 3 times, each at most $1 seconds.
retry() {
    local limit=$1 attempt
    shift
    for attempt in 1 2 3; do
        if timeout "$limit" "$@"; then
            return 0
        fi
        log "attempt $attempt of 3 failed: $*"
        [ "$attempt" = 3 ] || sleep $((attempt * 3))
    done
    return 1
}

# Installs Debian packages on the machine itself, for the few things that cannot live in a
# folder. $1: what they are for.
system_packages() {
    local purpose=$1
    shift
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        missing "$purpose is missing; install it, then run this again. On Debian, as root:" \
            "    apt-get install --no-install-recommends $*"
    fi
    log "installing $* for $purpose"
    retry 300 apt-get -qq update >&2 || log "the package lists could not be refreshed; trying with those at hand"
    DEBIAN_FRONTEND=noninteractive retry 600 apt-get -qq -y install --no-install-recommends "$@" >&2 ||
        missing "$purpose could not be installed: $*"
}
