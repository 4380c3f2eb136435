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
    trap "ends '$folder' '$made' $manager $node" EXIT
    await "$manager $node" "namenode.log datanode.log" grep -qs 'Adding new storage ID' "$folder/namenode.log"
    serve "$2" $manager
}

command_of "$@"
