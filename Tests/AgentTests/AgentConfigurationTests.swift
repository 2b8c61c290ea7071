internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

@testable internal import Agent

struct AgentConfigurationTests {
    private func read(_ text: String, hostID: String? = nil) throws -> AgentConfiguration {
        try AgentConfiguration(file: "agent.json5", text: Array(text.utf8), hostID: hostID, machineName: "machine")
    }

    @Test("the examples in configs/ are legal", arguments: ["agent.json5", "agent-emulated.json5"])
    func examples(_ name: String) throws {
        let configs = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("configs")
        let configuration = try AgentConfiguration.read(configs.appendingPathComponent(name).path)
        #expect(!configuration.devices.isEmpty)
        #expect(configuration.speaker != nil)
    }

    @Test("defaults: the machine's name, any ports, all interfaces")
    func defaults() throws {
        let configuration = try read("{}")
        #expect(configuration.host.rawValue == "machine")
        #expect(configuration.listen == AgentConfiguration.Listen())
        #expect(configuration.devices.isEmpty && configuration.speaker == nil)
        #expect(configuration.reserveBytes == 1 << 30)
        #expect(try read("{host_id: 'a'}", hostID: "b").host.rawValue == "b")
    }

    @Test("the primary stream comes first")
    func primary() throws {
        let text = """
            { primary_stream: "b", streams: [ { id: "a", kind: "emulated-imu" }, { id: "b", kind: "emulated-camera" } ] }
            """
        #expect(try read(text).devices.map(\.stream.rawValue) == ["b", "a"])
    }

    /// Each error is one sentence that names the key, what was read and what is legal.
    @Test(
        "what is wrong is said",
        arguments: [
            ("{host_id: '../x'}", "'host_id' is '../x'"),
            ("{hostid: 'x'}", "'hostid' is not a key here"),
            (
                "{listen: {command_port: 70000}}",
                "'listen.command_port' is 70000; legal is a whole number from 0 to 65535"
            ),
            ("{listen: {command_port: 5, bulk_port: 5}}", "'listen.bulk_port' is 5"),
            ("{listen: {address: 'example.org'}}", "'listen.address' is 'example.org'"),
            ("{listen: []}", "'listen' is a list; an object is needed"),
            ("{speaker: {kind: 'horn'}}", "'speaker.kind' is 'horn'; legal is one of"),
            ("{speaker: {kind: 'emulated'}}", "'air'"),
            ("{air: {position: [0, 0, 0]}}", "'air.folder' is missing"),
            ("{air: {folder: '/a', position: [0, 0]}}", "'air.position' is a list; legal is a list of 3 numbers"),
            ("{reserve_bytes: -1}", "'reserve_bytes' is -1"),
            ("{streams: [{id: 'a', kind: 'telepathy'}]}", "'streams[0].kind' is 'telepathy'"),
            ("{streams: [{kind: 'emulated-imu'}]}", "'streams[0].id' is missing"),
            (
                "{streams: [{id: 'a', kind: 'emulated-imu'}, {id: 'a', kind: 'emulated-camera'}]}",
                "'streams[1].id' is 'a'; legal is an id that no other stream"
            ),
            (
                "{primary_stream: 'x', streams: [{id: 'a', kind: 'emulated-imu'}]}",
                "'primary_stream' is 'x'; legal is one of 'a'"
            ),
            ("{", "not JSON5"),
            ("[]", "an object is needed"),
        ])
    func errors(_ text: String, _ expected: String) {
        let error = #expect(throws: ConfigReader.Invalid.self) { try read(text) }
        #expect(error?.description.contains(expected) == true, "\(error?.description ?? "")")
    }

    @Test("the identity of a host is made once, and a home has one agent")
    func home() throws {
        let folder = try TemporaryFolder()
        let home = AgentHome(folder.path + "/home")
        let first = try home.hostUUID()
        #expect(try home.hostUUID() == first)
        let lock = try home.lock()
        #expect(throws: HomeInUse.self) { _ = try home.lock() }
        withExtendedLifetime(lock) {}
        try AtomicFile.write("{", to: home.host)
        #expect(throws: ConfigReader.Invalid.self) { try home.hostUUID() }
    }
}
