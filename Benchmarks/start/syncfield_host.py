"""One host of SyncField's multi-host recording: syncfield_host.py leader|follower OWN_ID PEER_ID PEER_ADDRESS FOLDER.

Prints its sync point, which is the start of its part on its own monotonic clock, as `start NANOSECONDS`.
"""
import sys
import threading
import time

import syncfield as sf
from syncfield.roles import FollowerRole, LeaderRole
from syncfield.testing import FakeStream
from syncfield.tone import SyncToneConfig

kind, own, peer, address, folder = sys.argv[1:6]
session_id = "start-benchmark"
role = LeaderRole(session_id=session_id) if kind == "leader" else FollowerRole(session_id=session_id)
session = sf.SessionOrchestrator(
    host_id=own, output_dir=folder, role=role, sync_tone=SyncToneConfig(enabled=False), enable_host_audio=False
)
session.add(FakeStream("mic", provides_audio_track=True))
# Without multicast: the addresses are known to both, which is quicker.
if kind == "leader":
    session.set_static_peers(
        [{"host_id": peer, "control_plane_port": 7878, "resolved_address": address, "session_id": session_id}]
    )
else:
    session.set_static_leader(peer, address, 7878)
session.connect()
if kind == "leader":
    # The follower has to be waiting already.
    time.sleep(3)
starter = threading.Thread(target=lambda: session.start(countdown_s=0), daemon=True)
starter.start()
deadline = time.monotonic() + 30
while session.sync_point is None and time.monotonic() < deadline:
    time.sleep(0.005)
if session.sync_point is not None:
    print("start", session.sync_point.monotonic_ns, flush=True)
# The other one still asks for the state.
time.sleep(8)
