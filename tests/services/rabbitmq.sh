#!/usr/bin/env bash
# Runs a RabbitMQ broker on a free port, for tests or by hand. It needs no rights, only Debian's package.
#
#   rabbitmq.sh run [FOLDER [PORT TLS]]   run a broker until the standard input ends
#
# `run` prints `READY PORT TLS PID`: the ports of the listeners without and with TLS, and the process. The user is guest,
# the password guest. A folder that is named is kept, and a later broker continues with its data if it gets the same ports;
# without one, the data is in a temporary folder. The listener with TLS exists if the folder has `server.pem`, a private
# key and its certificate.
set -euo pipefail

server=${RABBITMQ_SERVER:-/usr/lib/rabbitmq/bin/rabbitmq-server}
# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

run() {
    if ! test -x "$server"; then
        echo "rabbitmq.sh needs RabbitMQ: sudo apt-get install rabbitmq-server" >&2
        exit $missing
    fi
    local folder made
    open_folder "${1:-}"
    local port=${2:-$(free_port)} tls=${3:-$(free_port)}
    printf '[].\n' > "$folder/plugins"
    printf 'listeners.tcp.1 = 127.0.0.1:%s\nvm_memory_high_watermark.absolute = 256MB\ndisk_free_limit.absolute = 10MB\n' \
        "$port" > "$folder/rabbitmq.conf"
    test ! -e "$folder/server.pem" || printf \
        'listeners.ssl.1 = 127.0.0.1:%s\nssl_options.certfile = %s\nssl_options.keyfile = %s\nssl_options.verify = verify_none\n' \
        "$tls" "$folder/server.pem" "$folder/server.pem" >> "$folder/rabbitmq.conf"
    export HOME=$folder \
        RABBITMQ_CONFIG_FILE=$folder/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=$folder/plugins \
        RABBITMQ_MNESIA_BASE=$folder/data RABBITMQ_LOG_BASE=$folder/log RABBITMQ_PID_FILE=$folder/pid \
        RABBITMQ_CONF_ENV_FILE=$folder/none RABBITMQ_DIST_PORT=$(free_port) ERL_EPMD_PORT=$(free_port) \
        RABBITMQ_NODENAME=dagkit$port@localhost
    "${with[@]}" epmd > /dev/null 2>&1 < /dev/null & # else Erlang starts one that stays
    local mapper=$!
    : > "$folder/broker.log" # that of an earlier broker has the line that is waited for
    "${with[@]}" "$server" > "$folder/broker.log" 2>&1 < /dev/null &
    local script=$!
    # shellcheck disable=SC2064
    trap "stop $script $mapper '$folder' '$made'" EXIT
    # its port is open before: it still closes connections then
    await $script broker.log grep -q "completed with" "$folder/broker.log"
    serve "$port" "$tls" "$(pgrep -P $script beam)" # the script is its parent
}

stop() { # SCRIPT MAPPER FOLDER MADE
    pkill -KILL -P "$1" 2> /dev/null || true
    kill -KILL "$1" "$2" 2> /dev/null || true
    test -z "$4" || rm -rf "$3"
}

command_of "$@"
