#!/usr/bin/python3
"""A USB webcam for the kernel's own uvcvideo driver, without hardware: usb_webcam.py PORT SERIAL PICTURES LOG

It answers the kernel's virtual host controller (vhci-hcd) in the words of USB/IP over a socket pair, as a UVC 1.0 camera
with MJPEG 640x480 at 30 and 15 frames/s over a bulk endpoint. PICTURES is a folder of JPEG files, which come in turn; each
frame gets its own number in a JPEG comment, so that whoever reads a recording can tell which frames are in it. LOG gets a
line "NUMBER NANOSECONDS" (CLOCK_MONOTONIC) for each frame that was handed to the controller whole. The numbers go on
where LOG ends, so that a camera which is plugged in again never repeats one. Ending the program unplugs the camera.

Sources: Linux's Documentation/usb/usbip_protocol.rst; USB Video Class 1.0, chapters 2.4.3.3, 3.7, 3.9 and 4.3.1.1.
"""
import glob
import os
import select
import socket
import struct
import sys
import time

WIDTH, HEIGHT = 640, 480
INTERVALS = [333333, 666666]  # units of 100 ns
PAYLOAD = 16384  # the largest transfer of frame data, with its head of 2 bytes

pack = struct.pack
EPIPE, ECONNRESET = -32, -104


def descriptor(kind, body):
    return bytes([len(body) + 2, kind]) + body


def configuration():
    """One control interface (a camera terminal and an output terminal) and one streaming interface."""
    interface, endpoint, association, class_interface = 4, 5, 11, 0x24
    terminals = (
        descriptor(class_interface, pack("<BBHBBHHHB3s", 2, 1, 0x0201, 0, 0, 0, 0, 0, 3, bytes(3)))
        + descriptor(class_interface, pack("<BBHBBB", 3, 2, 0x0101, 0, 1, 0)))
    control = descriptor(
        class_interface, pack("<BHHIBB", 1, 0x0100, 13 + len(terminals), 48000000, 1, 1)) + terminals
    bits = WIDTH * HEIGHT * 2 * 8
    frame = descriptor(
        class_interface,
        pack("<BBBHHIIIIB", 7, 1, 0, WIDTH, HEIGHT, bits * 15, bits * 30, WIDTH * HEIGHT * 2, INTERVALS[0], len(INTERVALS))
        + b"".join(pack("<I", interval) for interval in INTERVALS))
    formats = (
        descriptor(class_interface, pack("<BBBBBBBBB", 6, 1, 1, 1, 1, 0, 0, 0, 0)) + frame
        + descriptor(class_interface, pack("<BBBB", 0x0D, 1, 1, 4)))
    streaming = descriptor(
        class_interface, pack("<BBHBBBBBBBB", 1, 1, 14 + len(formats), 0x81, 0, 2, 0, 0, 0, 1, 0)) + formats
    body = (
        descriptor(association, pack("<BBBBBB", 0, 2, 0x0E, 3, 0, 0))
        + descriptor(interface, pack("<BBBBBBB", 0, 0, 0, 0x0E, 1, 0, 0)) + control
        + descriptor(interface, pack("<BBBBBBB", 1, 0, 1, 0x0E, 2, 0, 0)) + streaming
        + descriptor(endpoint, pack("<BBHB", 0x81, 2, 512, 0)))
    return pack("<BBHBBBBB", 9, 2, 9 + len(body), 2, 1, 0, 0x80, 250) + body


