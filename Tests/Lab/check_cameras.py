#!/usr/bin/python3
"""Holds a host's episode of the lab's stage `cameras` against the kernel's trace: check_cameras.py EPISODE GUEST_FOLDER

Nothing of Downbeat's code is used. Prints a line "NAME VALUE COMPARISON GOAL" for each figure. The trace has a line for
each buffer that the kernel gave to a program (v4l2_dqbuf: minor, time stamp in ns, sequence); each webcam's frames have
their numbers in a JPEG comment.
"""
import json
import os
import re
import subprocess
import sys
import wave

episode, guest = sys.argv[1], sys.argv[2]


def figure(name, value, comparison, goal):
    print(name, value, comparison, goal)


def rows(stream):
    with open(f"{episode}/{stream}.timestamps.jsonl") as file:
        return [json.loads(line) for line in file]


def minors():
    """Minors of each stream's nodes, before and after the webcam came back."""
    found = {}
    with open(f"{guest}/minors") as file:
        for line in file:
            match = re.match(r"\w+ minor (\d+) index (\d+) card (.*) serial (.*)", line)
            if not match or match[2] != "0":
                continue
            card, serial = match[3], match[4].strip()
            stream = {"CAM-A": "usb_a", "CAM-B": "usb_b"}.get(serial)
            if card.startswith("vivid-000"):
                stream = "vivid_a"
            if card.startswith("vivid-001"):
                stream = "vivid_b"
            if stream:
                found.setdefault(stream, set()).add(int(match[1]))
    return found


def trace():
    """The buffers of each minor: (stamp, sequence, bytes, flags)."""
    found = {}
    with open(f"{guest}/trace", errors="replace") as file:
        for line in file:
            match = re.search(
                r"v4l2_dqbuf: minor = (\d+),.* bytesused = (\d+), flags = (.*?), field.* timestamp = (\d+).*sequence = (\d+)",
                line)
            if match:
                found.setdefault(int(match[1]), []).append((int(match[4]), int(match[5]), int(match[2]), match[3]))
    return found


def numbers(video):
    """The numbers of the frames in a file, by another program's reading of it."""
    out = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", video, "-map", "0:v", "-c", "copy", "-f", "mjpeg", "-"], capture_output=True)
    return [int(n) for n in re.findall(rb"\xff\xfe\x00\x15downbeat (\d{10})", out.stdout)]


def packets(video):
    out = subprocess.run(
        ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", video], capture_output=True, text=True)
    text = out.stdout.strip().strip(",")
    return int(text) if text.isdigit() else -1


manifest = json.load(open(f"{episode}/manifest.json"))
entries = {entry["stream_id"]: entry for entry in manifest["streams"]}
start, stop = manifest["start_ns"], manifest["stop_ns"]
places, given = minors(), trace()
span = (stop - start) / 1e9
figure("take_s", round(span, 1), ">=", 59)

for stream in ("vivid_a", "vivid_b", "usb_a", "usb_b"):
    driver = sorted(
        buffer for minor in places.get(stream, ()) for buffer in given.get(minor, [])
        if start <= buffer[0] < stop and buffer[2] > 0)
    ours = [(row["device_timestamp_ns"], row["sequence"]) for row in rows(stream)]
    entry = entries[stream]
    figure(f"{stream}_frames", len(ours), ">", 25 * span - (600 if stream == "usb_a" else 0) - (60 if stream == "vivid_a" else 0))
    different = len(set(ours) ^ {buffer[:2] for buffer in driver}) + (ours != sorted(ours))
    figure(f"{stream}_rows_unlike_the_driver's", different, "==", 0)
    figure(f"{stream}_frames_in_the_file", packets(f"{episode}/{stream}.mp4"), "==", len(ours))
    # What the driver's counter says is missing, within each of its runs.
    missing = sum(b[1] - a[1] - 1 for a, b in zip(driver, driver[1:]) if b[1] > a[1])
    if stream != "usb_a":
        figure(f"{stream}_lost_told", entry["dropped"], "==", missing)
        figure(f"{stream}_epochs", len(entry.get("epochs", [])), "==", 1)
    if stream == "vivid_a":
        # A tenth of 6 s at 30 frames/s is 18; five standard deviations of a binomial are 20.
        figure("vivid_a_lost_of_the_injected", missing, ">=", 4)
    figure(f"{stream}_loss_method_is_sequence", int(entry.get("loss_method") == "sequence"), "==", 1)

seen = numbers(f"{episode}/usb_b.mp4")
figure("usb_b_numbers_missing", seen[-1] - seen[0] + 1 - len(seen) if seen else -1, "==", 0)
seen = numbers(f"{episode}/usb_a.mp4")
jumps = [(a, b) for a, b in zip(seen, seen[1:]) if b != a + 1]
figure("usb_a_numbers_that_repeat", len(seen) - len(set(seen)), "==", 0)
figure("usb_a_breaks_in_its_numbers", len(jumps), "<=", 1)

events = dict(line.split() for line in open(f"{guest}/events"))
unplugged, plugged = int(events["unplugged"]), int(events["plugged"])
away = entries["usb_a"]
stamps = [row["capture_ns"] for row in rows("usb_a")]
hole = max(range(1, len(stamps)), key=lambda i: stamps[i] - stamps[i - 1])
length = stamps[hole] - stamps[hole - 1]
figure("usb_a_gaps", away["gap_count"], "==", 1)
gap = away["gaps"][0] if away["gaps"] else {"from_ns": 0, "to_ns": 0}
figure("usb_a_gap_end_ms_off", abs(gap["to_ns"] - stamps[hole]) / 1e6, "==", 0)
# It begins where the next frame was due: one interval after the last one.
figure("usb_a_gap_start_ms_off", round(abs(gap["from_ns"] - stamps[hole - 1] - 1e9 / 30) / 1e6, 3), "<=", 0.001)
figure("usb_a_lost_told", away["dropped"], "==", round((gap["to_ns"] - gap["from_ns"]) * 30 / 1e9))
figure("usb_a_epochs", len(away.get("epochs", [])), "==", 2)
figure("usb_a_back_after_plug_s", round((stamps[hole] - plugged) / 1e9, 2), "<=", 8)
figure("usb_a_last_before_unplug_s", round((unplugged - stamps[hole - 1]) / 1e9, 2), "<=", 1)
figure("usb_a_files", len([n for n in os.listdir(episode) if re.fullmatch(r"usb_a(_seg\d+)?\.mp4", n)]), "==", 1)
figure("stalls_told", sum(e["kind"] == "stream_stalled" for e in manifest["events"]), "==", 1)
figure("recoveries_told", sum(e["kind"] == "stream_recovered" for e in manifest["events"]), "==", 1)

sound = wave.open(f"{episode}/host_audio.wav")
figure("microphone_gaps", entries["host_audio"]["gap_count"], "==", 0)
figure("microphone_s_missing", round(span - sound.getnframes() / 48000, 3), "<=", 0.1)

listed = json.load(open(f"{guest}/devices.json"))
cameras = {a["camera"]["serial"]: a["camera"] for a in listed["attached"] if a.get("camera", {}).get("serial")}
known = [s for s in ("CAM-A", "CAM-B") if s in cameras and cameras[s].get("usb") and cameras[s].get("configuration")]
figure("webcams_listed", len(known), "==", 2)
