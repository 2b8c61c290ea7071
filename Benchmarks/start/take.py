"""What one take came to: take.py FOLDER HOST=TRUTH_NS… prints the spreads of the gates and of the first samples, in ns.

TRUTH is the host's monotonic clock minus a common one; with it the instants of all hosts are on one time line.
"""
import json
import sys

folder = sys.argv[1]
gates, firsts, realtime = [], [], True
for argument in sys.argv[2:]:
    host, truth = argument.split("=")
    manifest = json.load(open(f"{folder}/hosts/{host}/manifest.json"))
    gates.append(manifest["gate_opened_ns"] - int(truth))
    realtime = realtime and manifest.get("realtime_priority", False)
    with open(f"{folder}/hosts/{host}/imu.jsonl") as rows:
        firsts.append(json.loads(rows.readline())["capture_ns"] - int(truth))
print(max(gates) - min(gates), max(firsts) - min(firsts), int(realtime))
