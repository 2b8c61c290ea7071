"""Facts of a wrist camera's clip, one number: clip_facts.py QUESTION …

  placed CLIP TRUTH SYNC_POINT SECONDS DISTANCE SKEW   how far the chirps in the clip are from where they must be, in ms: the
        worse of the start and the stop chirp. TRUTH has a line for each clip: name, begin and end in ns of room time;
        SYNC_POINT is the leader's, whose monotonic clock is SECONDS ahead of the room's; DISTANCE metres from its speaker
        to the camera; SKEW ppm that the camera's clock is fast. By a matched filter of our own, nothing of the product.
  aligned REPORT STREAM TRUTH PRIMARY_ROWS SECONDS      how far the product's aligner places the clip's first frame from the
        truth, in ms: by the report's offset to the primary's first frame, whose stamp is in PRIMARY_ROWS
"""
import json
import subprocess
import sys

import numpy


def chirp(first, last, rate=48000, seconds=0.5):
    time = numpy.arange(int(rate * seconds)) / rate
    return numpy.sin(2 * numpy.pi * (first * time + (last - first) / seconds * time * time / 2))


def find(sound, template, rate=48000):
    size = 1 << (len(sound) + len(template) - 1).bit_length()
    product = numpy.fft.rfft(sound, size) * numpy.conj(numpy.fft.rfft(template, size))
    power = numpy.abs(numpy.fft.irfft(product, size)[: len(sound)])
    place = int(numpy.argmax(power))
    floor = numpy.median(power)
    return place / rate if power[place] > 8 * floor else None


def placed(clip, truth, sync_point, seconds, distance, skew):
    begin = begin_of(truth)
    with open(sync_point) as file:
        point = json.load(file)
    sound = numpy.frombuffer(subprocess.run(
        ["ffmpeg", "-v", "error", "-i", clip, "-f", "s16le", "-ac", "1", "-ar", "48000", "-"],
        capture_output=True, check=True).stdout, dtype="<i2").astype(float)
    worst = None
    for key, template in (("chirp_start_ns", chirp(17000, 19000)), ("chirp_stop_ns", chirp(19000, 17000))):
        if key not in point:
            continue
        heard = point[key] - float(seconds) * 1e9 + float(distance) / 343 * 1e9
        expected = (heard - begin) / 1e9 * (1 + float(skew) * 1e-6)
        found = find(sound, template)
        if found is None:
            print(f"{key}: not heard", file=sys.stderr)
            # The camera's sound ends before the stop: a cut stop chirp may be too short to be found.
            if key == "chirp_start_ns":
                return None
            continue
        error = abs(found - expected) * 1000
        print(f"{key}: expected {expected:.6f} s, found {found:.6f} s", file=sys.stderr)
        worst = error if worst is None else max(worst, error)
    return None if worst is None else round(worst, 3)


def begin_of(truth):
    with open(truth) as file:
        lines = [line.split() for line in file]
    return int([words for words in lines if len(words) == 3][-1][1])


def aligned(report, stream, truth, rows, seconds):
    with open(report) as file:
        offset = json.load(file)["streams"][stream]["offset_ms"]
    with open(rows) as file:
        first = json.loads(file.readline())["capture_ns"]
    placed_at = first + offset * 1e6
    return round(abs(placed_at - (begin_of(truth) + float(seconds) * 1e9)) / 1e6, 3)


answer = None
if sys.argv[1] == "placed":
    answer = placed(*sys.argv[2:8])
elif sys.argv[1] == "aligned":
    answer = aligned(*sys.argv[2:7])
print("" if answer is None else answer)
