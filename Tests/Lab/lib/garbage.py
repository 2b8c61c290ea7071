"""Sends random messages to ports of a host: garbage.py HOST COUNT SEED tcp:PORT|udp:PORT…

TCP: random bytes, a ZMTP greeting with random bytes behind it, the greeting of a plain (unencrypted) peer with whole
frames, and an endless half frame. UDP: random bytes and mangled headers of our own datagrams.
"""
import random
import socket
import struct
import sys
import time

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00"


def greeting(mechanism):
    return GREETING + mechanism.ljust(20, b"\0") + b"\0" + bytes(31)


def tcp_payload(rng):
    kind = rng.randrange(5)
    noise = rng.randbytes(rng.randrange(1, 4000))
    if kind == 0:
        return noise
    if kind == 1:
        return greeting(b"CURVE") + noise
    if kind == 2:
        command = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
        body = rng.randbytes(rng.randrange(0, 200))
        return greeting(b"NULL") + b"\x04" + bytes([len(command)]) + command + b"\x00" + bytes([len(body)]) + body
    if kind == 3:
        # A frame that claims to be of 8 exabytes.
        return greeting(b"CURVE") + b"\x06" + struct.pack(">Q", 1 << 62) + noise
    return greeting(b"CURVE")[: rng.randrange(1, 64)]


def main():
    host, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    ports = [(kind, int(port)) for kind, port in (word.split(":") for word in sys.argv[4:])]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held, sent = [], 0
    for index in range(count):
        kind, port = ports[index % len(ports)]
        try:
            if kind == "udp":
                head = rng.choice([b"", b"DBCK", b"DBID", b"DB", bytes([1]), bytes([0xDB])])
                udp.sendto(head + rng.randbytes(rng.randrange(0, 1400)), (host, port))
            else:
                peer = socket.create_connection((host, port), timeout=2)
                peer.sendall(tcp_payload(rng))
                held.append(peer)
                if len(held) > 50:
                    held.pop(0).close()
            sent += 1
        except OSError:
            pass
        if index % 10 == 9:
            time.sleep(0.002)
    print(sent)


main()
