# Debian packages in a folder, without touching the machine's own packages or libraries.
# Sourced after lib.sh. apt is used with a private state, so this needs no root.

# The mirror this machine is set up with, as apt itself understands its sources, whichever of
# the two file formats they are in.
debian_mirror() {
    local codename mirror
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="$codename" '$2 == release && $3 == "main" { print $1; exit }')
    [ -n "$mirror" ] || missing "no Debian mirror: apt has no source for \`$codename main\` on this machine"
    echo "$mirror"
}

# Sets APT to a command line that sees suite $1 only, with its state under folder $2.
debian_apt() {
    local suite=$1 state=$2 keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        missing "apt-get and dpkg-deb are missing: the real components come as Debian packages"
    [ -f "$keyring" ] || missing "\`$keyring\` is missing; install the package debian-archive-keyring"
    mirror=$(debian_mirror)
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    : >"$state/status"
    echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
    APT=(apt-get -qq
        -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache"
        -o "Dir::State::status=$state/status"
        -o APT::Install-Recommends=false -o APT::Sandbox::User=root
        -o Debug::NoLocking=true
        -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30)
    retry 300 "${APT[@]}" update >&2 || missing "the package lists of Debian $suite could not be had"
}
