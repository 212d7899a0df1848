# For scripts that fetch from an archive of Debian, which source it. Nothing is installed,
# and no rights of root are needed. They set these first:
#
#   folder    where it goes; $folder/apt is removed by the script when it has what it wants
#   suite     the release of Debian
#   mirror    the address of a Debian archive; empty for the one that apt uses
stop() {
    echo "$1" >&2
    exit 1
}

# or_skip WHAT MISSING COMMAND...: runs what fetches WHAT. Where it fails, the script ends,
# without an error if MISSING is "skip".
or_skip() {
    set +e
    (set -e; "${@:3}")  # a subshell ends at the first error
    local status=$?
    set -e
    [ $status != 0 ] || return 0
    echo "$1 can't be had here, so no kernel is checked" >&2
    [ "$2" = skip ] && exit 0
    exit 1
}

# need WHY TOOL...: ends the script if a tool is missing
need() {
    local tool why=$1
    shift
    for tool in "$@"; do
        command -v "$tool" > /dev/null || stop "$tool is missing: $why"
    done
}

# open_archive KIND: reads the lists of packages (deb) or of sources (deb-src).
open_archive() {
    local apt=$folder/apt keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e $keys ] || stop "$keys is missing: install debian-archive-keyring"
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' | sed -n 1p)
    [ -n "$mirror" ] || stop "apt uses no archive of Debian here: name one in the environment"
    mkdir -p "$apt"/{lists,archives}/partial
    touch "$apt/status"
    echo "$1 [signed-by=$keys] $mirror $suite main" > "$apt/sources.list"
    # The lists, the state and the packages of this run alone: the system's stay as they are.
    cat > "$apt/apt.conf" <<END
APT::Sandbox::User "";
Debug::NoLocking "true";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
END
    export APT_CONFIG=$apt/apt.conf
    apt-get -qq update
}

close_archive() {
    unset APT_CONFIG
    rm -r "$folder/apt"
}
