# What the scripts that run a server share; they source it.

# shellcheck disable=SC2034
missing=69 # what sysexits.h calls "unavailable"

free_port() {
    python3 -c 'import socket; held = socket.create_server(("127.0.0.1", 0)); print(held.getsockname()[1])'
}

open_folder() { # [FOLDER] sets `folder`, and `made` if the folder is a temporary one
    folder=${1:-} made=
    if test -z "$folder"; then
        folder=$(mktemp -d) made=yes
    fi
    mkdir -p "$folder"
}
