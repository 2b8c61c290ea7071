"""A path with delay, jitter, loss and asymmetry for UDP, in user space: netem isn't in every kernel.

relay.py ADDRESS PORT=TARGET:PORT,FORTH_MS,FORTH_JITTER_MS,BACK_MS,BACK_JITTER_MS,LOSS_PERCENT ...

Each PORT is one path to a target. What comes in from anybody goes to the target after FORTH_MS and up to FORTH_JITTER_MS
more (most of it little more), and what the target answers goes back to who sent last; each datagram is lost with a
probability. Runs until it is killed; prints "ready" when it listens.
"""
import heapq
import random
import select
import socket
import sys
import time


class Path:
    def __init__(self, own, text):
        port, rest = text.split("=")
        target, *numbers = rest.split(",")
        host, target_port = target.split(":")
        self.target = (host, int(target_port))
        forth, forth_jitter, back, back_jitter, loss = map(float, numbers)
        self.forth, self.back, self.loss = (forth, forth_jitter), (back, back_jitter), loss / 100
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind((own, int(port)))
        # The way on has a socket of its own, so that the answers are known by it.
        self.rear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.rear.bind((own, 0))
        self.client = None


def main():
    own = sys.argv[1]
    paths = [Path(own, text) for text in sys.argv[2:]]
    poll = select.poll()
    known = {}
    for path in paths:
        for side in (path.front, path.rear):
            side.setblocking(False)
            known[side.fileno()] = (path, side)
            poll.register(side, select.POLLIN)
    random.seed(4711)
    waiting, number = [], 0
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, side, data, address = heapq.heappop(waiting)
            try:
                side.sendto(data, address)
            except OSError:
                pass
        timeout = max(0.0, (waiting[0][0] - time.monotonic()) * 1000) if waiting else None
        # poll waits whole milliseconds: the last one is spent looking again and again.
        for fd, _ in poll.poll(None if timeout is None else int(timeout)):
            path, side = known[fd]
            while True:
                try:
                    data, sender = side.recvfrom(2048)
                except (BlockingIOError, ConnectionRefusedError):
                    break
                arrived = time.monotonic()
                if side is path.front:
                    path.client = sender
                    (base, jitter), out, to = path.forth, path.rear, path.target
                else:
                    (base, jitter), out, to = path.back, path.front, path.client
                if to is None or random.random() < path.loss:
                    continue
                due = arrived + (base + jitter * random.random() ** 3) / 1000
                number += 1
                heapq.heappush(waiting, (due, number, out, data, to))


main()
