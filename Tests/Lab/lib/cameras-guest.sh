# Runs in the guest of Tests/Lab/run drivers cameras, by bash, as root. /out is shared with the lab.
. /out/lab

echo "guest: kernel $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
modprobe vivid n_devs=2 num_inputs=1,1 input_types=0,0 node_types=0x1,0x1 || exit 1
modprobe snd-aloop || exit 1
modprobe vhci-hcd || exit 1
modprobe uvcvideo || exit 1
modprobe virtio_net
guest_udev

# Each webcam is a process: its end is the cable pulled out.
webcam() { python3 "$LAB_ROOT/Tests/Lab/lib/usb_webcam.py" "$1" "$2" /out/pictures "/out/frames-$2" >>"/out/webcam-$2.log" 2>&1 & }
by_id() { echo "/dev/v4l/by-id/usb-Downbeat_Lab_Webcam_$1-video-index0"; }
webcam 0 CAM-A; webcam_a=$!
webcam 1 CAM-B; webcam_b=$!
for ((i = 0; i < 150; i++)); do [ -e "$(by_id CAM-A)" ] && [ -e "$(by_id CAM-B)" ] && break; sleep 0.2; done
ls -l /dev/v4l/by-id
# Which stream has which node, for the one that reads the trace; a webcam that comes back may have another.
minors() {
    for name in /sys/class/video4linux/video*; do
        read -r card <"$name/name"
        echo "$1 minor $(cut -d: -f2 "$name/dev") index $(cat "$name/index") card $card serial $(cat "$name/device/../serial" 2>/dev/null)"
    done >>/out/minors
}
minors before

# The kernel's own record of each buffer that a program was given.
trace=/sys/kernel/debug/tracing
echo 1 >$trace/events/v4l2/v4l2_dqbuf/enable || exit 1
echo 8192 >$trace/buffer_size_kb
cat $trace/trace_pipe >/out/trace &
tracer=$!

interface=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip addr add 10.77.0.2/24 dev "$interface"
ip link set "$interface" up multicast on
ip route add 224.0.0.0/4 dev "$interface"
mkdir -p /run/dbus
dbus-daemon --system --nofork --nopidfile >/out/guest-dbus.log 2>&1 &
printf '%s\n' '[server]' "host-name=$GUEST_NAME" "allow-interfaces=$interface" '[publish]' 'publish-workstation=no' \
    >/run/avahi.conf
for ((i = 0; i < 100; i++)); do [ -S /run/dbus/system_bus_socket ] && break; sleep 0.1; done
avahi-daemon --no-rlimits --no-chroot -f /run/avahi.conf >/out/guest-avahi.log 2>&1 &
for ((i = 0; i < 100; i++)); do grep -q 'startup complete' /out/guest-avahi.log && break; sleep 0.2; done

export PATH=$LAB_ROOT/.build/$LAB_BUILD:$PATH DOWNBEAT_HOME=/out/agent DOWNBEAT_CONFIG=/out/agent.json5
downbeat-agent devices
downbeat-agent devices --json >/out/devices.json
: >/out/network
for ((i = 0; i < 300; i++)); do [ -e /out/token ] && break; sleep 0.2; done
downbeat-agent join "$(cat /out/token)" || exit 1
downbeat-agent run >/out/agent.log 2>&1 &
agent=$!

# The take has begun when its anchor is there.
for ((i = 0; i < 600; i++)); do
    compgen -G '/out/agent/episodes/ep_*/sync_point.json' >/dev/null && break
    [ -e /out/finished ] && break
    sleep 0.2
done
now() { awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime; }
if [ ! -e /out/finished ]; then
    sleep 10
    echo "unplugged $(now)" >>/out/events
    kill $webcam_a; wait $webcam_a
    sleep 10
    echo "plugged $(now)" >>/out/events
    webcam 0 CAM-A; webcam_a=$!
    sleep 8
    minors after
    v4l2-ctl -d /dev/video0 -c percentage_of_dropped_buffers=10
    sleep 6
    v4l2-ctl -d /dev/video0 -c percentage_of_dropped_buffers=0
fi
for ((i = 0; i < 1500; i++)); do [ -e /out/finished ] && break; kill -0 $agent 2>/dev/null || break; sleep 0.2; done
kill -TERM $agent 2>/dev/null
wait $agent
sleep 1
kill $webcam_a $webcam_b $tracer 2>/dev/null
tail -n 30 /out/agent.log
cat /out/webcam-*.log
exit 0
