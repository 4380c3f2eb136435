#!/usr/bin/env bash
# Runs a Kafka broker with one node on free ports, for tests or by hand. It needs no rights, only Java and Maven.
#
#   kafka.sh fetch                      download Kafka's jars, once
#   kafka.sh run [FOLDER [PORT...]]     run a broker until the standard input ends
#
# `run` prints `READY PORT SASL CONTROLLER TLS TLS_SASL PID`: the ports of the listener without and with SASL (PLAIN; user
# `alice`, password `alice-secret`), the port of the controller, those of the listeners with TLS, and the process. A folder
# that is named is kept, and a later broker continues with its data if it gets the same ports; without one, the data is in
# a temporary folder. The listeners with TLS exist if the folder has `server.pem`, a private key and its certificate.
set -euo pipefail

# shellcheck source=tests/services/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"
cache=$services/kafka-4.1.1

fetch() {
    fetch_jars "$cache" kafka.xml format_data
}

format_data() { # formatting takes longer than starting: each broker gets a copy of one formatted folder
    rm -rf "$cache/formatted"
    settings "$cache" "$cache/formatted" 1 2 3 4 5 > "$cache/format.properties"
    "$java" -cp "$cache/jars/*" kafka.tools.StorageTool format --ignore-formatted \
        --cluster-id ZGFna2l0LXRlc3RzLWthZg --config "$cache/format.properties" >&2
}

settings() { # FOLDER DATA PORT SASL CONTROLLER TLS TLS_SASL
    local plain="PLAIN://127.0.0.1:$3,LOGIN://127.0.0.1:$4" tls=""
    if test -e "$1/server.pem"; then
        tls=",TLS://127.0.0.1:$6,TLS_LOGIN://127.0.0.1:$7"
    fi
    local login='org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";'
    # A broker that was killed is accepted again when its session is over.
    cat << END
process.roles=broker,controller
node.id=1
log.dirs=$2
listeners=$plain$tls,CONTROLLER://127.0.0.1:$5
advertised.listeners=$plain$tls
listener.security.protocol.map=PLAIN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,TLS_LOGIN:SASL_SSL
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$5
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=$login
listener.name.tls_login.plain.sasl.jaas.config=$login
ssl.keystore.type=PEM
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
auto.create.topics.enable=false
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.initial.task.delay.ms=3600000
num.network.threads=1
num.io.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.dedupe.buffer.size=4194304
log.cleaner.io.buffer.size=65536
log.cleaner.backoff.ms=200
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
END
    test -z "$tls" || printf 'listener.name.%s.ssl.keystore.location=%s\n' tls "$1/server.pem" tls_login "$1/server.pem"
}

run() {
    fetch
    local folder made
    open_folder "${1:-}"
    if test -z "${2:-}"; then
        # shellcheck disable=SC2046
        set -- "$folder" $(free_ports 5)
    fi
    test -e "$folder/data" || cp -r "$cache/formatted" "$folder/data"
    settings "$folder" "$folder/data" "${@:2}" > "$folder/broker.properties"
    local tuned=${KAFKA_JVM_PERFORMANCE_OPTS:--Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1}
    # shellcheck disable=SC2086
    "${with[@]}" "$java" $tuned -Xshare:auto -XX:-UsePerfData \
        -cp "$cache/jars/*" kafka.Kafka "$folder/broker.properties" > "$folder/broker.log" 2>&1 < /dev/null &
    local broker=$!
    # shellcheck disable=SC2064
    trap "ends '$folder' '$made' $broker" EXIT
    await $broker broker.log listens "$2"
    serve "${@:2}" $broker
}

command_of "$@"
