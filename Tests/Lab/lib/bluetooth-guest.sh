# Runs in the guest of Tests/Lab/run bluetooth, by bash, as root. /out is shared with the lab; the environment is in /out/lab.
. /out/lab
lab=$LAB_ROOT/.build/release/bluetooth-lab

echo "guest: kernel $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
echo "-- without an adapter"
$lab scan
modprobe hci_vhci || exit 1

echo "-- capture"
timeout -k 5 $((LAB_SECONDS + 120)) $lab capture "$LAB_SECONDS"
echo "figure capture_status $?"

echo "-- scan, blocked and free"
$lab adapter >/out/adapter.log 2>&1 &
adapter=$!
for ((i = 0; i < 100; i++)); do [ -e /sys/class/bluetooth/hci0 ] && [ -e /sys/class/bluetooth/hci0/rfkill* ] && break; sleep 0.1; done
sleep 1
for switch in /sys/class/rfkill/*/soft; do echo 1 >"$switch"; done
$lab scan >/out/blocked 2>&1
cat /out/blocked
echo "figure rfkill_told $(grep -c 'rfkill unblock bluetooth' /out/blocked)"
for switch in /sys/class/rfkill/*/soft; do echo 0 >"$switch"; done
$lab scan >/out/scanned 2>&1
sort -u /out/scanned
echo "figure gloves_heard $(grep -o 'heard C0:FF:EE:00:00:0[12] OGLO [A-Z]*' /out/scanned | sort -u | wc -l)"
setpriv --reuid=65534 --regid=65534 --clear-groups $lab scan >/out/unprivileged 2>&1
cat /out/unprivileged
echo "figure capability_told $(grep -c CAP_NET_RAW /out/unprivileged)"
kill $adapter
wait $adapter

if [ -x /usr/libexec/bluetooth/bluetoothd ]; then
    echo "-- capture beside bluetoothd"
    mkdir -p /run/dbus /var/lib/bluetooth
    dbus-daemon --system --nofork --nopidfile >/out/guest-dbus.log 2>&1 &
    for ((i = 0; i < 100; i++)); do [ -S /run/dbus/system_bus_socket ] && break; sleep 0.1; done
    /usr/libexec/bluetooth/bluetoothd -n >/out/bluetoothd.log 2>&1 &
    sleep 2
    timeout -k 5 120 $lab capture 12 | sed 's/^figure /figure beside_/'
    tail -n 3 /out/bluetoothd.log
fi
exit 0
