#!/usr/bin/env bash
# Runs a Redis server on a free port of the loopback, for tests or by hand. It keeps everything in memory.
#
#   redis.sh run [FOLDER [PORT]]   run a server until the standard input ends
#
# `run` prints `READY PORT PID`.
set -euo pipefail

# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

run() {
    if ! command -v redis-server > /dev/null; then
        echo "redis.sh needs Redis: sudo apt-get install redis-server" >&2
        exit $missing
    fi
    local folder made
    open_folder "${1:-}"
    local port=${2:-$(free_port)}
    "${with[@]}" redis-server --port "$port" --bind 127.0.0.1 --save "" --dir "$folder" > "$folder/redis.log" 2>&1 < /dev/null &
    local server=$!
    # shellcheck disable=SC2064
    trap "ends '$folder' '$made' $server" EXIT
    await $server redis.log grep -q "Ready to accept connections" "$folder/redis.log"
    serve "$port" $server
}

command_of "$@"
