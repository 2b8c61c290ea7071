"""Judges and keeps the last result: results.py OUTPUT RESULTS.md. Exits with 1 when a figure failed or is missing."""
import re, statistics, sys

text = open(sys.argv[1]).read()
ratios = [float(word) for word in re.findall(r"core: (\S+) times", text)]
rates = [float(word) for word in re.findall(r"ours (\d+)", text)]
different = re.search(r"from the peer's: (\d+)$", text, flags=re.M)
figures = []
if ratios:
    ratio = statistics.median(ratios)
    text += f"median {ratio:.2f} times, from {min(ratios):.2f} to {max(ratios):.2f}; {statistics.median(rates):.0f} rows/s of ours\n"
    figures.append(f"writer times_peer={ratio:.2f} goal=8 {'pass' if ratio >= 8 else 'fail'}")
else:
    figures.append("writer times_peer=unmeasured goal=8 fail")
count = different.group(1) if different else "unmeasured"
figures.append(f"writer rows_that_differ={count} goal=0 {'pass' if count == '0' else 'fail'}")
text += "\n".join(figures) + "\n"
section = f"## writer\n\n```\n{text.rstrip()}\n```\n"
path = sys.argv[2]
try:
    old = open(path).read()
except FileNotFoundError:
    old = "# Benchmark results\n\nThe last run of each. `Benchmarks/run NAME` makes them anew.\n"
if "## writer\n" in old:
    new = re.sub(r"## writer\n.*?(?=^## |\Z)", lambda _: section + "\n", old, flags=re.S | re.M).rstrip() + "\n"
else:
    new = old.rstrip() + "\n\n" + section
open(path, "w").write(new)
print("\n".join(figures))
sys.exit(0 if all(figure.endswith("pass") for figure in figures) else 1)
