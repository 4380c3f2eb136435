# What the scripts that run a server share; they source it.

# shellcheck disable=SC2034
missing=69 # what sysexits.h calls "unavailable"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
services=${DAGKIT_SERVICES:-$here/../../.services} # what is downloaded
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
with=()
if command -v setpriv > /dev/null; then
    with=(setpriv --pdeathsig KILL) # what is started with it ends also if this script is killed
fi

free_ports() { # COUNT prints ports that no process listens on
    python3 "$here/ports.py" "$1"
}

free_port() {
    free_ports 1
}

fetch_jars() { # FOLDER POM [THEN] downloads the jars of a POM into FOLDER/jars, once, and runs a function
    test ! -e "$1/ready" || return 0
    for tool in "$java" mvn; do
        command -v "$tool" > /dev/null && continue
        echo "$(basename "$0") needs $tool: sudo apt-get install maven default-jre-headless" >&2
        exit $missing
    done
    mkdir -p "$1"
    exec 9> "$1/lock"
    flock 9
    test ! -e "$1/ready" || return 0
    rm -rf "$1/jars"
    mvn --quiet --batch-mode --file "$here/$2" dependency:copy-dependencies "-DoutputDirectory=$1/jars" >&2
    ${3:-}
    touch "$1/ready"
}

open_folder() { # [FOLDER] sets `folder`, and `made` if the folder is a temporary one
    folder=${1:-} made=
    if test -z "$folder"; then
        folder=$(mktemp -d) made=yes
    fi
    mkdir -p "$folder"
}

listens() { # PORT
    (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null
}

ends() { # FOLDER MADE PROCESS... ends processes, and removes a temporary folder
    kill -9 "${@:3}" 2> /dev/null || true
    wait "${@:3}" 2> /dev/null || true
    test -z "$2" || rm -rf "$1"
}

await() { # PROCESSES LOGS TEST... waits until the test succeeds, or shows the logs once a process has ended
    until "${@:3}"; do
        # shellcheck disable=SC2086
        if ! kill -0 $1 2> /dev/null; then
            (cd "$folder" && cat $2) >&2
            exit 1
        fi
        sleep 0.1
    done
}

serve() { # WORD... prints READY and the words, and returns once the process that started this one closes the pipe or ends
    echo "READY $*"
    cat > /dev/null
}

command_of() { # ARGUMENT... runs the function that the first argument names; the comment of the script lists them
    local name=${1:-run}
    if grep -q "^#   $(basename "$0") $name" "$0"; then
        "$name" "${@:2}"
    else
        echo "usage:" >&2
        sed -n 's/^#   /  /p' "$0" >&2
        exit 64
    fi
}

site() { # NAME=VALUE... prints a configuration file of Hadoop
    echo '<configuration>'
    for each; do
        echo "<property><name>${each%%=*}</name><value>${each#*=}</value></property>"
    done
    echo '</configuration>'
}

log4j() { # prints settings by which a program of Hadoop logs to its standard output
    cat << END
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
END
}

hadoop() { # NAME CLASS ARGUMENT... starts a program of the jars in `cache`, with the settings of `folder`, as process `$!`
    : > "$folder/$1.log" # that of an earlier program has the line that is waited for
    "${with[@]}" "$java" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -XX:-UsePerfData \
        -cp "$folder/conf:$cache/jars/*" "${@:2}" > "$folder/$1.log" 2>&1 < /dev/null &
}
