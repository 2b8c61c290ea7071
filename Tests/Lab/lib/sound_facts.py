"""What sound found in many takes against the truth: sound_facts.py PAIRS.jsonl HOST=x,y,z… -- HOST=SECONDS…

The seconds are how much each host's clock is ahead. Prints a line for people, and `value NAME NUMBER` for each figure.
"""
import json
import math
import sys

split = sys.argv.index("--")
places = {name: [float(x) for x in text.split(",")] for name, text in (a.split("=") for a in sys.argv[2:split])}
shifts = {name: int(text) * 10**9 for name, text in (a.split("=") for a in sys.argv[split + 1:])}
pairs = [json.loads(line) for line in open(sys.argv[1])]


def p95(values):
    values = sorted(values)
    return values[min(int(0.95 * len(values)), len(values) - 1)] if values else math.nan


# The clocks differ by the namespaces' shifts exactly: they are one clock in the kernel.
offsets, distances, differences = [], [], []
for pair in pairs:
    if pair["one_way"] or "sound_offset_ns" not in pair:
        continue
    truth = shifts[pair["second"]] - shifts[pair["first"]]
    offsets.append(abs(pair["sound_offset_ns"] - truth) / 1000)
    distances.append(abs(pair["distance_m"] - math.dist(places[pair["first"]], places[pair["second"]])) * 100)
    differences.append(abs(pair["difference_ns"]) / 1000)
print(f"{len(pairs)} pairs, {len(offsets)} heard both ways")
if offsets:
    print(f"offset by sound: error p95 {p95(offsets):.1f} µs, max {max(offsets):.1f} µs")
    print(f"distance: error p95 {p95(distances):.2f} cm, max {max(distances):.2f} cm")
    print(f"value offset_p95_us {p95(offsets):.1f}")
    print(f"value distance_p95_cm {p95(distances):.2f}")
    print(f"value difference_max_us {max(differences):.1f}")
for opinion in ("disagree", "cannot_say"):
    print(f"value {opinion} {sum(p['opinion'] == opinion for p in pairs)}")
