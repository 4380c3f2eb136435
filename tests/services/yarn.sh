#!/usr/bin/env bash
# Runs YARN with one NodeManager on free ports, for tests or by hand. It needs no rights, only Java and Maven.
#
#   yarn.sh fetch          download Hadoop's jars, once
#   yarn.sh run [FOLDER]   run YARN until the standard input ends
#
# `run` prints `READY PORT PID`: the port of the ResourceManager's web page, and its process. HADOOP_CONF_DIR of clients is
# FOLDER/conf. The logs of containers are in FOLDER/logs. Without a folder, everything is in a temporary one; `run` prints
# its path to the standard error.
set -euo pipefail

# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"
cache=$services/yarn-3.5.0

fetch() {
    fetch_jars "$cache" yarn.xml
}

settings() { # FOLDER WEB ADDRESS SCHEDULER TRACKER ADMIN
    local manager=yarn.resourcemanager node=yarn.nodemanager
    mkdir -p "$1/conf"
    site fs.defaultFS=file:/// "hadoop.tmp.dir=$1/tmp" > "$1/conf/core-site.xml"
    site yarn.scheduler.capacity.root.queues=default yarn.scheduler.capacity.root.default.capacity=100 \
        yarn.scheduler.capacity.maximum-am-resource-percent=1.0 > "$1/conf/capacity-scheduler.xml"
    # Containers are small and may be many; heartbeats are short, because nothing happens between two of them.
    site $manager.webapp.address="127.0.0.1:$2" $manager.address="127.0.0.1:$3" \
        $manager.scheduler.address="127.0.0.1:$4" $manager.resource-tracker.address="127.0.0.1:$5" \
        $manager.admin.address="127.0.0.1:$6" $manager.nodemanagers.heartbeat-interval-ms=100 \
        $node.hostname=127.0.0.1 $node.address=127.0.0.1:0 $node.localizer.address=127.0.0.1:0 \
        $node.webapp.address=127.0.0.1:0 $node.local-dirs="$1/local" $node.log-dirs="$1/logs" \
        $node.resource.memory-mb=8192 $node.resource.cpu-vcores=8 yarn.scheduler.minimum-allocation-mb=128 \
        $node.pmem-check-enabled=false $node.vmem-check-enabled=false \
        $node.disk-health-checker.max-disk-utilization-per-disk-percentage=100 > "$1/conf/yarn-site.xml"
    log4j > "$1/conf/log4j.properties"
}

run() {
    fetch
    local folder made
    open_folder "${1:-}"
    test -z "$made" || echo "$folder" >&2
    # shellcheck disable=SC2046
    set -- $(free_ports 5)
    settings "$folder" "$@"
    JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v "$java")")")")
    export JAVA_HOME # containers get it
    hadoop resourcemanager org.apache.hadoop.yarn.server.resourcemanager.ResourceManager
    local manager=$!
    hadoop nodemanager org.apache.hadoop.yarn.server.nodemanager.NodeManager
    local node=$!
    # shellcheck disable=SC2064
    trap "stop '$folder' '$made' $manager $node" EXIT
    await "$manager $node" "resourcemanager.log nodemanager.log" \
        grep -qs 'Registered with ResourceManager' "$folder/nodemanager.log"
    serve "$1" $manager
}

stop() { # FOLDER MADE PROCESS...
    ends "$1" "" "${@:3}"
    # Each container is a session of its own, and outlives its NodeManager.
    find "$1/local/nmPrivate" -name '*.pid' -exec cat {} + 2> /dev/null | while read -r container; do
        kill -9 -- "-$container" 2> /dev/null || true
    done
    test -z "$2" || rm -rf "$1"
}

command_of "$@"
