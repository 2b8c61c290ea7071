"""Keeps the last result: results.py OUTPUT RESULTS.md. Exits with 1 when a figure failed or is missing."""
import re, sys

text = open(sys.argv[1]).read()
path = sys.argv[2]
try:
    old = open(path).read()
except FileNotFoundError:
    old = "# Benchmark results\n\nThe last run of each. `Benchmarks/run NAME` makes them anew.\n"
section = f"## chirp\n\n```\n{text.rstrip()}\n```\n"
if "## chirp\n" in old:
    new = re.sub(r"## chirp\n.*?(?=^## |\Z)", lambda _: section + "\n", old, flags=re.S | re.M).rstrip() + "\n"
else:
    new = old.rstrip() + "\n\n" + section
open(path, "w").write(new)
wanted = "times_real_time ratio p95_us coverage_2_sigma offset_p95_us distance_p95_cm false_red alarms_an_hour accuracy_over_best_peer".split()
good = all(re.search(rf"{name}=\S+ goal=\S+ pass", text) for name in wanted)
print("chirp:", "all goals reached" if good else "not all goals reached")
sys.exit(0 if good else 1)
