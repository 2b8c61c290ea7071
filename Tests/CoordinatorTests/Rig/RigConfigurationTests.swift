internal import Coordinator
internal import Foundation
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

@Suite struct RigConfigurationTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    @Test("the commented example is legal and says what it seems to say")
    func example() throws {
        let configuration = try RigConfiguration.load("\(Self.root)/configs/rig.json5")
        #expect(configuration.hosts.map(\.host.rawValue) == ["left-pc", "right-pc", "ego-pc"])
        #expect(configuration.hosts.map(\.address) == [nil, "10.8.0.12", "10.8.0.13:7710"])
        #expect(configuration.leader?.rawValue == "left-pc")
        #expect(configuration.primary == "ego-pc.camera")
        #expect(configuration.policy == .strict)
        #expect(configuration.timing.lead == .milliseconds(1500))
        #expect(configuration.timing.clockLimit == .milliseconds(5))
        #expect(configuration.timing.limit == .seconds(14_400))
        #expect(configuration.reserveBytes == 2_000_000_000)
        #expect(configuration.server == "http://127.0.0.1:8080")
    }

    @Test("a chirp of one's own has figures, and what it leaves out is SyncField's")
    func customChirp() throws {
        let text =
            "{take: {chirp: 'custom', custom_chirp: {from_hz: 16000, to_hz: 20000, amplitude: 0.5}, sound_check: true}}"
        let configuration = try RigConfiguration(file: "rig.json5", text: Array(text.utf8))
        #expect(configuration.chirp == .custom && configuration.checksSound)
        let spec = ChirpSpec(
            fromHz: 16_000, toHz: 20_000, durationMilliseconds: 500, amplitude: 0.5, envelopeMilliseconds: 15)
        #expect(configuration.customChirp == spec)
        let options = try RecordOptions(RecordOptions.syntax.parse([]), configuration, now: Timestamp(nanoseconds: 0))
        let host = HostID(unchecked: "a")
        let settings = options.settings(
            hosts: [host], firstReady: host, rig: configuration, now: Timestamp(nanoseconds: 0))
        #expect(settings.startSpec == spec && settings.checksSound == true)
        let plan = settings.plan(for: host)
        #expect(plan.startSpec == spec && plan.countdown == nil)
    }

    @Test("an empty object is the default rig")
    func empty() throws {
        let configuration = try RigConfiguration(file: "rig.json5", text: Array("{}".utf8))
        #expect(configuration.hosts.isEmpty)
        #expect(configuration.chirp == .ultrasonic)
        #expect(configuration.policy == .strict)
        #expect(configuration.usesMulticast)
    }

    @Test(
        "each mistake is a sentence with file, key, what was read and what is legal",
        arguments: [
            ("{hosts: [{host: 'a/b'}]}", "rig.json5: 'hosts[0].host' is 'a/b'; legal is"),
            ("{hosts: [{host: 'a'}, {host: 'a'}]}", "rig.json5: 'hosts' is 'a'; legal is each host once"),
            ("{hosts: [{host: 'a', adress: 'x'}]}", "rig.json5: 'hosts[0].adress' is not a key here"),
            ("{hosts: [{host: 'a'}], leader: 'b'}", "rig.json5: 'leader' is 'b'; legal is one of 'hosts': 'a'"),
            ("{hosts: [{host: 'a'}], primary: 'b.camera'}", "rig.json5: 'primary' is 'b.camera'"),
            ("{take: {policy: 'lax'}}", "rig.json5: 'take.policy' is 'lax'; legal is one of 'strict', 'warn', 'allow'"),
            ("{take: {chirp: 'custom'}}", "rig.json5: 'take.custom_chirp' is missing; legal is the figures"),
            (
                "{take: {custom_chirp: {from_hz: 17000, to_hz: 17050}}}",
                "rig.json5: 'take.custom_chirp.from_hz' and its figures can't be: it must sweep over at least 200 Hz"
            ),
            ("{take: {lead_ms: 10}}", "rig.json5: 'take.lead_ms' is 10; legal is a whole number from 700 to 30000"),
            ("{server: 'sync.local'}", "rig.json5: 'server' is 'sync.local'; legal is a URL"),
            ("{session: {name: '.x'}}", "rig.json5: 'session.name' is '.x'"),
            ("[]", "rig.json5: 'the top' is a list; an object is needed"),
            ("{", "rig.json5: not JSON5"),
        ])
    func mistakes(_ text: String, _ sentence: String) {
        let error = #expect(throws: ConfigReader.Invalid.self) {
            try RigConfiguration(file: "rig.json5", text: Array(text.utf8))
        }
        #expect(error?.description.hasPrefix(sentence) == true, "\(error?.description ?? "")")
    }
}
