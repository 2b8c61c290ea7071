internal import Foundation
internal import Platform
internal import TestSupport
internal import Testing

/// Each file in configs/ is read by what it is for; a file of a new kind fails until it is named here.
@Suite(.serialized, .timeLimit(.minutes(2))) struct ConfigsTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../configs")
        .standardizedFileURL.path

    static let files: [String] = {
        let all = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
        return all.filter { !Files.isFolder("\(root)/\($0)") }.sorted()
    }()

    private func lines(_ file: String) throws -> [String] {
        let text = String(decoding: try Files.read("\(Self.root)/\(file)"), as: UTF8.self)
        return text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
    }

    @Test("every file is read", arguments: files)
    func read(file: String) async throws {
        let folder = try TemporaryFolder()
        let path = "\(Self.root)/\(file)"
        switch file {
        case "rig.json5":
            let ending = try await Program.run(
                "downbeat", ["hosts", "--config", path, "--wait", "0"], home: "\(folder.path)/home",
                scratch: folder.path)
            // The rig is described; nobody of it is there.
            #expect(!ending.errors.contains("rig.json5:"), "\(ending.errors)")
            #expect((ending.output + ending.errors).contains("left-pc"), "\(ending.output)\(ending.errors)")
        case "agent.json5", "agent-emulated.json5":
            let ending = try await Program.run(
                "downbeat-agent", ["devices", "--config", path], home: "\(folder.path)/home", scratch: folder.path)
            #expect(!ending.errors.contains("agent.json5:"), "\(ending.errors)")
            #expect(ending.output.contains("Configured streams:"), "\(ending.output)\(ending.errors)")
        case _ where file.hasSuffix(".service"):
            let lines = try lines(file)
            #expect(lines.allSatisfy { $0.hasPrefix("[") && $0.hasSuffix("]") || $0.contains("=") })
            let start = try #require(lines.first { $0.hasPrefix("ExecStart=") }?.dropFirst("ExecStart=".count))
            let words = start.split(separator: " ").map(String.init)
            let program = FilePath.name(of: try #require(words.first))
            // Its options are known to the command: an unknown one would be an error before the help is printed.
            let ending = try await Program.run(
                program, Array(words.dropFirst()) + ["--help"], home: folder.path, scratch: folder.path)
            #expect(ending.status == 0, "\(ending.errors)")
        case _ where file.hasSuffix(".rules"):
            for rule in try lines(file) {
                for part in rule.split(separator: ", ") {
                    #expect(part.contains("=") && part.hasSuffix("\""), "\(file): '\(part)'")
                }
            }
        case "alsa/asound.conf":
            // The devices' tests open microphones and speakers by alsa-lib with it.
            #expect(try lines(file).contains { $0.hasPrefix("pcm.") })
        default:
            Issue.record("nothing reads configs/\(file)")
        }
    }
}
