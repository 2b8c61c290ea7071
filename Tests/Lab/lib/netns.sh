# Hosts as namespaces: source it, call lab_start, then host_start for each host.
#
# Each host has an own network (eth0 on a bridge that all hosts share), host name, process ids, /run with dbus-daemon and
# avahi-daemon, and an own CLOCK_MONOTONIC and CLOCK_BOOTTIME, shifted by a known number of seconds. CLOCK_REALTIME can't be
# shifted by a namespace: it is the common truth of all hosts. Nothing of the machine itself is touched: the bridge is in a
# namespace too, and everything ends with the processes that lab_stop kills by their number.
#
#   lab_start                    makes $LAB_DIR (a new folder), the bridge, and the trap that cleans up
#   host_start NAME SECONDS      a host whose monotonic clock is SECONDS ahead of the machine's
#   host_exec NAME COMMAND…      runs a command in a host
#   host_avahi NAME start|stop   starts or stops (kills) the avahi-daemon of a host
#   host_link NAME up|down       plugs or pulls the cable of a host
#   host_home NAME               prints the folder of a host, the same path inside and outside
#   lab_stop                     ends all of it; runs by itself at the exit
#
# Folders: $LAB_DIR/air is shared by all hosts (the air of emulated devices), $LAB_DIR/hosts/NAME/home is each host's
# DOWNBEAT_HOME. IPv4: 10.77.0.N/24 in the order of starting; IPv6: link-local.

declare -A host_pid host_address
lab_hub=""
lab_count=0

lab_fail() {
    echo "lab: $*" >&2
    exit 1
}

lab_need() {
    local tool
    [ "$(id -u)" = 0 ] || lab_fail "namespaces need root: run it with sudo"
    for tool in unshare nsenter ip dbus-daemon avahi-daemon; do
        command -v "$tool" >/dev/null || lab_fail "$tool is missing: scripts/bootstrap installs the packages"
    done
    [ -e /proc/self/ns/time ] || lab_fail "this kernel has no time namespaces (Linux 5.6 has)"
}

# Starts a process that holds namespaces, and waits for the file that says they are made. The holder is process 1 of its
# namespace: when it is killed, the kernel kills all that runs in there. Sets lab_holder to its number out here.
lab_hold() {
    local ready=$1
    shift
    rm -f "$ready"
    # bash as process 1 takes in orphans.
    unshare "$@" --fork --kill-child -- bash -c '
        [ -e /proc/self/ns/pid ] && mount -t proc proc /proc 2>/dev/null
        echo ready >"$1"
        trap : TERM
        while :; do sleep 3600 & wait $!; done' holder "$ready" &
    local outer=$! tries
    # Without it bash tells everyone that it was killed.
    disown $outer
    for tries in $(seq 100); do
        [ -s "$ready" ] && break
        kill -0 $outer 2>/dev/null || lab_fail "the namespaces of $ready couldn't be made"
        sleep 0.05
    done
    [ -s "$ready" ] || lab_fail "the namespaces of $ready aren't ready after 5 s"
    lab_outer+=("$outer")
    lab_holder=$(cat "/proc/$outer/task/$outer/children")
    lab_holder=${lab_holder// /}
}

lab_start() {
    lab_need
    LAB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/downbeat-lab.XXXXXX")
    mkdir -p "$LAB_DIR/air" "$LAB_DIR/hosts"
    lab_outer=()
    lab_jobs=()
    trap lab_stop EXIT
    trap 'exit 130' INT TERM
    lab_hold "$LAB_DIR/hub.ready" --net --pid --mount --propagation private
    lab_hub=$lab_holder
    nsenter -t "$lab_hub" -n sh -c 'ip link set lo up && ip link add lan type bridge stp_state 0 forward_delay 0 \
        mcast_snooping 0 && ip link set lan up' || lab_fail "this kernel can't make a bridge"
}

host_start() {
    local name=$1 seconds=$2 folder=$LAB_DIR/hosts/$1 number
    lab_count=$((lab_count + 1))
    number=$lab_count
    mkdir -p "$folder/home"
    lab_hold "$folder/ready" --net --uts --pid --mount --propagation private --time --monotonic "$seconds" \
        --boottime "$seconds"
    host_pid[$name]=$lab_holder
    host_address[$name]=10.77.0.$number
    nsenter -t "$lab_hub" -n sh -c "ip link add port$number type veth peer name eth0 netns $lab_holder \
        && ip link set port$number master lan && ip link set port$number up" || lab_fail "no cable for host $name"
    host_exec "$name" sh -c "
        hostname '$name' && mount -t tmpfs tmpfs /run && mkdir -p /run/dbus /run/avahi-daemon
        echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
        ip link set lo up && ip addr add 10.77.0.$number/24 dev eth0 \
            && ip link set eth0 up && ip route add 224.0.0.0/4 dev eth0" || lab_fail "no network for host $name"
    cat >"$folder/avahi.conf" <<CONF
[server]
host-name=$name
use-ipv4=yes
use-ipv6=yes
allow-interfaces=eth0
enable-dbus=yes
[publish]
publish-workstation=no
CONF
    host_background "$name" dbus.log dbus-daemon --system --nofork --nopidfile
    local tries
    for tries in $(seq 100); do
        host_exec "$name" test -S /run/dbus/system_bus_socket && break
        sleep 0.05
    done
    host_avahi "$name" start
}

host_exec() {
    local name=$1
    shift
    nsenter -t "${host_pid[$name]}" --net --uts --pid --mount --time -- \
        env DOWNBEAT_HOME="$LAB_DIR/hosts/$name/home" "$@"
}

# Runs a command in a host in the background; its output goes to a file in the host's folder, its number (out here) to
# lab_job.
host_background() {
    local name=$1 log=$LAB_DIR/hosts/$1/$2
    shift 2
    host_exec "$name" "$@" >"$log" 2>&1 &
    lab_job=$!
    lab_jobs+=("$lab_job")
}

host_avahi() {
    local name=$1 folder=$LAB_DIR/hosts/$1
    case $2 in
    start)
        host_exec "$name" rm -f /run/avahi-daemon/pid
        host_background "$name" avahi.log avahi-daemon --no-drop-root --no-rlimits --no-chroot -f "$folder/avahi.conf"
        ;;
    # Its own pid file, in the /run of the host alone.
    stop) host_exec "$name" sh -c 'kill -9 "$(cat /run/avahi-daemon/pid)"' ;;
    esac
}

host_link() { host_exec "$1" ip link set eth0 "$2"; }

host_home() { echo "$LAB_DIR/hosts/$1/home"; }

# Monotonic minus real time of a host in ns, by Python: the truth about its clock.
host_clock_difference() {
    host_exec "$1" python3 -c '
import time
best = None
for _ in range(200):
    a = time.monotonic_ns(); r = time.clock_gettime_ns(time.CLOCK_REALTIME); b = time.monotonic_ns()
    if best is None or b - a < best[0]: best = (b - a, (a + b) // 2 - r)
print(best[1])'
}

lab_stop() {
    local pid
    trap - EXIT
    # Killing unshare kills process 1 of the namespace, and that all that runs in it.
    for pid in "${lab_outer[@]:-}"; do [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null; done
    for pid in "${lab_outer[@]:-}"; do while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; done
    wait 2>/dev/null
    [ -n "${LAB_KEEP:-}" ] && echo "lab: kept $LAB_DIR" >&2 && return
    [ -n "${LAB_DIR:-}" ] && rm -rf "$LAB_DIR"
}
