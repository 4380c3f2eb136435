# What the scripts that run a server share; they source it.

# shellcheck disable=SC2034
missing=69 # what sysexits.h calls "unavailable"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
services=${DAGKIT_SERVICES:-$here/../../.services} # what is downloaded
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

free_ports() { # COUNT prints ports that no process listens on
    python3 "$here/ports.py" "$1"
}

free_port() {
    free_ports 1
}

fetch_jars() { # FOLDER POM [THEN] downloads the jars of a POM into FOLDER/jars, once, and runs a function
    test ! -e "$1/ready" || return 0
    for tool in "$java" mvn; do
        command -v "$tool" > /dev/null && continue
        echo "$(basename "$0") needs $tool: sudo apt-get install maven default-jre-headless" >&2
        exit $missing
    done
    mkdir -p "$1"
    exec 9> "$1/lock"
    flock 9
    test ! -e "$1/ready" || return 0
    rm -rf "$1/jars"
    mvn --quiet --batch-mode --file "$here/$2" dependency:copy-dependencies "-DoutputDirectory=$1/jars" >&2
    ${3:-}
    touch "$1/ready"
}

open_folder() { # [FOLDER] sets `folder`, and `made` if the folder is a temporary one
    folder=${1:-} made=
    if test -z "$folder"; then
        folder=$(mktemp -d) made=yes
    fi
    mkdir -p "$folder"
}
