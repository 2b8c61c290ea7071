"""A USB microphone (UAC 1.0, full speed, 48 kHz, mono, 16 bits, asynchronous isochronous) for the kernel's snd-usb-audio.

usage: usb_microphone.py [--port N] [--serial TEXT] [--ppm X] [--log FILE]

Sample n is the number n, modulo 2^16, and is captured at t0 + n / (48000 (1 + ppm / 10^6)) on CLOCK_MONOTONIC. Each start of a
stream appends "stream T0_NS" to the log.
"""
import argparse
import struct

import usbip_device

RATE = 48000
# All samples there are, twice, so that a packet is a slice: an emulated machine has no time for more.
SAMPLES = struct.pack("<65536H", *range(65536)) * 2


class Microphone(usbip_device.Device):
    device = struct.pack("<BBHBBBBHHHBBBB", 18, 1, 0x0110, 0, 0, 0, 64, 0x1209, 0x0001, 0x0100, 1, 2, 3, 1)

    # Audio control: header, input terminal (microphone, one channel), output terminal (USB stream).
    control_part = (
        struct.pack("<BBBBBBBBB", 9, 4, 0, 0, 0, 1, 1, 0, 0)
        + struct.pack("<BBBHHBB", 9, 0x24, 1, 0x0100, 9 + 12 + 9, 1, 1)
        + struct.pack("<BBBBHBBHBB", 12, 0x24, 2, 1, 0x0201, 0, 1, 0, 0, 0)
        + struct.pack("<BBBBHBBB", 9, 0x24, 3, 2, 0x0101, 0, 1, 0)
    )
    # Streaming: without an endpoint, and with one of 49 samples a packet at most.
    stream_part = (
        struct.pack("<BBBBBBBBB", 9, 4, 1, 0, 0, 1, 2, 0, 0)
        + struct.pack("<BBBBBBBBB", 9, 4, 1, 1, 1, 1, 2, 0, 0)
        + struct.pack("<BBBBBH", 7, 0x24, 1, 2, 1, 1)
        + struct.pack("<BBBBBBBB", 11, 0x24, 2, 1, 1, 2, 16, 1)
        + RATE.to_bytes(3, "little")
        + struct.pack("<BBBBHBBB", 9, 5, 0x81, 0x05, 100, 1, 0, 0)
        + struct.pack("<BBBBBH", 7, 0x25, 1, 0, 0, 0)
    )
    configuration = struct.pack("<BBHBBBBB", 9, 2, 9 + len(control_part) + len(stream_part), 2, 1, 0, 0x80, 50)
    configuration += control_part + stream_part

    def __init__(self, port, serial, ppm, log):
        super().__init__(port)
        self.strings = {1: "Downbeat", 2: "Labmic", 3: serial}
        self.rate = RATE * (1 + ppm * 1e-6)
        self.log = log
        self.begin = None
        self.frame = 0

    def selected(self, interface, alternate):
        if interface == 1:
            self.begin = None
            self.frame = 0

    def submit(self, request):
        if request.endpoint != 1 or not request.inward or not request.packets:
            return self.reply(request, status=-32)
        if self.begin is None:
            self.begin = usbip_device.now()
            if self.log:
                with open(self.log, "a") as file:
                    file.write("stream %d\n" % self.begin)
        first = self.frame
        self.frame += request.packets
        # It is complete when its last millisecond is over.
        self.later(self.begin + self.frame * 1_000_000, request, lambda: self.answer(request, first))

    def answer(self, request, first):
        data, actual = bytearray(), []
        for packet in range(request.packets):
            start = int(self.rate * (first + packet) / 1000)
            end = int(self.rate * (first + packet + 1) / 1000)
            end = min(end, start + request.lengths[packet][1] // 2)
            place = 2 * (start & 0xFFFF)
            data += SAMPLES[place : place + 2 * (end - start)]
            actual.append(2 * (end - start))
        self.reply(request, data=bytes(data), actual=actual)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--serial", default="MIC-A")
    parser.add_argument("--ppm", type=float, default=0)
    parser.add_argument("--log")
    options = parser.parse_args()
    usbip_device.main(Microphone(options.port, options.serial, options.ppm, options.log))
