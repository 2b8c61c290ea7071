"""Facts of an agent's or a merged episode's files, one number: take_facts.py QUESTION FOLDER [ARGUMENT]

Reads the files with nothing of ours.

  last FOLDER       the earliest of the last stamps of all streams, in ns of the host's monotonic clock
  gap FOLDER        the largest distance of two following stamps of any stream, in ms
  span FOLDER       the shortest stream's length, in ms
  torn FOLDER       how many files can't be read whole: mp4 by ffprobe, and its frames against the rows; jsonl by json
"""
import glob
import json
import os
import subprocess
import sys


def stamps(path):
    result = []
    with open(path, "rb") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and "capture_ns" in row:
                result.append(int(row["capture_ns"]))
    return result


def streams(folder):
    found = {}
    for path in sorted(glob.glob(glob.escape(folder) + "/*.jsonl")):
        rows = stamps(path)
        if rows:
            found[os.path.basename(path)] = rows
    return found


def torn(folder):
    bad = 0
    for path in glob.glob(glob.escape(folder) + "/*.jsonl"):
        with open(path, "rb") as file:
            for line in file:
                try:
                    json.loads(line)
                    if not line.endswith(b"\n"):
                        raise ValueError("no end of line")
                except ValueError as error:
                    print(f"{path}: {error}", file=sys.stderr)
                    bad += 1
    for path in glob.glob(glob.escape(folder) + "/*.mp4"):
        probe = subprocess.run(
            ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries",
             "stream=nb_read_packets", "-of", "csv=p=0", path], capture_output=True, text=True)
        rows = 0
        sidecar = path[:-4] + ".timestamps.jsonl"
        if os.path.exists(sidecar):
            with open(sidecar, "rb") as file:
                rows = sum(1 for line in file if b"frame_number" in line)
        frames = int(probe.stdout.strip().strip(",") or 0)
        if probe.returncode or probe.stderr.strip() or frames != rows:
            print(f"{path}: {frames} frames, {rows} rows, {probe.stderr.strip()[:300]}", file=sys.stderr)
            bad += 1
    return bad


def main():
    question, folder = sys.argv[1], sys.argv[2]
    if question == "torn":
        return print(torn(folder) if os.path.isdir(folder) else 99)
    rows = streams(folder)
    if not rows:
        return print("")
    if question == "last":
        print(min(max(values) for values in rows.values()))
    elif question == "span":
        print(min(max(values) - min(values) for values in rows.values()) // 1_000_000)
    elif question == "gap":
        print(max(b - a for values in rows.values() for a, b in zip(values, values[1:])) // 1_000_000)


main()
