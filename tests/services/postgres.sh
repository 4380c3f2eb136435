#!/usr/bin/env bash
# Start a PostgreSQL server with an empty database, in a temporary folder and on a free port of the loopback.
#
#   tests/services/postgres.sh          prints the address of the database, and then waits
#
# On its standard input it takes the commands `kill`, which kills the server's processes, and `start`, which starts it
# again with its data; it answers each with a line. The server ends and its folder is removed when the script ends: at a
# signal, or when its standard input is closed, so that it does not outlive the program that started it. It does not run
# as root: root becomes the user `postgres`, whom Debian's package creates. PGBIN is the folder of initdb and pg_ctl, else
# that of Debian's package.
set -euo pipefail

bin=${PGBIN:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)}
if [ ! -x "$bin/initdb" ]; then
    echo "PostgreSQL is missing: apt-get install postgresql" >&2
    exit 127
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/postgres-XXXXXX")
as=()
if [ "$(id -u)" = 0 ]; then
    chown postgres "$folder"
    as=(setpriv --reuid postgres --regid postgres --clear-groups env HOME="$folder")
fi
cd "$folder"

stop() {
    "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 0' INT TERM HUP

port=${PGPORT:-$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
echo "${PGPASSWORD:-secret}" > "$folder/password"
chmod 644 "$folder/password"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U dagkit --pwfile="$folder/password" --auth=scram-sha-256 \
    --encoding=UTF8 --no-locale --no-sync >/dev/null
# a kill loses nothing that the server has written, so it need not wait for the disk
cat >> "$folder/data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
fsync = off
logging_collector = off
log_min_messages = fatal
END

start() {
    "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w start >/dev/null </dev/null || cat "$folder/log" >&2
}

start
echo "postgresql://dagkit@127.0.0.1:$port/postgres"
while read -r command; do
    case $command in
        kill) server=$(head -1 "$folder/data/postmaster.pid") && kill -9 "$server" $(pgrep -P "$server")
              rm -f "$folder/data/postmaster.pid" ;;  # a process that nobody waited for still looks alive
        start) start ;;
        *) echo "unknown command $command" >&2 ;;
    esac
    echo "$command done"
done
