# The guest's part of `Tests/Lab/run drivers imu`: a HID sensor hub of our emulator, the kernel's own HID and IIO drivers,
# and our device on top. Sourced by drivers-guest.sh.
echo "-- inertial sensor"
modprobe uhid || exit 1
for module in hid-sensor-hub hid-sensor-accel-3d hid-sensor-gyro-3d; do modprobe "$module" || exit 1; done
"$LAB_ROOT/.build/debug/downbeat-emulator" imu --uhid lab-wrist --rate 100 --truth /out/imu-truth \
    </dev/null >/out/imu-emulator.log 2>&1 &
emulator=$!
for ((i = 0; i < 100; i++)); do [ -e /sys/bus/iio/devices/iio:device1/name ] && break; sleep 0.2; done
udevadm settle
for folder in /sys/bus/iio/devices/iio:device*; do
    echo "$(cat "$folder/name"): $(cat "$folder"/in_*_scale), clock $(cat "$folder/current_timestamp_clock")"
done
DOWNBEAT_IMU_LAB=/out/imu-truth timeout -k 5 200 "$LAB_ROOT/.build/debug/downbeatPackageTests.xctest" \
    --testing-library swift-testing --filter DriverLabIMUTests >/out/imu-proofs 2>&1
echo "figure imu_proofs_status $?"
grep -aE '^figure|^✘|✔ Test run' /out/imu-proofs
kill $emulator
