#!/usr/bin/env bash
# Runs a blob server with Azure's interface on a free port, for tests or by hand. It needs no rights, only Node and npm.
#
#   azurite.sh fetch                 download Azurite, once
#   azurite.sh run [FOLDER [PORT]]   run a server until the standard input ends
#
# `run` prints `READY PORT PID`. The account is Azurite's devstoreaccount1, with its well-known key. A folder that is named is
# kept, and a later server continues with its data; without one, the data is in a temporary folder.
set -euo pipefail

# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"
cache=$services/azurite-3.37.0

fetch() {
    test ! -e "$cache/ready" || return 0
    for tool in node npm; do
        command -v $tool > /dev/null && continue
        echo "azurite.sh needs $tool: sudo apt-get install npm" >&2
        exit $missing
    done
    mkdir -p "$cache"
    exec 9> "$cache/lock"
    flock 9
    test ! -e "$cache/ready" || return 0
    npm install --prefix "$cache" --silent --no-audit --no-fund azurite@3.37.0 >&2
    touch "$cache/ready"
}

run() {
    fetch
    local folder made
    open_folder "${1:-}"
    local port=${2:-$(free_port)}
    # newer clients speak newer versions of the interface than Azurite knows
    "${with[@]}" node "$cache/node_modules/azurite/dist/src/blob/main.js" --blobHost 127.0.0.1 --blobPort "$port" \
        --location "$folder/data" --silent --skipApiVersionCheck --disableTelemetry > "$folder/log" 2>&1 < /dev/null &
    local server=$!
    # shellcheck disable=SC2064
    trap "ends '$folder' '$made' $server" EXIT
    await $server log listens "$port"
    serve "$port" $server
}

command_of "$@"
