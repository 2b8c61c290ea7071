"""pylsl's time_correction against a known truth: `lsl.py outlet`, and in another namespace `lsl.py inlet TRUTH_NS SECONDS`."""
import sys
import time

import pylsl

if sys.argv[1] == "outlet":
    outlet = pylsl.StreamOutlet(pylsl.StreamInfo("clock", "Test", 1, 100, "float32", "clock-benchmark"))
    while True:
        outlet.push_sample([0.0])
        time.sleep(0.01)

truth, seconds = int(sys.argv[2]), float(sys.argv[3])
found = pylsl.resolve_byprop("name", "clock", 1, 20)
if not found:
    print("pylsl found no stream")
    sys.exit(1)
inlet = pylsl.StreamInlet(found[0])
inlet.open_stream(10)
end = time.monotonic() + seconds
errors, last = [], None
while time.monotonic() < end:
    # What has to be added to the other's stamps to have one's own: minus the difference of the clocks.
    correction = inlet.time_correction(10)
    if correction != last:
        last = correction
        errors.append(abs(correction * 1e9 + truth))
    time.sleep(0.1)
errors.sort()
p95 = errors[min(len(errors) - 1, int(len(errors) * 0.95))]
version = f"pylsl {pylsl.__version__}, liblsl {pylsl.library_version()}"
print(
    f"{version}: {len(errors)} corrections, error p50 {errors[len(errors) // 2] / 1000:.1f}, "
    f"max {errors[-1] / 1000:.1f} us"
)
print(f"pylsl error p95 {p95 / 1000:.3f} us")
