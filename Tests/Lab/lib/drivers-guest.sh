# Runs in the guest of Tests/Lab/run drivers, by bash, as root. /out is shared with the lab; the environment is in /out/lab.
. /out/lab
stage() { case " $LAB_STAGES " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

echo "guest: kernel $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
# A camera with a metadata node beside it, as USB cameras have, and a card that hears what it plays.
modprobe vivid n_devs=1 num_inputs=1 input_types=0 node_types=0x20001 || exit 1
modprobe snd-aloop || exit 1
modprobe virtio_net
guest_udev
camera=/dev/v4l/by-path/platform-vivid.0-video-index0
ls -l /dev/video* /dev/v4l/by-path
cat /proc/asound/cards

if stage proofs; then
    echo "-- the drivers by their own tools"
    v4l2-ctl -d $camera --set-fmt-video=width=640,height=360,pixelformat=YUYV --set-parm=30 --stream-mmap=4 \
        --stream-count=60 --stream-poll 2>&1 | tail -n 2
    arecord -q -D hw:CARD=Loopback,DEV=1 -f S16_LE -c 2 -r 48000 -d 1 /tmp/tool.wav
    echo "figure tool_wav_bytes $(stat -c %s /tmp/tool.wav)"
    echo "-- our devices"
    DOWNBEAT_DRIVER_LAB=$camera timeout -k 5 300 "$LAB_ROOT/.build/debug/downbeatPackageTests.xctest" --testing-library swift-testing \
        --filter DriverLabTests >/out/proofs 2>&1
    echo "figure proofs_status $?"
    grep -E '^figure|^✘|✔ Test run' /out/proofs
    udevadm settle
fi

if stage imu; then . "$LAB_ROOT/Tests/Lab/lib/drivers-imu.sh"; fi
# The tests of sound leave the cards as they found them.
sound() {
    DOWNBEAT_SOUND_LAB=$LAB_ROOT/Tests/Lab/lib timeout -k 5 600 "$LAB_ROOT/.build/debug/downbeatPackageTests.xctest" \
        --testing-library swift-testing "$@"
}
if stage sound; then
    echo "-- sound"
    modprobe vhci-hcd && modprobe snd-usb-audio || exit 1
    sound --filter SoundLabTests >/out/sound 2>&1
    echo "figure sound_status $?"
    grep -E '^figure|^✘|✔ Test run' /out/sound
fi
if stage chirps; then
    echo "-- chirps"
    DOWNBEAT_SOUND_CHIRPS=1 sound --filter 'SoundLabTests/.*Chirps are heard' >/out/chirps 2>&1
    echo "figure chirps_status $?"
    grep -E '^figure|^✘|✔ Test run' /out/chirps
fi

stage discovery || stage take || exit 0

echo "-- network"
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
: >/out/network

if stage discovery; then
    avahi-publish -s "probe-$GUEST_NAME" _downbeat-probe._tcp 7 >/out/guest-publish.log 2>&1 &
    publisher=$!
    : >/out/published
    for ((i = 0; i < 300; i++)); do [ -e /out/discovered ] && break; sleep 0.2; done
    kill $publisher
fi

stage take || exit 0
echo "-- agent"
export PATH=$LAB_ROOT/.build/$LAB_BUILD:$PATH DOWNBEAT_HOME=/out/agent DOWNBEAT_CONFIG=/out/agent.json5
downbeat-agent devices
for ((i = 0; i < 300; i++)); do [ -e /out/token ] && break; sleep 0.2; done
downbeat-agent join "$(cat /out/token)" || exit 1
downbeat-agent run >/out/agent.log 2>&1 &
agent=$!
for ((i = 0; i < 1500; i++)); do [ -e /out/finished ] && break; kill -0 $agent 2>/dev/null || break; sleep 0.2; done
kill -TERM $agent 2>/dev/null
wait $agent
