"""Keeps the last result: results.py OUTPUT RESULTS.md. Exits with 1 when a figure failed or is missing."""
import re, sys

text = open(sys.argv[1]).read()
path = sys.argv[2]
try:
    old = open(path).read()
except FileNotFoundError:
    old = "# Benchmark results\n\nThe last run of each. `Benchmarks/run NAME` makes them anew.\n"
section = f"## capture\n\n```\n{text.rstrip()}\n```\n"
if "## capture\n" in old:
    new = re.sub(r"## capture\n.*?(?=^## |\Z)", lambda _: section + "\n", old, flags=re.S | re.M).rstrip() + "\n"
else:
    new = old.rstrip() + "\n\n" + section
open(path, "w").write(new)
wanted = "passthrough_cpu_ratio passthrough_memory_ratio encode_cpu_ratio encode_memory_ratio lost_2_cameras lost_4_cameras lost_8_cameras".split()
good = all(re.search(rf"{name}=\S+ goal=\S+ pass", text) for name in wanted)
print("capture:", "all goals reached" if good else "not all goals reached")
sys.exit(0 if good else 1)
