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
