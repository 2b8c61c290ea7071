#!/usr/bin/env bash
# Boots one guest with Debian's stock kernel and shows that Downbeat works with the kernel's own drivers:
#
#   proofs     our camera, microphone and speaker against vivid and snd-aloop: counts, stamps, injected faults
#   discovery  multicast DNS between the guest and the outside
#   take       an agent in the guest, found and commanded by a coordinator outside
#
# DOWNBEAT_LAB_STAGES names some of them. Everything runs in namespaces of its own that end with this script.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/lib/guest.sh"
stages=${DOWNBEAT_LAB_STAGES:-proofs discovery take}
stage() { case " $stages " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

if [ -z "${DOWNBEAT_LAB_INSIDE:-}" ]; then
    guest_prepare || { echo "drivers: the guest can't be made ready" >&2; exit 1; }
    for folder in "$root" "$guest_cache"; do
        [ "$(stat -c %d "$folder")" = "$(stat -c %d /)" ] && continue
        echo "drivers: $folder isn't on the file system of /, which is all that a guest sees; move it there" >&2
        exit 1
    done
    build() {
        local log
        log=$(mktemp)
        (cd "$root" && swift build --explicit-target-dependency-import-check error "$@") >"$log" 2>&1 ||
            { grep -E 'error' "$log" | sort -u | head -n 40; rm -f "$log"; exit 1; }
        rm -f "$log"
    }
    if stage proofs; then echo "== build of the tests"; build --build-tests; fi
    if stage take; then echo "== build"; build -c release; fi
    # A process namespace: whatever happens to this script, nothing of it is left running.
    exec unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
        env DOWNBEAT_LAB_INSIDE=1 DOWNBEAT_LAB_STAGES="$stages" bash "$0"
fi

work=$(mktemp -d /tmp/downbeat-drivers.XXXXXX)
out=$work/guest
mkdir -p "$out"
finish() {
    guest_stop
    [ -n "${DOWNBEAT_LAB_KEEP:-}" ] && cp -a "$work/." "$DOWNBEAT_LAB_KEEP/"
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

figures=()
# NAME VALUE COMPARISON GOAL: one figure, held against its goal.
judge() {
    local word=fail
    awk -v a="${2:-nan}" -v b="$4" "BEGIN { exit !(a == a + 0 && a $3 b) }" && word=pass
    figures+=("drivers.$1 figure=${2:-nan} goal=$4 $word")
}
figure() { awk -v name="$1" '$1 == "figure" && $2 == name { print $3; exit }' "$out/log" 2>/dev/null; }

guest_kernel || exit 1
mount -t tmpfs tmpfs /run
mkdir -p /run/dbus
ip link set lo up
ip tuntap add dev tap0 mode tap
ip addr add 10.77.0.1/24 dev tap0
ip link set tap0 up multicast on
ip route add 224.0.0.0/4 dev tap0

if stage discovery || stage take; then
    dbus-daemon --system --nofork --nopidfile >"$work/dbus.log" 2>&1 &
    printf '%s\n' '[server]' 'host-name=outside' 'allow-interfaces=tap0' '[publish]' 'publish-workstation=no' \
        >"$work/avahi.conf"
    for ((i = 0; i < 100; i++)); do [ -S /run/dbus/system_bus_socket ] && break; sleep 0.1; done
    avahi-daemon --no-rlimits --no-chroot -f "$work/avahi.conf" >"$work/avahi.log" 2>&1 &
fi

declare -p root stages | sed 's/^declare -- root/export LAB_ROOT/; s/^declare -- stages/export LAB_STAGES/' >"$out/lab"
cp "$here/drivers-agent.json5" "$out/agent.json5"
echo "== guest"
for try in 1 2 3; do
    GUEST_NAME=driver-pc guest_start "$out" 600 "$here/drivers-guest.sh" -netdev tap,id=net,ifname=tap0,script=no,downscript=no \
        -device virtio-net-pci,netdev=net,mac=52:54:00:00:00:02,romfile=
    guest_booted "$out" && break
    echo "drivers: the guest didn't boot (try $try)" >&2
    guest_stop
done
[ -e "$out/.booted" ] || { echo "drivers: no guest" >&2; exit 1; }

# Waits until a file is there or the guest has ended.
await_file() {
    local i
    for ((i = 0; i < $2 * 5; i++)); do
        [ -e "$1" ] && return 0
        kill -0 "$GUEST_PID" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}

if stage discovery; then
    seconds=nan
    if await_file "$out/published" 400; then
        begin=$(date +%s%N)
        for ((i = 0; i < 60; i++)); do
            avahi-browse -rpt _downbeat-probe._tcp 2>/dev/null | grep -q '^=.*IPv4.*probe-driver-pc.*;10\.77\.0\.2;' &&
                { seconds=$(awk "BEGIN { print ($(date +%s%N) - $begin) / 1e9 }"); break; }
            sleep 0.2
        done
    fi
    : >"$out/discovered"
    judge discovery_s "$seconds" '<=' 10
fi

if stage take; then
    export PATH=$root/.build/release:$PATH DOWNBEAT_HOME=$work/coordinator
    downbeat init --name drivers >/dev/null
    downbeat invite --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])' >"$work/token" &&
        mv "$work/token" "$out/token"
    for ((i = 0; i < 150; i++)); do
        downbeat hosts --json 2>/dev/null | grep -q '"driver-pc"' && break
        kill -0 "$GUEST_PID" 2>/dev/null || break
        sleep 1
    done
    downbeat hosts
    downbeat record --duration 8 --task "driver lab" --session drivers
    judge take_status "$?" '==' 0
    episode=$(ls -d "$DOWNBEAT_HOME"/sessions/drivers/ep_* 2>/dev/null | tail -n 1)
    host=$episode/hosts/driver-pc
    lines=$(wc -l <"$host/cam_vivid.timestamps.jsonl" 2>/dev/null)
    frames=$(ffprobe -v error -count_packets -select_streams v -show_entries stream=nb_read_packets -of csv=p=0 \
        "$host/cam_vivid.mp4" 2>/dev/null)
    # 8 s at 30 frames/s, and a second for the time around the chirps.
    judge take_video_frames "${frames:-0}" '>=' 230
    judge take_lines_not_frames "$((${lines:-0} - ${frames:-0} - $(head -n 1 "$host/cam_vivid.timestamps.jsonl" 2>/dev/null |
        grep -c clock_domain)))" '==' 0
    seconds=$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$host/host_audio.wav" 2>/dev/null)
    judge take_sound_s "${seconds:-0}" '>=' 7.9
    : >"$out/finished"
fi

guest_wait "$out"
judge guest_status "$?" '==' 0
cat "$out/log"

if stage proofs; then
    judge proofs_status "$(figure proofs_status)" '==' 0
    judge camera_frames "$(figure camera_frames)" '>=' 145
    # vivid itself leaves frames out where its own thread is late, as in an emulated machine it is.
    judge camera_lost "$(figure camera_lost)" '<=' 5
    judge lossy_untold "$(($(figure lossy_lost_by_counter) - $(figure lossy_lost_told)))" '==' 0
    judge microphone_frames "$(figure microphone_frames)" '==' 240000
    judge speaker_identical "$(figure speaker_identical_of_24000)" '==' 24000
fi
printf '%s\n' "${figures[@]}"
! printf '%s\n' "${figures[@]}" | grep -q ' fail$'
