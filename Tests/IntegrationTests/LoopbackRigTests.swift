internal import Glibc
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// The real programs on one machine, found by their addresses: no multicast, no avahi-daemon.
@Suite(.serialized, .timeLimit(.minutes(3))) struct LoopbackRigTests {
    /// A coordinator and emulated hosts, each with a home of its own.
    final class Rig {
        let folder: TemporaryFolder
        var agents: [Program] = []
        var addresses: [(host: String, port: String)] = []

        var path: String { folder.path }
        var home: String { "\(path)/coordinator" }

        init() throws { folder = try TemporaryFolder() }

        func downbeat(_ words: String...) async throws -> Program.Ending {
            try await Program.run("downbeat", words, home: home, scratch: path)
        }

        func start(_ words: String...) throws -> Program {
            try Program("downbeat", words, home: home, scratch: path)
        }

        static let standardStreams = """
            { id: "cam", kind: "emulated-camera", width: 320, height: 240, rate: 30 },
            { id: "imu", kind: "emulated-imu", rate: 100 },
            { id: "host_audio", kind: "emulated-microphone" }
            """

        func addHost(
            _ host: String, folder: String, joins: Bool = true, streams: String = Rig.standardStreams
        ) async throws {
            let home = "\(path)/\(folder)"
            try Files.makeFolder(home)
            try AtomicFile.write(
                """
                { host_id: "\(host)", listen: { address: "127.0.0.1" }, speaker: { kind: "emulated" },
                  air: { folder: "\(path)/air", position: [\(agents.count), 0, 1], noise: 0.001 },
                  streams: [ \(streams) ] }
                """, to: "\(home)/agent.json5")
            if joins {
                let token = try await downbeat("invite", "--json")
                let invitation = try JSONText.decode(JSONValue.self, from: Array(token.output.utf8))
                let text = try #require(invitation["token"]?.string)
                let joined = try await Program.run("downbeat-agent", ["join", text], home: home, scratch: path)
                #expect(joined.status == 0)
            }
            let agent = try Program(
                "downbeat-agent", ["run", "--config", "\(home)/agent.json5"], home: home, scratch: path)
            let ready = try #require(try await agent.line(with: " ready on port "))
            // "… ready on port 40275 (clock 47968, 3 streams, …"
            let port = try #require(ready.split(separator: "(clock ").last?.split(separator: ",").first)
            agents.append(agent)
            // The rig's file names each host once; a second of that name is there under another one.
            let isTaken = addresses.contains { $0.host == host }
            addresses.append((isTaken ? "spare" : host, String(port)))
            let hosts = addresses.map { "{ host: \"\($0.host)\", address: \"127.0.0.1:\($0.port)\" }" }
            try AtomicFile.write(
                "{ hosts: [\(hosts.joined(separator: ", "))], discovery: { multicast: false } }",
                to: "\(path)/rig.json5")
        }

        var config: String { "--config=\(path)/rig.json5" }
    }

    @Test("two hosts, one command: a take that is whole, judged and checked; then a stranger and a name taken twice")
    func take() async throws {
        let rig = try Rig()
        #expect(try await rig.downbeat("init", "--name", "desk").status == 0)
        try await rig.addHost("left pc.1", folder: "a")
        try await rig.addHost("rechts-ü", folder: "b")

        let recorded = try await rig.downbeat(
            "record", rig.config, "--duration", "2", "--session", "Küche 7.1", "--json", "--wait", "20")
        #expect(recorded.status == 0, "\(recorded.errors)")
        let result = try JSONText.decode(JSONValue.self, from: Array(recorded.output.utf8))
        #expect(result["outcome"]?.string == "sealed")
        #expect(result["verdict"]?.string == "green", "\(recorded.output)")
        let episode = try #require(result["episode"]?.string)
        let folder = "\(rig.home)/sessions/Küche 7.1/\(episode)"
        #expect(try Files.list("\(folder)/hosts") == ["left pc.1", "rechts-ü"])
        #expect(Files.exists("\(folder)/data/left pc.1.cam.mp4"))
        #expect(Files.exists("\(folder)/sync_request.json"))
        #expect(try await rig.downbeat("verify", rig.config, episode).status == 0)
        let again = try await rig.downbeat("ingest", rig.config, episode)
        #expect((again.output + again.errors).contains("sealed already"), "\(again.output)\(again.errors)")

        // Another coordinator knows the addresses, and nobody told the hosts to trust it.
        let stranger = "\(rig.path)/stranger"
        _ = try await Program.run("downbeat", ["init"], home: stranger, scratch: rig.path)
        let refused = try await Program.run(
            "downbeat", ["record", rig.config, "--duration", "1"], home: stranger, scratch: rig.path)
        #expect([3, 4].contains(refused.status))
        #expect(refused.errors.contains("left pc.1"), "\(refused.errors)")
        #expect(try Files.list("\(rig.path)/a/episodes").filter { $0.hasPrefix("ep_") } == [episode])

        // A second machine with a name that is taken.
        try await rig.addHost("rechts-ü", folder: "c")
        let doubled = try await rig.downbeat("record", rig.config, "--duration", "1", "--wait", "10")
        #expect(doubled.status == 4, "\(doubled.errors)")
        #expect((doubled.output + doubled.errors).contains("rechts-ü"), "\(doubled.output)\(doubled.errors)")
    }

    @Test("Ctrl-C once ends the take properly, and it is kept")
    func interrupted() async throws {
        let rig = try Rig()
        _ = try await rig.downbeat("init")
        try await rig.addHost("left", folder: "a")
        let record = try rig.start("record", rig.config, "--until-stopped", "--session", "s", "--wait", "20")
        _ = try #require(try await record.line(with: "recording  left: recording"))
        record.send(SIGINT)
        let ending = try await record.ending()
        #expect(ending.status == 0, "\(ending.errors)")
        #expect(ending.output.contains("verdict: green"), "\(ending.output)")
    }

    @Test("nobody there, nothing configured, nonsense typed: one line and the right exit code")
    func usage() async throws {
        let rig = try Rig()
        let nobody = try await rig.downbeat("record", "--duration", "1")
        #expect(nobody.status == 3 || nobody.status == 2)
        #expect(
            nobody.errors.contains("downbeat init") || nobody.errors.contains("downbeat invite"), "\(nobody.errors)")
        #expect(try await rig.downbeat("recrod").status == 2)
        #expect(try await rig.downbeat("record", "--duration", "soon").status == 2)
        #expect(try await rig.downbeat("verify", "ep_20260101_000000_000000").status == 3)
        try AtomicFile.write("{ hosts: [], leeder: 'x' }", to: "\(rig.path)/bad.json5")
        let bad = try await rig.downbeat("hosts", "--config", "\(rig.path)/bad.json5")
        #expect(bad.status != 0)
        #expect(bad.errors.contains("bad.json5: 'leeder' is not a key here"), "\(bad.errors)")
        for command in [
            "init", "invite", "hosts", "status", "check", "record", "episodes", "verify", "merge", "ingest", "upload",
            "syncserver",
        ] {
            let help = try await rig.downbeat(command, "--help")
            #expect(help.status == 0 && help.output.contains("Example: downbeat \(command)"), "\(command)")
        }
    }
}
