#!/usr/bin/env bash
# Runs a PostgreSQL server on a free port of the loopback, for tests or by hand.
#
#   postgres.sh run [FOLDER [PORT]]   run a server until the standard input ends
#
# `run` prints `READY PORT PID`. The user is dagkit, the password secret, the database postgres. A folder that is named is
# kept, and a later server continues with its data; without one, the data is in a temporary folder. The server does not
# run as root: root becomes the user `postgres`, whom Debian's package creates, and who then owns the folder. PGBIN is the
# folder of initdb and postgres, else that of Debian's package.
set -euo pipefail

bin=${PGBIN:-$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | sort -V | tail -1)}
# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

create() { # FOLDER
    echo secret > "$1/password"
    chmod 644 "$1/password"
    "${as[@]}" "$bin/initdb" -D "$1/data" -U dagkit --pwfile="$1/password" --auth=scram-sha-256 --encoding=UTF8 \
        --no-locale --no-sync > /dev/null
    # a kill loses nothing that the server has written, so it need not wait for the disk
    cat >> "$1/data/postgresql.conf" << END
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
logging_collector = off
log_min_messages = fatal
END
}

run() {
    if ! test -x "$bin/initdb"; then
        echo "postgres.sh needs PostgreSQL: sudo apt-get install postgresql" >&2
        exit $missing
    fi
    local folder made
    open_folder "${1:-}"
    local port=${2:-$(free_port)}
    as=(env HOME="$folder")
    if test "$(id -u)" = 0; then
        chown postgres "$folder"
        as=(setpriv --reuid postgres --regid postgres --clear-groups "${as[@]}")
    fi
    if command -v setpriv > /dev/null; then
        as+=(setpriv --pdeathsig INT) # also if this script is killed; after the change of the user, which clears it
    fi
    cd "$folder"
    test -e "$folder/data" || create "$folder"
    rm -f "$folder/data/postmaster.pid" # a server that was killed leaves it
    "${as[@]}" "$bin/postgres" -D "$folder/data" -p "$port" > "$folder/log" 2>&1 < /dev/null &
    local server=$!
    # shellcheck disable=SC2064
    trap "stop $server '$folder' '$made'" EXIT
    await $server log "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" -d postgres -U dagkit
    serve "$port" $server
}

stop() { # SERVER FOLDER MADE
    kill -QUIT "$1" 2> /dev/null || true # its processes end at once
    wait "$1" 2> /dev/null || true
    cd /
    test -z "$3" || rm -rf "$2"
}

command_of "$@"
