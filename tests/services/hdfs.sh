#!/usr/bin/env bash
# Runs HDFS with one DataNode on free ports, for tests or by hand. It needs no rights, only Java and Maven.
#
#   hdfs.sh fetch          download Hadoop's jars, once: the same as yarn.sh
#   hdfs.sh run [FOLDER]   run HDFS until the standard input ends
#
# `run` prints `READY PORT PID`: the port of WebHDFS, and the process of the NameNode. Blocks have 2 MiB. Without a folder,
# everything is in a temporary one.
set -euo pipefail

# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"
cache=$services/yarn-3.5.0
formatted=$services/hdfs-3.5.0 # formatting takes as long as starting: each server gets a copy of one formatted folder
names=org.apache.hadoop.hdfs.server.namenode.NameNode

fetch() {
    fetch_jars "$cache" yarn.xml
    test ! -e "$formatted/ready" || return 0
    mkdir -p "$formatted"
    exec 9> "$formatted/lock"
    flock 9
    test ! -e "$formatted/ready" || return 0
    local folder=$formatted
    rm -rf "$folder/name"
    settings "$folder" 1 2
    hadoop format $names -format -nonInteractive
    wait $!
    touch "$formatted/ready"
}

settings() { # FOLDER RPC WEB
    mkdir -p "$1/conf"
    site fs.defaultFS="hdfs://127.0.0.1:$2" hadoop.tmp.dir="$1/tmp" hadoop.security.token.service.use_ip=true \
        > "$1/conf/core-site.xml"
    site dfs.namenode.rpc-address="127.0.0.1:$2" dfs.namenode.http-address="127.0.0.1:$3" \
        dfs.namenode.name.dir="$1/name" dfs.datanode.data.dir="$1/data" dfs.replication=1 dfs.blocksize=2097152 \
        dfs.datanode.hostname=127.0.0.1 dfs.datanode.address=127.0.0.1:0 dfs.datanode.http.address=127.0.0.1:0 \
        dfs.datanode.ipc.address=127.0.0.1:0 dfs.namenode.safemode.extension=0 > "$1/conf/hdfs-site.xml"
    log4j > "$1/conf/log4j.properties"
}

run() {
    fetch
    local folder made
    open_folder "${1:-}"
    # shellcheck disable=SC2046
    set -- $(free_ports 2)
    settings "$folder" "$@"
    test -e "$folder/name" || cp -r "$formatted/name" "$folder/name"
    hadoop namenode $names
    local manager=$!
    hadoop datanode org.apache.hadoop.hdfs.server.datanode.DataNode
    local node=$!
    # shellcheck disable=SC2064
    trap "stop $manager $node '$folder' '$made'" EXIT
    until grep -qs 'Adding new storage ID' "$folder/namenode.log"; do
        if ! kill -0 $manager $node 2> /dev/null; then
            cat "$folder/namenode.log" "$folder/datanode.log" >&2
            exit 1
        fi
        sleep 0.1
    done
    echo "READY $2 $manager"
    cat > /dev/null # until the process that started this one closes the pipe or ends
}

stop() { # NAMENODE DATANODE FOLDER MADE
    kill -9 "$1" "$2" 2> /dev/null || true
    wait "$1" "$2" 2> /dev/null || true
    test -z "$4" || rm -rf "$3"
}

case ${1:-run} in
    fetch) fetch ;;
    run) run "${@:2}" ;;
    *) echo "usage: $0 fetch | run [FOLDER]" >&2; exit 64 ;;
esac
