#!/usr/bin/env bash
# Runs a MariaDB server on a free port of the loopback, for tests or by hand.
#
#   mariadb.sh run [FOLDER [PORT]]   run a server until the standard input ends
#
# `run` prints `READY PORT PID`. The user is dagkit, the password secret, the database dagkit. A folder that is named is kept,
# and a later server continues with its data; without one, the data is in a temporary folder.
set -euo pipefail

# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

create() { # FOLDER
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$1/data" --auth-root-authentication-method=normal \
        --skip-test-db > "$1/install.log" 2>&1
    cat > "$1/first.sql" << END
CREATE DATABASE dagkit;
CREATE USER dagkit@'127.0.0.1' IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO dagkit@'127.0.0.1';
END
}

run() {
    if ! command -v mariadbd > /dev/null; then
        echo "mariadb.sh needs MariaDB: sudo apt-get install mariadb-server" >&2
        exit $missing
    fi
    local folder made first=()
    open_folder "${1:-}"
    local port=${2:-$(free_port)}
    if ! test -e "$folder/data"; then
        create "$folder"
        first=(--init-file="$folder/first.sql")
    fi
    # a kill loses nothing that the server has written, so it need not wait for the disk
    "${with[@]}" mariadbd --no-defaults --user="$(id -un)" --datadir="$folder/data" --bind-address=127.0.0.1 \
        --port="$port" --socket="$folder/socket" --pid-file="$folder/pid" --innodb-flush-log-at-trx-commit=2 \
        --skip-name-resolve "${first[@]}" > "$folder/log" 2>&1 < /dev/null &
    local server=$!
    # shellcheck disable=SC2064
    trap "ends '$folder' '$made' $server" EXIT
    await $server log listens "$port"
    serve "$port" $server
}

command_of "$@"
