"""A USB device in user space for the kernel's vhci-hcd: the kernel's own class driver binds to it, without hardware.

The protocol is USB/IP as Documentation/usb/usbip_protocol.rst has it: 48-byte headers in network order, CMD_SUBMIT and
CMD_UNLINK in, RET_SUBMIT and RET_UNLINK out. The device is attached by writing one end of a socket pair into sysfs; its
end, for whatever reason, is an unplug.
"""
import heapq
import os
import select
import socket
import struct
import time

VHCI = "/sys/devices/platform/vhci_hcd.0"
FULL_SPEED, HIGH_SPEED = 2, 3


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def text_descriptor(text):
    data = text.encode("utf-16-le")
    return bytes([2 + len(data), 3]) + data


class Request:
    """One CMD_SUBMIT."""

    def __init__(self, number, inward, endpoint, length, packets, setup, data, lengths):
        self.number, self.inward, self.endpoint, self.length = number, inward, endpoint, length
        self.setup, self.data = setup, data
        # Isochronous: the offset and the length of each packet.
        self.packets, self.lengths = packets, lengths


class Device:
    """Answers what every device is asked; a subclass adds its class's requests and its endpoints."""

    device = b""
    configuration = b""
    strings = {}
    speed = FULL_SPEED

    def __init__(self, port):
        self.port = port
        self.pending = []
        self.cancelled = set()
        self.socket = None

    # What a subclass says.

    def selected(self, interface, alternate):
        """SET_INTERFACE."""

    def control(self, kind, request, value, index, length, data):
        """A request that isn't a standard one: bytes, or None for a stall."""
        return None

    def submit(self, request):
        """A request for an endpoint other than 0; answer it with `reply`, now or later."""
        self.reply(request, status=-32)

    # Running.

    def attach(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.socket = ours
        with open(VHCI + "/attach", "w") as file:
            file.write("%d %d %d %d" % (self.port, theirs.fileno(), self.port + 1, self.speed))
        theirs.close()

    def run(self):
        while True:
            wait = None
            if self.pending:
                wait = max(0, self.pending[0][0] - now()) / 1e9
            ready, _, _ = select.select([self.socket], [], [], wait)
            if ready and not self.take():
                return
            while self.pending and self.pending[0][0] <= now():
                _, _, request, action = heapq.heappop(self.pending)
                if request.number in self.cancelled:
                    self.cancelled.discard(request.number)
                else:
                    action()

    def later(self, instant, request, action):
        """Runs an action at an instant of CLOCK_MONOTONIC, unless the kernel takes the request back before."""
        heapq.heappush(self.pending, (instant, request.number, request, action))

    def receive(self, count):
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                return None
            data += part
        return bytes(data)

    def take(self):
        header = self.receive(48)
        if header is None:
            return False
        command, number, _, direction, endpoint = struct.unpack(">5I", header[:20])
        if command == 2:
            victim = struct.unpack(">I", header[20:24])[0]
            found = any(entry[2].number == victim for entry in self.pending)
            if found:
                self.cancelled.add(victim)
            # ECONNRESET when it was taken back, 0 when it has been answered already.
            self.socket.sendall(struct.pack(">5Ii24x", 4, number, 0, 0, 0, -104 if found else 0))
            return True
        _, length, _, packets, _ = struct.unpack(">IiiiI", header[20:40])
        setup = header[40:48]
        data = b""
        if direction == 0 and length > 0:
            data = self.receive(length)
            if data is None:
                return False
        lengths = []
        if 0 < packets < 0xFFFFFFFF and endpoint != 0:
            table = self.receive(16 * packets)
            if table is None:
                return False
            lengths = [struct.unpack(">2I", table[16 * i : 16 * i + 8]) for i in range(packets)]
        request = Request(number, direction == 1, endpoint, length, len(lengths), setup, data, lengths)
        if endpoint == 0:
            self.standard(request)
        else:
            self.submit(request)
        return True

    def reply(self, request, status=0, data=b"", actual=None):
        """`actual` are the lengths of the packets of an isochronous request."""
        count = len(data) if request.inward else request.length
        packets = len(actual) if actual is not None else 0
        answer = struct.pack(
            ">5IiiiiI8x", 3, request.number, 0, 0, 0, status, count if status == 0 else 0, 0, packets, 0
        )
        if request.inward and status == 0:
            answer += data
        if actual is not None:
            for (offset, length), real in zip(request.lengths, actual):
                answer += struct.pack(">4I", offset, length, real, 0)
        self.socket.sendall(answer)

    def standard(self, request):
        kind, code, value, index, length = struct.unpack("<BBHHH", request.setup)
        answer = None
        if kind & 0x60 == 0:
            if code == 6:
                answer = self.descriptor(value >> 8, value & 0xFF)
            elif code == 0:
                answer = b"\0\0"
            elif code == 8:
                answer = b"\1"
            elif code == 10:
                answer = b"\0"
            elif code == 11:
                self.selected(index, value)
                answer = b""
            elif code in (1, 3, 5, 9):
                answer = b""
        else:
            answer = self.control(kind, code, value, index, length, request.data)
        if answer is None:
            self.reply(request, status=-32)
        else:
            self.reply(request, data=answer[:length])

    def descriptor(self, kind, index):
        if kind == 1:
            return self.device
        if kind == 2:
            return self.configuration
        if kind == 3:
            return b"\4\3\x09\x04" if index == 0 else text_descriptor(self.strings.get(index, "?"))
        return None


def main(device):
    """Attaches, says so, and runs until the kernel lets go or this process is ended."""
    device.attach()
    print("attached", os.getpid(), flush=True)
    device.run()
