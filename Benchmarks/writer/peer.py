"""SyncField's SensorWriter on the same rows: peer.py INPUT FOLDER REPEATS prints "rows seconds" of its processor time."""
import pathlib, sys, time

from syncfield.types import SensorSample
from syncfield.writer import SensorWriter

rows = [[float(word) for word in line.split()] for line in open(sys.argv[1])]
names = ("ax", "ay", "az", "gx", "gy", "gz")
writer = SensorWriter("imu", pathlib.Path(sys.argv[2]))
writer.open()
begin = time.process_time()
frame = 0
for _ in range(int(sys.argv[3])):
    for row in rows:
        writer.write(
            SensorSample(
                frame_number=frame, capture_ns=8_412_345_678_901_234 + frame * 1_000_000, channels=dict(zip(names, row)),
                clock_source="host_monotonic", clock_domain="left-pc", uncertainty_ns=500_000,
                device_timestamp_ns=frame * 1_000_000))
        frame += 1
print(frame, time.process_time() - begin)
writer.close()
