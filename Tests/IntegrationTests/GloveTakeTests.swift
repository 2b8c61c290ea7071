internal import Devices
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

/// The real programs with emulated gloves at sockets, whose packets are those of the air.
@Suite(.serialized, .timeLimit(.minutes(3))) struct GloveTakeTests {
    @Test("two gloves, an IMU and a camera in one take of two hosts are in the merged request as sensors")
    func twoGlovesOnTwoHosts() async throws {
        let rig = try LoopbackRigTests.Rig()
        let places = GloveSide.allCases.map { "\(rig.path)/OGLO \($0.rawValue.uppercased()).sock" }
        let gloves = zip(GloveSide.allCases, places).map { side, path in
            SocketPeripheral(path: path) {
                var script = GloveScript(side: side)
                script.schema = side == .left ? 5 : 6
                script.burst = 0.045
                return GlovePeripheral(script, at: HostClock.now)
            }
        }
        for glove in gloves { try await glove.begin() }
        #expect(try await rig.downbeat("init").status == 0)
        let left = "kind: \"oglo\", side: \"left\", address: \"unix:\(places[0])\""
        let right = "kind: \"oglo\", side: \"right\", address: \"unix:\(places[1])\""
        try await rig.addHost(
            "ego", folder: "a",
            streams: """
                { id: "cam", kind: "emulated-camera", width: 320, height: 240, rate: 30 },
                { id: "tactile_left", \(left) }, { id: "wrist_imu_left", \(left), rows: "imu" },
                { id: "host_audio", kind: "emulated-microphone" }
                """)
        try await rig.addHost(
            "bench", folder: "b",
            streams: """
                { id: "tactile_right", \(right) }, { id: "mag_right", \(right), rows: "mag" },
                { id: "imu", kind: "emulated-imu", rate: 100 }, { id: "host_audio", kind: "emulated-microphone" }
                """)
        let recorded = try await rig.downbeat(
            "record", rig.config, "--duration", "3", "--session", "hands", "--json", "--wait", "20")
        #expect(recorded.status == 0, "\(recorded.output)\(recorded.errors)")
        let result = try JSONText.decode(JSONValue.self, from: Array(recorded.output.utf8))
        #expect(result["outcome"]?.string == "sealed" && result["verdict"]?.string == "green", "\(recorded.output)")
        let episode = try #require(result["episode"]?.string)
        let folder = "\(rig.home)/sessions/hands/\(episode)"
        let request = try JSONText.decode(JSONValue.self, from: try Files.read("\(folder)/sync_request.json"))
        let streams = (request["hosts"]?.array ?? []).flatMap { $0["streams"]?.array ?? [] }
        let sensors = streams.filter { $0["stream_type"]?.string == "sensor" }.compactMap { $0["stream_id"]?.string }
        #expect(
            Set(sensors) == [
                "ego.tactile_left", "ego.wrist_imu_left", "bench.tactile_right", "bench.mag_right", "bench.imu",
            ], "\(streams)")
        for (file, channel) in [
            ("ego/\(episode)", "pinky_0_0"), ("bench/\(episode)", "thumb_0_0"),
        ] {
            let name = file.hasPrefix("ego") ? "tactile_left" : "tactile_right"
            let host = String(file.split(separator: "/")[0])
            let rows = try Files.read("\(folder)/hosts/\(host)/\(name).jsonl").split(separator: 0x0A)
            // Three seconds and the tail of the stop chirp at 100 rows a second.
            #expect(rows.count >= 300, "\(file)")
            let first = try JSONText.decode(JSONValue.self, from: Array(try #require(rows.first)))
            #expect(first["channels"]?[channel]?.integer != nil, "\(first)")
            #expect(first["device_timestamp_ns"]?.integer != nil && first["frame_number"]?.integer == 0)
        }
        for glove in gloves { await glove.end() }
    }
}