class Webcam:
    def __init__(self, port, serial, pictures, log):
        self.strings = {1: "Downbeat", 2: "Lab Webcam", 3: serial}
        self.device = descriptor(
            1, pack("<HBBBBHHHBBBB", 0x0200, 0xEF, 2, 1, 64, 0x1209, 0x0001, 0x0100, 1, 2, 3, 1))
        self.configuration = configuration()
        self.pictures = [open(path, "rb").read() for path in sorted(glob.glob(glob.escape(pictures) + "/*.jpg"))]
        self.interval = INTERVALS[0]
        self.number = 0
        if os.path.exists(log):
            with open(log) as lines:
                self.number = sum(1 for _ in lines)
        self.log = open(log, "a", buffering=1)
        self.waiting = []  # transfers of frame data that the host has asked for: (sequence, length)
        self.parts = []  # what is still to be sent of the frame
        self.toggle = 0
        self.due = None
        self.link, other = socket.socketpair()
        with open("/sys/devices/platform/vhci_hcd.0/attach", "w") as attach:
            attach.write(f"{port} {other.fileno()} {0x10002 + port} 3")  # 3: high speed
        other.close()

    # USB/IP

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.link.recv(count - len(data))
            if not part:
                sys.exit(0)
            data += part
        return data

    def answer(self, sequence, status, data=b"", length=None):
        self.link.sendall(
            pack(">IIIIIiiiii8x", 3, sequence, 0, 0, 0, status, len(data) if length is None else length, 0, 0, 0) + data)

    def command(self):
        head = self.read(48)
        kind, sequence, _, direction, endpoint = struct.unpack_from(">IIIII", head)
        if kind == 1:
            length, = struct.unpack_from(">i", head, 24)
            data = self.read(length) if direction == 0 and length > 0 else b""
            if endpoint == 0:
                status, reply = self.control(head[40:48], data)
                self.answer(sequence, status, reply, len(data) if direction == 0 else None)
            else:
                if self.due is None:
                    self.due = time.monotonic()
                self.waiting.append((sequence, length))
        elif kind == 2:
            gone, = struct.unpack_from(">I", head, 20)
            found = any(item[0] == gone for item in self.waiting)
            self.waiting = [item for item in self.waiting if item[0] != gone]
            self.link.sendall(pack(">IIIIIi24x", 4, sequence, 0, 0, 0, ECONNRESET if found else 0))
            if not self.waiting:
                self.parts, self.due = [], None

    # Control transfers

    def control(self, setup, data):
        kind, request, value, index, length = struct.unpack("<BBHHH", setup)
        if kind == 0x80 and request == 6:
            what, number = value >> 8, value & 255
            reply = {1: self.device, 2: self.configuration}.get(what)
            if what == 3:
                if number == 0:
                    reply = descriptor(3, pack("<H", 0x0409))
                elif number in self.strings:
                    reply = descriptor(3, self.strings[number].encode("utf-16le"))
            return (0, reply[:length]) if reply else (EPIPE, b"")
        if kind == 0x80 and request == 0:
            return 0, b"\0\0"
        if kind in (0, 1, 2):  # addresses, configurations, interfaces, halts
            return 0, b""
        if index & 255 == 1 and value >> 8 in (1, 2):  # probe and commit of the streaming interface
            if kind == 0x21:
                wanted, = struct.unpack_from("<I", data.ljust(8, b"\0"), 4)
                self.interval = min(INTERVALS, key=lambda interval: abs(interval - wanted))
                return 0, b""
            if request == 0x85:
                return 0, pack("<H", 26)
            if request == 0x86:
                return 0, b"\x03"
            return 0, pack(
                "<HBBIHHHHHII", 1, 1, 1, self.interval, 0, 0, 0, 0, 0, WIDTH * HEIGHT * 2, PAYLOAD)[:length]
        return EPIPE, b""

    # Frames

    def frame(self):
        comment = b"downbeat %010d" % self.number
        picture = self.pictures[self.number % len(self.pictures)]
        picture = picture[:2] + b"\xff\xfe" + pack(">H", len(comment) + 2) + comment + picture[2:]
        size = PAYLOAD - 2
        pieces = [picture[start:start + size] for start in range(0, len(picture), size)]
        self.parts = [
            bytes([2, 0x80 | self.toggle | (2 if piece is pieces[-1] else 0)]) + piece for piece in pieces]
        self.toggle ^= 1

    def serve(self):
        while True:
            now = time.monotonic()
            limit = None
            if self.waiting:
                limit = 0 if self.parts else max(0, self.due - now)
            if select.select([self.link], [], [], limit)[0]:
                self.command()
                continue
            now = time.monotonic()
            if not self.parts and self.waiting and now >= self.due:
                self.frame()
                # A frame that is late by more than a second is no reason to hurry.
                self.due = now if now - self.due > 1 else self.due + self.interval / 1e7
            while self.parts and self.waiting:
                sequence, length = self.waiting.pop(0)
                self.answer(sequence, 0, self.parts.pop(0)[:length])
                if not self.parts:
                    self.log.write(f"{self.number} {time.monotonic_ns()}\n")
                    self.number += 1


Webcam(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]).serve()
